"""TPC-C on real databases, driven as a user does."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.command_line import Desk, desk, eventually
from support.real_record import terminal

from fairtrial import record
from fairtrial.record.events import RunInterrupted

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")

MARIADB_STUDY = """\
study: flushing
question: What does flushing the log at every commit cost?
system: {mariadb: {options: {innodb_buffer_pool_size: 128M}}}
workload: {tpcc: {warehouses: 1, virtual_users: 2, ramp_up: 200ms, transactions: 120, think_time: 5ms}}
factors:
  flushing:
    each: {system: {mariadb: {options: {innodb_flush_log_at_trx_commit: 1}}}}
    lazy: {system: {mariadb: {options: {innodb_flush_log_at_trx_commit: 0}}}}
arm: flushing
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tpm, secondary: [latency_ns_p99, new_order_latency_ns_p99]}
telemetry: {interval: 500ms}
"""

# The first trial lasts until its server is killed, also while the test stands still; the other need not.
SPARING = MARIADB_STUDY.replace("transactions: 120, think_time: 5ms", "transactions: 20, think_time: 50ms").replace(
    "each: {system", "each: {workload: {tpcc: {transactions: null, duration: 10s}}, system"
)

COUNTED_STUDY = """\
study: counted
system: {mariadb: {options: {innodb_buffer_pool_size: 32M, innodb_monitor_enable: module_purge}}}
workload: {tpcc: {warehouses: 1, ramp_up: 300ms, transactions: 800}}
factors:
  flushing:
    each: {system: {mariadb: {options: {innodb_flush_log_at_trx_commit: 1}}}}
    lazy: {system: {mariadb: {options: {innodb_flush_log_at_trx_commit: 0}}}}
  users:
    eight: {workload: {tpcc: {virtual_users: 8}}}
arm: flushing
expect: {eight: {dirty_pages_share: '>= 0.0001'}}
trials: {blocks: 1, seed: 5}
metrics:
  primary: history_list_length_max
  secondary: [checkpoint_age_share_max, row_lock_waits_per_transaction, buffer_pool_miss_share, server_deadlocks]
telemetry: {interval: 500ms, lock_waits: true}
"""
POSTGRES = shutil.which("postgres") or next(
    (str(found) for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None
)
POSTGRES_BASE = Path(POSTGRES or "/none/bin/postgres").resolve().parents[1]
POSTGRES_STUDY = f"""\
study: counted
system: {{postgres: {{base_directory: {POSTGRES_BASE}, options: {{shared_buffers: 128MB, max_wal_size: 1GB}}}}}}
workload: {{tpcc: {{warehouses: 1, virtual_users: 8, ramp_up: 300ms, transactions: 800}}}}
factors:
  waiting:
    each: {{system: {{postgres: {{options: {{synchronous_commit: "on"}}}}}}}}
    none: {{system: {{postgres: {{options: {{synchronous_commit: "off"}}}}}}}}
arm: waiting
trials: {{blocks: 1, seed: 5}}
metrics:
  primary: log_written_bytes
  secondary:
    [checkpoint_age_share_max, buffer_pool_miss_share, server_deadlocks, threads_running_mean, new_order_latency_ns_p99]
telemetry: {{interval: 500ms, lock_waits: true}}
"""
servers = [
    pytest.mark.servers,
    pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root"),
]
postgres_servers = [
    pytest.mark.servers,
    pytest.mark.skipif(POSTGRES is None, reason="needs postgres: `make test` installs it when run as root"),
]


@pytest.fixture(scope="class")
def preparing() -> Iterator[Desk]:
    """The desk whose state has the data of a class's studies: they are loaded once."""
    with desk() as found:
        yield found


@pytest.fixture
def loaded(here: Desk, preparing: Desk) -> Iterator[Desk]:
    """A desk of a test's own, beside data that other tests use too."""
    found = Desk(directory=here.directory, state=preparing.state)
    yield found
    assert found.processes() == {}, "processes were left behind"


def test_the_demonstration_runs_on_embedded_sqlite(here: Desk, real_run: Path) -> None:
    assert "report.html" in terminal(real_run)
    found = record.read(real_run)
    assert len(found.trials) == 12
    assert all(trial.valid for trial in found.trials), [trial.invalid_reason for trial in found.trials]
    for trial in found.trials:
        assert trial.options["journal_mode"].lower() == trial.levels["journal"]
        assert trial.scalars["throughput_tpm"] > 0
        assert all(check.violations == 0 for check in trial.checks)
        assert len(trial.checks) >= 10
    together = {of: sum(trial.scalars[f"throughput_{of}"] for trial in found.trials) for of in ("tpm", "nopm")}
    assert together["tpm"] > together["nopm"] > 0, "new orders are a part, and a second's draw may have none"
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    here.fairtrial("verify", real_run)


def test_the_figures_follow_from_the_raw_files(real_run: Path) -> None:
    found = record.read(real_run)
    for trial in found.trials:
        directory = found.trial_directory(trial.trial.id)
        result = json.loads((directory / "result.json").read_text())
        timeline = pl.read_parquet(directory / "timeline.parquet").filter(pl.col("measured"))
        committed = sum(outcome["committed"] for outcome in result["transactions"].values())
        assert timeline.select(pl.sum_horizontal(pl.selectors.ends_with("_committed"))).sum().item() == committed
        assert trial.window is not None
        minutes = (trial.window.end_ns - trial.window.start_ns) / 60e9
        by_rule = sum(outcome["rolled_back"] for outcome in result["transactions"].values())
        assert trial.scalars["throughput_tpm"] == pytest.approx((committed + by_rule) / minutes, rel=1e-9)


@pytest.mark.parametrize(
    ("study", "option"),
    [
        pytest.param(MARIADB_STUDY, "mariadb.options.innodb-buffer-pool-size", marks=servers),
        pytest.param(POSTGRES_STUDY, "postgres.options.Shared_Buffers", marks=postgres_servers),
    ],
)
def test_an_option_in_two_spellings_is_refused_before_anything_starts(here: Desk, study: str, option: str) -> None:
    done = here.fairtrial("run", here.study(study), "--set", f"system.{option}=1G", code=2)
    assert "given twice" in done.stderr
    assert not here.runs


class TestMariadb:
    pytestmark = servers

    def test_one_option_is_compared_on_a_private_server_whose_own_counters_are_metrics(self, loaded: Desk) -> None:
        loaded.fairtrial("run", loaded.study(COUNTED_STUDY))
        found = record.read(loaded.run)
        named = found.plan.metrics.primary + found.plan.metrics.secondary
        for trial in found.trials:
            assert trial.valid, trial.invalid_reason
            expected = {"each": "1", "lazy": "0"}[trial.levels["flushing"]]
            assert trial.options["innodb_flush_log_at_trx_commit"] == expected
            assert trial.scalars["server_cpu_s"] > 0
            assert all(check.violations == 0 for check in trial.checks)
            assert {"server", "lock_waits"} <= set(trial.telemetry), "eight users of one warehouse wait for its row"
            assert set(named) <= set(trial.scalars)
            assert trial.scalars["history_list_length_max"] > 0
            assert 0 < trial.scalars["checkpoint_age_share_max"] < 1
            assert 0 < trial.scalars["dirty_pages_share"] < 1
            directory = found.trial_directory(trial.trial.id)
            counters = pl.read_parquet(directory / "telemetry-server.parquet")
            assert counters["com_commit"].is_sorted()
            assert counters["purge_invoked"].null_count() == 0, "the study switched it on"
            pairs = pl.read_parquet(directory / "telemetry-lock_waits.parquet")
            assert (pairs["waiting_connection"] != pairs["blocking_connection"]).all()
            assert pairs["locked"].str.contains("fairtrial").any()
        assert len(found.trials) == 2
        assert len(list((loaded.state / "prepared").iterdir())) == 1
        loaded.fairtrial("verify", loaded.run)

    def test_a_refused_configuration_shows_the_servers_own_words(self, loaded: Desk) -> None:
        study = loaded.study(MARIADB_STUDY)
        done = loaded.fairtrial("run", study, "--set", "system.mariadb.options.innodb_no_such_option=1", code=3)
        assert "unknown variable 'innodb_no_such_option=1'" in done.stderr
        assert any(isinstance(event, RunInterrupted) for event in record.read(loaded.run).events)

    def test_an_option_the_server_changes_is_an_error_naming_both_values(self, loaded: Desk) -> None:
        study = loaded.study(MARIADB_STUDY)
        done = loaded.fairtrial("run", study, "--set", "system.mariadb.options.max_connections=1", code=3)
        assert "max_connections: expected 1, the server reports 10" in done.stderr

    @pytest.mark.waits
    def test_a_server_killed_mid_trial_voids_the_block_and_the_run_goes_on(self, loaded: Desk) -> None:
        process = loaded.start("run", loaded.study(SPARING))

        def server() -> int | None:
            if not list((loaded.state / "prepared").glob("[!.]*")):
                return None  # still loading
            commands = loaded.processes().items()
            return next((pid for pid, command in commands if "mariadbd --defaults-file" in command), None)

        def driving() -> bool:
            return any("fairtrial-agent tpcc-drive" in command for command in loaded.processes().values())

        eventually(lambda: server() is not None and driving(), "a server under load")
        victim = server()
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        found = record.read(loaded.run)
        (invalid,) = [trial for trial in found.trials if not trial.valid]
        assert "server" in invalid.invalid_reason
        assert sum(trial.valid for trial in found.trials) >= 2
        loaded.fairtrial("verify", loaded.run)


class TestPostgres:
    pytestmark = postgres_servers

    def test_one_option_is_compared_and_counters_wait_events_and_lock_waits_are_in_the_record(
        self, loaded: Desk
    ) -> None:
        loaded.fairtrial("run", loaded.study(POSTGRES_STUDY))
        found = record.read(loaded.run)
        named = found.plan.metrics.primary + found.plan.metrics.secondary
        for trial in found.trials:
            assert trial.valid, trial.invalid_reason
            assert trial.options["synchronous_commit"] == {"each": "on", "none": "off"}[trial.levels["waiting"]]
            assert not trial.options["listen_addresses"], "nobody else can reach it"
            assert trial.scalars["throughput_tpm"] > 0
            assert all(check.violations == 0 for check in trial.checks)
            assert {"server", "lock_waits"} <= set(trial.telemetry), "eight users of one warehouse wait for its row"
            assert set(named) <= set(trial.scalars)
            assert trial.scalars["log_written_bytes"] > 0
            assert 0 < trial.scalars["checkpoint_age_share_max"] < 1, "no checkpoint is due in seconds"
            directory = found.trial_directory(trial.trial.id)
            counters = pl.read_parquet(directory / "telemetry-server.parquet")
            assert counters["transactions_committed"].is_sorted()
            most = counters["checkpoint_age_max_bytes"].unique().to_list()
            assert most == [int(2**30 / 1.9)], "of max_wal_size and checkpoint_completion_target (0.9)"
            kinds = ("activity", "client", "io", "ipc", "light_lock", "timeout")
            events = [f"waiting_{kind}" for kind in kinds]
            assert all(counters[event].null_count() == 0 for event in events)
            assert counters["waiting_activity"].min() > 0, "processes of the server itself wait for work"
            assert counters["row_lock_current_waits"].max() > 0
            pairs = pl.read_parquet(directory / "telemetry-lock_waits.parquet")
            assert (pairs["waiting_connection"] != pairs["blocking_connection"]).all()
            assert pairs["mode"].str.contains("Lock").all()
            assert pairs["waiting_statement"].str.contains("warehouse|district|stock|customer").any()
        assert len(found.trials) == 2
        assert len(list((loaded.state / "prepared").iterdir())) == 1
        loaded.fairtrial("verify", loaded.run)

    def test_a_refused_configuration_shows_the_servers_own_words(self, loaded: Desk) -> None:
        study = loaded.study(POSTGRES_STUDY)
        done = loaded.fairtrial("run", study, "--set", "system.postgres.options.no_such_option=1", code=3)
        assert 'unrecognized configuration parameter "no_such_option"' in done.stderr
