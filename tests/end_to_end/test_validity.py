"""The study's own rule for what makes a trial invalid, in whole runs: connections of a real MariaDB are killed."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import pytest
from support.command_line import Desk
from support.machines.apart import apart
from support.machines.connections import kill_users_at_work

from fairtrial import record
from fairtrial.metrics import drive
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root"),
]

USERS = 4
# The first trial, one of `never`, has to last until connections are killed, which waits for no test.
STUDY = f"""\
study: fragile
system: {{mariadb: {{options: {{innodb_buffer_pool_size: 64M, innodb_flush_log_at_trx_commit: 0}}}}}}
workload:
  oltp:
    {{profile: read_write, table_size: 500, virtual_users: {USERS}, think_time: 50ms, ramp_up: 0s, transactions: 50}}
factors:
  prepared:
    before: {{}}
    never: {{workload: {{oltp: {{protocol: text, transactions: 500}}}}}}
arm: prepared
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: throughput_tps, guardrails: [failed_share, errors]}}
telemetry: {{interval: 100ms}}
"""
BUSY = 50  # commits; with no ramp-up they are all in the window


def run_with_killed_connections(here: Desk, **rules: float) -> Record:
    """A run in whose first trial every user loses its connection once."""
    given = [part for name, value in rules.items() for part in ("--set", f"workload.oltp.{name}={value}")]
    with apart(kill_users_at_work, str(here.directory), BUSY, USERS):
        process = here.start("run", here.study(STUDY), *given)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    found = record.read(here.run)
    assert found.finished
    here.fairtrial("verify", here.run)
    return found


def errors(found: Record, trial: TrialRecord) -> list[dict[str, Any]]:
    """Errors as the record has them: one entry for each code, with its kind, first message and count."""
    text = (found.trial_directory(trial.trial.id) / "result.json").read_text(encoding="utf-8")
    counted: list[dict[str, Any]] = json.loads(text)["errors"]
    assert all(each["code"] and each["message"] for each in counted)
    return counted


def lost(found: Record, trial: TrialRecord) -> int:
    """Connections that were lost or refused."""
    return sum(each["count"] for each in errors(found, trial) if each["kind"] == "connection")


def assert_void(here: Desk, found: Record) -> TrialRecord:
    """The first trial is invalid, its block replaced, and the report says and counts it; returns it."""
    (invalid,) = [trial for trial in found.trials if not trial.valid]
    assert invalid.trial.id == found.plan.trials[0].id
    assert [event.block for event in found.voided] == [invalid.trial.block]
    report = here.run / "report"
    text = " ".join((report / "report.txt").read_text(encoding="utf-8").split())
    assert f"{invalid.trial.id} is invalid: {invalid.invalid_reason}" in text
    counts = json.loads((report / "report.json").read_text(encoding="utf-8"))["analysis"]["counts"]
    assert (counts["invalid"], counts["blocks_voided"]) == (1, 1)
    return invalid


def test_connections_lost_make_a_trial_invalid_unless_the_study_allows_them(here: Desk) -> None:
    found = run_with_killed_connections(here)
    invalid = assert_void(here, found)
    count = lost(found, invalid)
    assert count >= USERS, "each user's, and attempts that were refused"
    assert invalid.invalid_reason.startswith(f"{count} connections to the server were lost or refused (")
    assert invalid.scalars["errors"] >= count
    assert sum(trial.valid for trial in found.trials) >= 2


def test_with_a_limit_that_is_not_reached_the_trial_stays_valid_and_its_errors_are_on_record(here: Desk) -> None:
    found = run_with_killed_connections(here, lost_connections_limit=100)
    assert [trial.valid for trial in found.trials] == [True, True], [trial.invalid_reason for trial in found.trials]
    first, second = found.trials
    assert lost(found, first) >= USERS
    assert first.scalars["errors"] >= lost(found, first)
    assert first.scalars["failed_share"] > 0, "a transaction that lost its connection is not repeated"
    assert lost(found, second) == 0
    assert not found.voided
    codes = {each["code"] for each in errors(found, first) if each["kind"] == "connection"}
    assert codes <= {"1927", "connection_lost"}, "killed (ER_CONNECTION_KILLED), or closed before it could be told"


def test_a_share_of_failed_transactions_is_a_rule_of_its_own(here: Desk) -> None:
    found = run_with_killed_connections(here, lost_connections_limit=100, failed_share_limit=0)
    invalid = assert_void(here, found)
    assert "transactions failed, more than a share of 0 (" in invalid.invalid_reason
    failed = int(invalid.invalid_reason.split(" ")[0])
    driven = drive.read(found.trial_directory(invalid.trial.id))
    assert failed == sum(outcome.failed for outcome in driven.transactions.values()) > 0
