"""Nothing needs root: whole runs as `nobody`, with a home and a state directory of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.command_line import Desk

import fairtrial
from fairtrial import record
from fairtrial.wire import find_agent

USER = "nobody"
PROGRAM = "from fairtrial.cli import main; main()"
SYSTEM_PYTHON = "/usr/bin/python3"
MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

STUDY = """\
study: unprivileged
system: {system}
workload: {{tpcc: {{warehouses: 1, ramp_up: 200ms, duration: 500ms}}}}
factors:
  users:
    one: {{workload: {{tpcc: {{virtual_users: 1}}}}}}
    two: {{workload: {{tpcc: {{virtual_users: 2}}}}}}
arm: users
trials: {{blocks: 2, seed: 2}}
metrics: {{primary: throughput_tpm}}
telemetry: {{interval: 100ms}}
"""


def as_user(here: Desk, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    account = pwd.getpwnam(USER)
    sources = Path(fairtrial.__file__).parents[1]
    environment = {
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
        env=environment,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def python(here: Desk) -> str:
    """A Python that the user can run, with the same packages: this one, or the system's of the same version."""
    account = pwd.getpwnam(USER)
    (here.directory / "home").mkdir()
    for directory in (here.directory / "home", here.state):
        os.chown(directory, account.pw_uid, account.pw_gid)
    check = f"import sys, pydantic_core, numpy, fairtrial; assert sys.version_info[:2] == {sys.version_info[:2]}"
    said = []
    for candidate in (sys.executable, SYSTEM_PYTHON):
        try:
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
    done = as_user(here, [python, "-c", PROGRAM, "run", str(study)])
    assert done.returncode == 0, done.stdout + done.stderr
    (directory,) = (here.directory / "home" / "runs").iterdir()
    found = record.read(directory)
    assert found.finished
    assert [trial.invalid_reason for trial in found.trials] == [""] * 4
    (place,) = found.places
    assert place.facts["user_id"] == pwd.getpwnam(USER).pw_uid
    assert place.server_user is None
    assert all(trial.data["settled"]["dropped"] is False for trial in found.trials), "only root can drop caches"
    verified = as_user(here, [python, "-c", PROGRAM, "verify", str(directory)])
    assert verified.returncode == 0, verified.stdout
    return found


def test_sqlite_needs_no_root(here: Desk, python: str) -> None:
    found = run(here, python, "{sqlite: {}}")
    assert all(trial.scalars["throughput_tpm"] > 0 for trial in found.trials)


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
