"""A run killed while its data are being made: resumed, the load goes on with what is in, and the trials follow."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.command_line import Desk
from support.machines.apart import apart
from support.machines.terminal import Terminal, killed_once_drawn, numbers, on_terminal

from fairtrial import record

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
POSTGRES = shutil.which("postgres") or next(
    (str(found) for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None
)
POSTGRES_BASE = Path(POSTGRES or "/none/bin/postgres").resolve().parents[1]

STUDY = """\
study: interrupted
system: {system}
workload: {{tpcc: {{warehouses: {warehouses}, virtual_users: 2, ramp_up: 0s, transactions: 100, interval: 100ms}}}}
factors: {{users: {{two: {{}}, three: {{workload: {{tpcc: {{virtual_users: 3}}}}}}}}}}
arm: users
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: throughput_tpm}}
telemetry: {{interval: 100ms}}
"""
OTHER = """\
study: other
system: {sqlite: {}}
workload: {oltp: {table_size: 1000, ramp_up: 0s, transactions: 10}}
factors: {users: {one: {}, two: {workload: {oltp: {virtual_users: 2}}}}}
arm: users
trials: {blocks: 1}
metrics: {primary: throughput_tps}
"""
WAREHOUSES = 2
ENOUGH = 300_000  # of a million rows: they are in when the controller is killed
KEPT = 200_000  # a load that begins anew says less first: the 100,000 items, and what is small
SYSTEMS = [
    pytest.param(
        "{sqlite: {pragmas: {journal_mode: WAL, synchronous: OFF}}}",
        id="sqlite",
        marks=pytest.mark.long,  # its siblings: MariaDB's below, and the load of another study, which is SQLite's
    ),
    pytest.param(
        "{mariadb: {options: {innodb_buffer_pool_size: 128M}}}",
        id="mariadb",
        marks=[pytest.mark.servers, pytest.mark.skipif(MARIADB is None, reason="needs mariadbd")],
    ),
    pytest.param(
        f"{{postgres: {{base_directory: {POSTGRES_BASE}, options: {{shared_buffers: 128MB}}}}}}",
        id="postgres",
        marks=[
            pytest.mark.servers,
            pytest.mark.skipif(POSTGRES is None, reason="needs postgres"),
            pytest.mark.long,  # its siblings: MariaDB's, and `resume::postgres` of the load generator's tests
        ],
    ),
]


LOADING = r"loading \d+/\d+  ([\d,]+) rows"


def loading(terminal: Terminal) -> list[int]:
    """Rows that were in, at each line of progress."""
    return numbers(terminal.text, LOADING)


def kill_while_loading(here: Desk, study: Path, *, enough: int = ENOUGH) -> None:
    """Runs until enough is loaded and kills the controller, which can tell nobody; the load waits for no test."""
    with apart(killed_once_drawn, str(here.directory), LOADING, enough, "run", str(study)):
        pass


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_controller_killed_while_loading_is_resumed_and_so_is_its_load(here: Desk, system: str) -> None:
    study = here.study(STUDY.format(system=system, warehouses=WAREHOUSES))
    kill_while_loading(here, study)
    assert record.read(here.run).trials == (), "no trial runs before its data are there"
    (building,) = (here.state / "building").iterdir()
    (building / "witness").touch()  # data that are made anew lose it
    with on_terminal(here, "run", study, "--resume") as again:
        assert again.end() == 0, again.text
    assert all(rows >= KEPT for rows in loading(again)), "the load goes on"
    assert loading(again) == sorted(loading(again))
    found = record.read(here.run)
    assert found.finished
    assert [trial.valid for trial in found.trials] == [True, True], [trial.invalid_reason for trial in found.trials]
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    (prepared,) = (here.state / "prepared").iterdir()
    assert (prepared / "witness").exists()
    assert not (prepared / "created").exists()
    assert not list((here.state / "building").glob("*"))
    here.fairtrial("verify", here.run)


def test_another_study_s_interrupted_load_is_cleared_away_and_its_own_begins_anew(here: Desk) -> None:
    system = SYSTEMS[0].values[0]
    kill_while_loading(here, here.study(STUDY.format(system=system, warehouses=WAREHOUSES)), enough=10_000)
    (left,) = (here.state / "building").iterdir()
    other = here.study(OTHER, name="other.yaml")
    here.fairtrial("run", other)
    assert not left.exists(), "one load is under way at a time"
    (prepared,) = (here.state / "prepared").iterdir()
    assert prepared.name != left.name
