"""Nothing needs root: whole runs as `nobody`, with a home and a state directory of its own."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from support.command_line import Desk, desk
from support.machines.kernel_parameter import kernel_parameter

import fairtrial
from fairtrial import record
from fairtrial.report.analysing import analysed
from fairtrial.wire import find_agent

USER = "nobody"
PROGRAM = "from fairtrial.cli import main; main()"
SYSTEM_PYTHON = "/usr/bin/python3"
MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

STUDY = """\
study: unprivileged
system: {system}
workload: {{oltp: {{table_size: 1000, ramp_up: 100ms, transactions: 60, think_time: 5ms}}}}
factors:
  users:
    one: {{workload: {{oltp: {{virtual_users: 1}}}}}}
    two: {{workload: {{oltp: {{virtual_users: 2}}}}}}
arm: users
trials: {{blocks: 1, seed: 2}}
metrics: {{primary: throughput_tps}}
telemetry: {{interval: 500ms}}
"""


def as_user(
    here: Desk, argv: Sequence[str], *, user: int | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """Runs a program as the user, or as another who becomes it."""
    account = pwd.getpwnam(USER)
    sources = Path(fairtrial.__file__).parents[1]
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(here.directory / "home"),
        "FAIRTRIAL_STATE_DIRECTORY": str(here.state),
        "FAIRTRIAL_AGENT": str(find_agent()),
        "PYTHONPATH": f"{sources}:{sysconfig.get_path('purelib')}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        argv,
        cwd=here.directory / "home",
        env={**own, **environment},
        user=account.pw_uid if user is None else user,
        group=account.pw_gid if user is None else user,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


def settle(here: Desk) -> None:
    """A home and a state directory of the user's own."""
    account = pwd.getpwnam(USER)
    (here.directory / "home").mkdir()
    for directory in (here.directory / "home", here.state):
        os.chown(directory, account.pw_uid, account.pw_gid)


@pytest.fixture
def python(here: Desk, usable: str) -> str:
    """A Python that the user can run, who has settled."""
    settle(here)
    return usable


@pytest.fixture(scope="module")
def usable() -> str:
    """One with the same packages: this one, or the system's of the same version."""
    check = f"import sys, pydantic_core, numpy, fairtrial; assert sys.version_info[:2] == {sys.version_info[:2]}"
    said = []
    for candidate in (sys.executable, SYSTEM_PYTHON):
        try:
            with desk() as here:
                settle(here)
                tried = as_user(here, [candidate, "-c", check])
        except OSError as error:
            said.append(f"{candidate}: {error}")
            continue
        if tried.returncode == 0:
            return candidate
        said.append(f"{candidate}: {tried.stderr.strip().splitlines()[-1]}")
    pytest.skip(f"{USER} can run no Python with this one's packages ({'; '.join(said)})")


def run(here: Desk, python: str, system: str) -> record.Record:
    study = here.study(STUDY.format(system=system))
    study.chmod(0o644)
    done = as_user(here, [python, "-c", PROGRAM, "run", str(study), "--plain"])
    assert done.returncode == 0, done.stdout + done.stderr
    (directory,) = (here.directory / "home" / "runs").iterdir()
    found = record.read(directory)
    assert found.finished
    assert [trial.invalid_reason for trial in found.trials] == [""] * 2
    (place,) = found.places
    assert place.facts["user_id"] == pwd.getpwnam(USER).pw_uid
    assert place.server_user is None
    assert all(trial.data.settled.dropped is False for trial in found.trials), "only root can drop caches"
    assert "cache_kept" in [doubt.code for doubt in analysed(found).doubts]
    verified = as_user(here, [python, "-c", PROGRAM, "verify", str(directory)])
    assert verified.returncode == 0, verified.stdout
    return found


def test_sqlite_needs_no_root(here: Desk, python: str) -> None:
    found = run(here, python, "{sqlite: {}}")
    assert all(trial.scalars["throughput_tps"] > 0 for trial in found.trials)


@pytest.mark.servers
@pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root")
def test_a_private_mariadb_needs_no_root(here: Desk, python: str) -> None:
    found = run(here, python, "{mariadb: {options: {innodb_buffer_pool_size: 128M}}}")
    assert all(trial.options["innodb_buffer_pool_size"] == str(128 << 20) for trial in found.trials)


def test_a_setting_that_needs_root_is_refused_with_its_name(here: Desk, python: str) -> None:
    study = here.study(STUDY.format(system="{sqlite: {}}") + "settings: {sysctl: {vm.page-cluster: 2}}\n")
    study.chmod(0o644)
    done = as_user(here, [python, "-c", PROGRAM, "run", str(study)])
    assert done.returncode == 3, done.stdout + done.stderr
    assert "vm.page-cluster" in done.stderr
    assert "ermission" in done.stderr


# Root's part, in a mount namespace of its own: this machine's rules for sudo stay as they are.
BECOME = f"exec setpriv --reuid={USER} --regid=nogroup --clear-groups --"
BY_RULE = f'mount --bind "$1" /etc/sudoers && shift && {BECOME} "$@"'


@pytest.mark.skipif(shutil.which("sudo") is None, reason="needs sudo: `apt install sudo`")
def test_a_rule_of_sudo_has_root_write_a_setting_of_an_ordinary_users_study_and_nothing_else(
    here: Desk, python: str
) -> None:
    agent = here.directory / "fairtrial-agent"  # root's own: its user cannot change it
    shutil.copy2(find_agent(), agent)
    rules = here.directory / "sudoers"
    example = Path(__file__).parents[3] / "packaging" / "sudoers.d" / "fairtrial"
    rule = example.read_text().replace("/usr/local/libexec/fairtrial-agent", str(agent))
    rules.write_text(rule.replace("\nbench ", f"\n{USER} "))
    rules.chmod(0o440)

    def as_ruled(*argv: str) -> subprocess.CompletedProcess[str]:
        whole = ["unshare", "--mount", "sh", "-c", BY_RULE, "sh", str(rules), *argv]
        more = {"FAIRTRIAL_HELPER": f"sudo -n {agent}"}
        return as_user(here, whole, user=0, environment=more)

    with kernel_parameter() as parameter:
        study = here.study(STUDY.format(system="{sqlite: {}}") + f"settings: {parameter.settings}\n")
        study.chmod(0o644)
        done = as_ruled(python, "-c", PROGRAM, "run", str(study), "--plain")
        assert done.returncode == 0, done.stdout + done.stderr
        assert parameter.restored()
    (directory,) = (here.directory / "home" / "runs").iterdir()
    found = record.read(directory)
    assert found.places[0].facts["user_id"] == pwd.getpwnam(USER).pw_uid
    effective = [(each.before.strip(), each.read_back.strip()) for trial in found.trials for each in trial.effective]
    assert effective == [(parameter.before.strip(), parameter.other)] * 2
    refused = as_ruled("sudo", "-n", str(agent), "write-setting", "--", "/proc/sys/kernel/core_pattern", "x")
    assert "not among the files" in refused.stderr
    assert as_ruled("sudo", "-n", str(agent), "serve").returncode == 1
    assert as_ruled("sudo", "-n", "/usr/bin/id").returncode == 1


PROBED = """\
study: probed
workload: {{command: {{run: sleep 0.05}}}}
factors:
  length:
    short: {{}}
    long: {{workload: {{command: {{run: sleep 0.1}}}}}}
arm: length
trials: {{blocks: 1, seed: 2}}
metrics: {{primary: elapsed_s}}
telemetry: {{probes: [{probes}]}}
"""


def probed(here: Desk, python: str, probes: str) -> subprocess.CompletedProcess[str]:
    study = here.study(PROBED.format(probes=probes))
    study.chmod(0o644)
    output = here.directory / "home" / "runs"
    return as_user(here, [python, "-c", PROGRAM, "run", str(study), "--output", str(output), "--plain"])


def test_programs_and_files_are_probed_without_root(here: Desk, python: str) -> None:
    done = probed(here, python, "{command: sleep 60}, {file: /proc/vmstat}")
    assert done.returncode == 0, done.stderr
    (run,) = (here.directory / "home" / "runs").iterdir()
    assert len(record.read(run).diagnostics) == 2
    assert all(trial.valid for trial in record.read(run).diagnostics)


@pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf: `apt install linux-perf`")
@pytest.mark.skipif(
    int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 1, reason="here anybody may look at all processors"
)
def test_what_the_user_may_not_probe_is_refused_with_what_would_permit_it(here: Desk, python: str) -> None:
    (here.directory / "secret").mkdir(mode=0o700)
    done = probed(here, python, f"perf_stat, perf_record, {{file: {here.directory}/secret/x}}")
    assert done.returncode == 2, done.stdout + done.stderr
    for number, kind in enumerate(("perf_stat", "perf_record")):
        assert f"telemetry.probes.{number}.{kind}: perf refuses it" in done.stderr
    assert "kernel.perf_event_paranoid=-1" in done.stderr
    assert "telemetry.probes.2.file: cannot be read at the place" in done.stderr
    assert "Permission denied" in done.stderr
    (run,) = (here.directory / "home" / "runs").iterdir()
    assert list((run / "trials").iterdir()) == []


def test_a_place_is_looked_at_without_root_and_what_only_root_may_do_is_told(here: Desk, python: str) -> None:
    study = here.study(STUDY.format(system="{sqlite: {}}") + "settings: {sysctl: {vm.page-cluster: 2}}\n")
    study.chmod(0o644)
    done = as_user(here, [python, "-c", PROGRAM, "doctor", str(study), "--json"])
    assert done.returncode in {0, 1}, done.stderr
    (found,) = json.loads(done.stdout)["places"]
    findings = {finding["name"]: finding for finding in found["findings"]}
    seen = ("smt", "clock_source", "steal", "other_load", "memory_available", "disk_space", "reflink", "open_files")
    assert [name for name in seen if findings[name]["grade"] == "unknown"] == []
    assert findings["bpf"]["value"].startswith("not permitted")
    assert findings["bpf"]["fix"] == "run as root, or with CAP_BPF and CAP_PERFMON"
    own = next(study for study in found["studies"] if study["study"] == "unprivileged")
    assert own["can_run"] is False
    assert [lack["what"] for lack in own["lacks"]] == ["vm.page-cluster can only be set by root"]
    assert list(here.state.glob(".doctor*")) == []
