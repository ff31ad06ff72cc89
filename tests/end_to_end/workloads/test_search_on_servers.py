"""Searches for the highest rate on real servers, watched on a terminal: structure and agreement, never speed."""

from __future__ import annotations

import os
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from support.command_line import Desk
from support.machines.terminal import on_terminal

from fairtrial import record
from fairtrial.metrics import drive

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
POSTGRES = shutil.which("postgres") or next(
    (str(found) for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None
)
POSTGRES_BASE = Path(POSTGRES or "/none/bin/postgres").resolve().parents[1]

# Of 20 transactions a second the median is within 50 ms, unless their dozens of round trips wait for a processor: where
# two probes in a row do, the block is replaced. Nothing runs a million per second.
SEARCH = "{search: {objective: {p50: 50ms}, from: 20/s, to: 1000000/s, precision: 100 %, window: 1s, settle: 0s}}"
STUDY = """\
study: capacity
system: {system}
workload: {{{workload}: {{{own}, virtual_users: 4, ramp_up: 0s, interval: 100ms, arrivals: {search}}}}}
factors: {{users: {{four: {{}}, six: {{workload: {{{workload}: {{virtual_users: 6}}}}}}}}}}
arm: users
trials: {{blocks: 1, seed: 5, voided_limit: 3}}
metrics: {{primary: highest_rate_per_s, secondary: [latency_ns_p50, probes]}}
telemetry: {{interval: 100ms}}
"""


def searches(here: Desk, *, system: str, workload: str, own: str) -> None:
    """Runs the study and looks at the record, the report and what was drawn meanwhile."""
    study = here.study(STUDY.format(system=system, workload=workload, own=own, search=SEARCH))
    with on_terminal(here, "run", study) as terminal:
        assert terminal.end() == 0, terminal.text
    found = record.read(here.run)
    assert found.finished
    valid = [trial for trial in found.trials if trial.valid]
    reasons = [trial.invalid_reason for trial in found.trials if not trial.valid]
    assert all("not even the lowest rate of the search" in reason for reason in reasons), reasons
    assert {trial.levels["users"] for trial in valid} == {"four", "six"}
    probed: set[str] = set()
    for trial in valid:
        directory = found.trial_directory(trial.trial.id)
        searched = drive.read(directory).search
        assert searched is not None
        assert searched.complete
        met, missed = searched.met_per_s, searched.missed_per_s
        assert met is not None
        assert missed is not None
        assert 20 <= met < missed <= 2 * met, "its precision is a factor of two"
        assert trial.scalars["highest_rate_per_s"] == met
        assert trial.scalars["lowest_rate_missed_per_s"] == missed
        assert trial.scalars["probes"] == len(searched.probes) >= 4, "two at each bound"
        assert all(one.window.end_ns <= next_.window.start_ns for one, next_ in pairwise(searched.probes))
        assert trial.window in [probe.window for probe in searched.probes if probe.met and probe.rate_per_s == met]
        assert (directory / "probes" / "01" / "latency.hlog").is_file()
        probed |= {f"{probe.rate_per_s:,.0f}/s" for probe in searched.probes}
    drawn = terminal.text
    assert probed <= set(re.findall(r"probe \d+ at ([\d,]+/s)", drawn)), "each is drawn while it runs"
    assert re.search(r"probe \d+ at [\d,]+/s met \(p50 [\d.]+ ms\)", drawn)
    assert re.search(r"probe \d+ at [\d,]+/s missed \(", drawn)
    report = (here.run / "report" / "report.txt").read_text(encoding="utf-8")
    assert "highest_rate_per_s" in report
    here.fairtrial("verify", here.run)


@pytest.mark.servers
@pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root")
def test_the_highest_rate_of_tpcc_on_mariadb(here: Desk) -> None:
    system = "{mariadb: {options: {innodb_buffer_pool_size: 128M, innodb_flush_log_at_trx_commit: 0}}}"
    searches(here, system=system, workload="tpcc", own="warehouses: 1")


@pytest.mark.long  # its siblings: MariaDB's, above, and SQLite's in test_arrivals.py
@pytest.mark.servers
@pytest.mark.skipif(POSTGRES is None, reason="needs postgres: `make test` installs it when run as root")
def test_the_highest_rate_of_oltp_on_postgres(here: Desk) -> None:
    options = "{shared_buffers: 64MB, synchronous_commit: off}"
    system = f"{{postgres: {{base_directory: {POSTGRES_BASE}, options: {options}}}}}"
    searches(here, system=system, workload="oltp", own="profile: read_write, tables: 1, table_size: 2000")
