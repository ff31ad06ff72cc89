"""`scripts/install-servers` with an apt of the test's own: what it cannot install is named, and in CI an error."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command_line import shell_program

SCRIPT = Path(__file__).parents[3] / "scripts" / "install-servers"
PACKAGES = tuple(re.findall(r'^packages="(.*)"$', SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)[0].split())
PROGRAMS = {
    "dpkg-query": """
        for package; do :; done
        [ -e "$APT/installed/$package" ] || exit 1
        printf 'install ok installed'
    """,
    "apt-get": """
        echo "$*" >> "$APT/asked"
        [ ! -e "$APT/signal" ] || { [ "$1" = update ] || kill -"$(cat "$APT/signal")" "$PPID"; }
        [ "$1" = update ] && exit "$(cat "$APT/update")"
        shift
        for word; do
            case $word in -*) continue ;; esac
            [ -e "$APT/unknown/$word" ] && { echo "E: Package '$word' has no installation candidate" >&2; exit 100; }
        done
        for word; do
            case $word in -*) continue ;; esac
            [ -e "$APT/broken/$word" ] && { echo "E: Sub-process /usr/bin/dpkg returned an error code" >&2; exit 100; }
            touch "$APT/installed/$word"
        done
    """,
    "id": "cat $APT/user",
}


@dataclass(frozen=True)
class Machine:
    """A machine with packages of its own and an apt that knows all but some."""

    directory: Path

    def has(self, kind: str, packages: Sequence[str]) -> None:
        for package in packages:
            (self.directory / kind / package).touch()

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {
            "PATH": f"{self.directory / 'bin'}:{os.defpath}",
            "APT": str(self.directory),
            "POLICY_RC_D": str(self.policy),
            **environment,
        }
        # A shell cannot trap what was ignored when it began, as signals are below nohup.
        command = ["env", "--default-signal=HUP,INT,TERM", str(SCRIPT)]
        return subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=60)

    @property
    def policy(self) -> Path:
        return self.directory / "policy-rc.d"

    def interrupted(self, name: str) -> int:
        """The exit code of a run that a signal reaches while apt installs."""
        signalled = self.directory / "signal"
        signalled.write_text(name)
        code = self.run().returncode
        signalled.unlink()
        return code

    @property
    def installed(self) -> set[str]:
        return {path.name for path in (self.directory / "installed").iterdir()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for folder in ("bin", "installed", "unknown", "broken"):
        (tmp_path / folder).mkdir()
    for name, body in PROGRAMS.items():
        shell_program(tmp_path / "bin" / name, body)
    (tmp_path / "user").write_text("0\n")
    (tmp_path / "update").write_text("0\n")
    return Machine(tmp_path)


def test_what_is_missing_is_installed(machine: Machine) -> None:
    machine.has("installed", PACKAGES[2:])
    done = machine.run(CI="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.installed == set(PACKAGES)
    assert not machine.policy.exists()


@pytest.mark.parametrize(("name", "code"), [("HUP", 129), ("INT", 130), ("TERM", 143)])
def test_a_signal_leaves_no_policy_behind(machine: Machine, name: str, code: int) -> None:
    assert machine.interrupted(name) == code
    assert not machine.policy.exists()


@pytest.mark.parametrize("missing", [True, False])
def test_what_a_killed_run_left_is_removed_by_the_next(machine: Machine, *, missing: bool) -> None:
    assert machine.interrupted("KILL") == -signal.SIGKILL
    assert machine.policy.exists()
    machine.has("installed", PACKAGES[missing:])
    assert machine.run(CI="true").returncode == 0
    assert not machine.policy.exists()


def test_a_policy_of_somebody_else_stays(machine: Machine) -> None:
    machine.policy.write_text("#!/bin/sh\nexit 0\n")
    assert machine.run(CI="true").returncode == 0
    assert machine.policy.exists()


def test_the_policy_of_a_run_that_goes_on_stays(machine: Machine) -> None:
    machine.interrupted("KILL")
    machine.policy.write_text(re.sub(r"process \d+", f"process {os.getpid()}", machine.policy.read_text()))
    assert machine.run(CI="true").returncode == 0
    assert machine.policy.exists()


def test_where_nothing_is_missing_apt_is_not_asked(machine: Machine) -> None:
    machine.has("installed", PACKAGES)
    assert machine.run(CI="true").returncode == 0
    assert not (machine.directory / "asked").exists()


@pytest.mark.parametrize("fault", ["unknown", "broken"])
@pytest.mark.parametrize(("environment", "code"), [({"CI": "true"}, 3), ({"CI": "false"}, 0), ({}, 0)])
def test_a_package_that_cannot_be_installed_is_named_costs_no_other_and_fails_ci(
    machine: Machine, *, fault: str, environment: dict[str, str], code: int
) -> None:
    machine.has(fault, ["fio"])
    done = machine.run(**environment)
    assert done.returncode == code
    assert "not installed: fio\n" in done.stderr
    assert machine.installed == set(PACKAGES) - {"fio"}
    assert ("tests that need them skip" in done.stderr) == (code == 0)


def test_lists_that_cannot_be_updated_are_no_reason_to_install_nothing(machine: Machine) -> None:
    (machine.directory / "update").write_text("100\n")
    done = machine.run(CI="true")
    assert done.returncode == 0
    assert "apt-get update failed" in done.stderr
    assert machine.installed == set(PACKAGES)


@pytest.mark.parametrize(("environment", "code"), [({"CI": "true"}, 3), ({}, 0)])
def test_without_root_everything_missing_is_named_and_apt_is_not_asked(
    machine: Machine, environment: dict[str, str], code: int
) -> None:
    (machine.directory / "user").write_text("1000\n")
    machine.has("installed", PACKAGES[:-2])
    done = machine.run(**environment)
    assert done.returncode == code
    assert f"not installed: {PACKAGES[-2]} {PACKAGES[-1]}\n" in done.stderr
    assert not (machine.directory / "asked").exists()
