"""The OLTP family on real databases, driven as a user does."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from support.command_line import Desk

from fairtrial import record

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")

POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin/postgres"), default=None)

SQLITE_STUDY = """\
study: transactions
question: What do explicit transactions cost readers and writers of SQLite?
system: {sqlite: {pragmas: {journal_mode: WAL, synchronous: OFF}}}
workload: {oltp: {tables: 2, table_size: 2000, ramp_up: 100ms, transactions: 60}}
factors:
  transactions:
    explicit: {}
    none: {workload: {oltp: {skip_transactions: true}}}
  profile:
    reading: {workload: {oltp: {profile: read_only}}}
    writing: {workload: {oltp: {profile: read_write}}}
arm: transactions
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps, secondary: [statements_per_s, latency_ns_p99], guardrails: [failed_share]}
telemetry: {interval: 500ms}
"""

MARIADB_STUDY = """\
study: protocol
question: Does preparing statements pay for point selects?
system: {mariadb: {options: {innodb_buffer_pool_size: 128M}}}
workload:
  oltp: {profile: point_select, virtual_users: 4, ramp_up: 100ms, transactions: 150, think_time: 20ms, interval: 100ms}
factors:
  protocol:
    prepared: {}
    text: {workload: {oltp: {protocol: text}}}
arm: protocol
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps, secondary: [latency_ns_p50]}
telemetry: {interval: 500ms}
"""


POSTGRES_STUDY = """\
study: commits
question: What does waiting for the disk cost writers of PostgreSQL?
system: {postgres: {base_directory: BASE, options: {shared_buffers: 64MB}}}
workload:
  oltp: {profile: read_write, virtual_users: 4, ramp_up: 100ms, transactions: 150, think_time: 20ms, interval: 100ms}
factors:
  commit:
    waiting: {}
    lazy: {system: {postgres: {options: {synchronous_commit: off}}}}
arm: commit
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps, secondary: [latency_ns_p50, server_cpu_s]}
telemetry: {interval: 500ms}
"""


def test_profiles_are_compared_on_embedded_sqlite(here: Desk) -> None:
    here.fairtrial("run", here.study(SQLITE_STUDY))
    found = record.read(here.run)
    assert len(found.trials) == 4
    assert all(trial.valid for trial in found.trials), [trial.invalid_reason for trial in found.trials]
    for trial in found.trials:
        directory = found.trial_directory(trial.trial.id)
        result = json.loads((directory / "result.json").read_text())
        ((profile, outcome),) = result["transactions"].items()
        assert profile == {"reading": "read_only", "writing": "read_write"}[trial.levels["profile"]]
        assert outcome["committed"] == trial.scalars["transactions"] == 60
        statements = {"reading": 14, "writing": 18}[trial.levels["profile"]]
        statements += 2 if trial.levels["transactions"] == "explicit" else 0
        assert outcome["statements"] == 60 * statements
        ratio = trial.scalars["statements_per_s"] / trial.scalars["throughput_tps"]
        assert ratio == pytest.approx(statements)
        timeline = pl.read_parquet(directory / "timeline.parquet").filter("measured")
        assert timeline[f"{profile}_committed"].sum() == 60
        assert [check.name for check in trial.checks] == ["rows", "keys", "text"]
        assert all(check.violations == 0 for check in trial.checks)
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    here.fairtrial("verify", here.run)


@pytest.mark.servers
@pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root")
def test_protocols_are_compared_on_a_private_mariadb(here: Desk) -> None:
    for known in here.state.glob("ceiling-*.json"):
        known.unlink()  # another desk's: here it is measured
    here.fairtrial("run", here.study(MARIADB_STUDY))
    found = record.read(here.run)
    assert len(found.trials) == 2
    for trial in found.trials:
        assert trial.valid, trial.invalid_reason
        assert trial.scalars["throughput_tps"] == pytest.approx(trial.scalars["statements_per_s"])
        assert trial.scalars["latency_ns_p50"] > 0
        assert trial.scalars["failed_share"] == 0
    assert len(list((here.state / "prepared").iterdir())) == 1
    here.fairtrial("verify", here.run)
    (place,) = found.places
    ceiling = place.facts["client_operations_per_core_s"]
    assert [json.loads(kept.read_bytes())["operations_per_core_s"] for kept in here.state.glob("ceiling-*.json")] == [
        ceiling
    ]
    assert f"{ceiling:,.0f}" in (here.run / "report" / "report.txt").read_text(encoding="utf-8")


ENGINES_STUDY = """\
study: engines
system: {mariadb: {options: {innodb_buffer_pool_size: 64M, plugin_load_add: ha_archive}}}
workload: {oltp: {profile: point_select, table_size: 1000, ramp_up: 100ms, transactions: 100, interval: 100ms}}
factors: {engine: {innodb: {}, aria: {system: {mariadb: {options: {default_storage_engine: Aria}}}}}}
arm: engine
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps}
"""


@pytest.mark.servers
@pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root")
def test_tables_have_the_engine_that_an_arm_sets(here: Desk) -> None:
    here.fairtrial("run", here.study(ENGINES_STUDY))
    trials = record.read(here.run).trials
    assert all(trial.valid for trial in trials), [trial.invalid_reason for trial in trials]
    assert {trial.options["plugin_load_add"] for trial in trials} == {"ha_archive.so"}
    made = {
        trial.trial.arm: {path.suffix for path in (here.state / "prepared" / str(trial.data.key)).rglob("sbtest1.*")}
        for trial in trials
    }
    assert made == {"innodb": {".frm", ".ibd"}, "aria": {".frm", ".MAI", ".MAD"}}
    assert len({trial.data.content_sha256 for trial in trials}) == 1


@pytest.mark.servers
@pytest.mark.skipif(POSTGRES is None, reason="needs postgres: `make test` installs it when run as root")
def test_writers_are_compared_on_a_private_postgresql(here: Desk) -> None:
    assert POSTGRES is not None
    here.fairtrial("run", here.study(POSTGRES_STUDY.replace("BASE", str(POSTGRES.parents[1]))))
    found = record.read(here.run)
    assert len(found.trials) == 2
    for trial in found.trials:
        assert trial.valid, trial.invalid_reason
        assert trial.scalars["statements_per_s"] > 15 * trial.scalars["throughput_tps"] > 0
        assert trial.scalars["server_cpu_s"] > 0
        assert trial.options["autovacuum"] == "on"
        processes = pl.read_parquet(found.trial_directory(trial.trial.id) / "telemetry-process-server.parquet")
        assert int(processes["processes"].to_numpy().max()) >= 1 + 4 + 4, "main, four of its own, four users at least"
        assert all(check.violations == 0 for check in trial.checks)
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    here.fairtrial("verify", here.run)


def test_a_misspelt_distribution_is_said_before_anything_starts(here: Desk) -> None:
    done = here.fairtrial("run", here.study(SQLITE_STUDY), "--set", "workload.oltp.distribution=normal", code=2)
    assert "workload.oltp.distribution" in done.stderr
    assert not here.runs


OPEN_STUDY = """\
study: rates
question: How late are transactions at a rate that one user can serve, and at one that it cannot?
system: {sqlite: {pragmas: {journal_mode: WAL, synchronous: OFF}}}
workload: {oltp: {profile: point_select, table_size: 2000, ramp_up: 200ms, duration: 1s, interval: 100ms}}
factors:
  rate:
    easy: {workload: {oltp: {rate: 50, spacing: constant}}}
    hopeless: {workload: {oltp: {rate: 5000000}}}
arm: rate
trials: {blocks: 1, seed: 5}
metrics: {primary: lateness_ns_p50, secondary: [throughput_tps, queue_length_max, offered_per_s]}
telemetry: {interval: 500ms}
"""


def test_an_overload_is_late_and_whole_and_never_an_error(here: Desk) -> None:
    here.fairtrial("run", here.study(OPEN_STUDY))
    found = record.read(here.run)
    assert all(trial.valid for trial in found.trials), [trial.invalid_reason for trial in found.trials]
    for trial in found.trials:
        scalars = trial.scalars
        if trial.levels["rate"] == "easy":
            assert scalars["offered_per_s"] == 50
        else:
            assert scalars["offered_per_s"] == pytest.approx(5_000_000, rel=0.01)
            assert scalars["queue_length_max"] > scalars["transactions"]
            assert scalars["lateness_ns_p50"] > 100_000_000
        assert scalars["latency_ns_max"] >= scalars["lateness_ns_max"] * 0.99
        timeline = pl.read_parquet(found.trial_directory(trial.trial.id) / "timeline.parquet").filter("measured")
        assert timeline["waiting"].max() == scalars["queue_length_max"]
        assert timeline["arrived"].sum() == pytest.approx(scalars["offered_per_s"])
    here.fairtrial("verify", here.run)
