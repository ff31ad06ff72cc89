"""The real pgbench as a workload, on a real PostgreSQL: what it says is what the record and the server say."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import polars as pl
import pytest
from private_postgres import DATABASE, USER, private_postgres
from support.command_line import Desk, eventually, shell_program
from support.machines.places import place_here
from support.pgbench import SCRIPTS, parameters

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import PostgresEndpoint, Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Drive, DriveOutcome
from fairtrial.workloads.pgbench import Pgbench, agreeing
from fairtrial.workloads.pgbench.parameters import PgbenchParameters

POSTGRES = next((found.parents[1] for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))), None)
STUDY = """\
study: by-pgbench
question: Does it matter how statements are sent?
system: {{postgres: {{base_directory: {base}, options: {{synchronous_commit: 'off'}}}}}}
workload: {{pgbench: {workload}}}
factors:
  protocol:
    each: {{workload: {{pgbench: {{protocol: simple}}}}}}
    once: {{workload: {{pgbench: {{protocol: prepared}}}}}}
arm: protocol
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: throughput_tps}}
"""
MIXED = (
    "{mix: {tpcb-like: 3, own.sql: 1}, init: make.sql, scale: 1, define: {rows: 7}, clients: 3, jobs: 2, ramp_up: 1s, "
    "transactions: 300}"
)
OWN = """\
\\set row random(1, :rows)
SELECT balance FROM own WHERE i = :row \\gset
BEGIN;
UPDATE own SET balance = :balance + 1 WHERE i = :row;
COMMIT;
\\sleep 50 ms
"""
MAKE = "CREATE TABLE own (i int PRIMARY KEY, balance int);\nINSERT INTO own SELECT generate_series(1, 7), 0;\n"

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(POSTGRES is None, reason="needs PostgreSQL with pgbench"),
]


@dataclass(frozen=True)
class Server:
    """A PostgreSQL of a test's own, and a place that reaches it."""

    place: OpenPlace
    directory: Path
    sockets: Path

    @property
    def endpoint(self) -> PostgresEndpoint:
        """Of the database that pgbench loads."""
        return PostgresEndpoint(socket_directory=str(self.sockets), port=5432, user=USER, database=DATABASE)

    def ask(self, statement: str) -> list[int]:
        """The one row of an answer."""
        asked = Sql(endpoint=self.endpoint, statements=[statement])
        (row,) = self.place.native(SQL, asked, timeout_s=60).rows
        return [int(value or 0) for value in row]

    def load(self, given: PgbenchParameters) -> str:
        """Fills the database; the content's hash."""
        return Pgbench(given).load(self.place, self.endpoint, on_progress=lambda _line: None).content_sha256

    def drive(self, given: PgbenchParameters) -> tuple[DriveOutcome, Path]:
        """Drives once; the trial's directory."""
        directory = Path(self.place.execute(["mktemp", "-d", "-p", str(self.directory)]).output)
        (directory / "work").mkdir()
        drive = Drive(
            endpoint=self.endpoint,
            seed=7,
            directory=PurePosixPath(directory),
            work_directory=PurePosixPath(directory / "work"),
            environment={"PGOPTIONS": "-c deadlock_timeout=10ms"},
            processors=None,
            on_progress=lambda _line: None,
        )
        return Pgbench(given).drive(self.place, drive), directory

    def processes(self, word: str) -> list[int]:
        """Those at work on this server, with a word in their command line."""
        wanted = f"PGHOST={self.sockets}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0") and word.encode() in (
                    entry / "cmdline"
                ).read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("pgbench")
    with private_postgres() as sockets, place_here(directory) as place:
        yield Server(place, directory, sockets)


def test_a_study_runs_to_its_report_and_every_number_is_found_again(here: Desk) -> None:
    (here.directory / "own.sql").write_text(OWN)
    (here.directory / "make.sql").write_text(MAKE)
    here.fairtrial("run", here.study(STUDY.format(base=POSTGRES, workload=MIXED)))
    found = record.read(here.run)
    assert [(trial.valid, trial.invalid_reason) for trial in found.trials] == [(True, "")] * 2
    for trial in found.trials:
        directory = found.trial_directory(trial.trial.id)
        printed = (directory / "log" / "load.log").read_text()
        assert f"number of transactions actually processed: {trial.scalars['transactions']:.0f}/300\n" in printed
        assert f"query mode: {trial.resolved.workload.root['pgbench']['protocol']}\n" in printed
        assert trial.window is not None
        slept_s = 0.05 * trial.scalars["own_latency_count"] / 3
        assert (trial.window.end_ns - trial.window.start_ns) / 1e9 > slept_s > 0, "what each client slept, and more"
        assert trial.scalars["latency_count"] == trial.scalars["transactions"]
        assert trial.scalars["own_latency_count"] < trial.scalars["tpcb_like_latency_count"]
        assert pl.read_parquet(directory / "transactions.parquet").height == trial.scalars["transactions"]
        assert trial.options["pgbench_version"].startswith("pgbench (PostgreSQL) ")
        assert trial.options["seed"] != trial.options["ramp_up_seed"]
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert "recomputed" in here.fairtrial("verify", here.run).stdout


def test_loaded_twice_its_tables_have_the_same_content_and_a_killed_load_leaves_nothing(server: Server) -> None:
    asked = parameters(scale=1, data={"fillfactor": 80, "partitions": 2})
    content = server.load(asked)
    failures: list[Exception] = []

    def too_much() -> None:
        try:
            server.load(parameters(scale=200))
        except PlaceError as error:
            failures.append(error)

    loading = threading.Thread(target=too_much)
    loading.start()
    eventually(lambda: server.processes("--initialize"), "pgbench loading")
    (pid,) = server.processes("--initialize")
    os.kill(pid, signal.SIGKILL)
    loading.join()
    assert "loading failed: pgbench ended with signal SIGKILL" in str(failures[0])
    assert server.load(asked) == content
    assert server.load(parameters(scale=1)) != content, "partitions are tables of their own"


def test_the_server_counts_the_same_transactions(server: Server) -> None:
    server.load(parameters(scale=1))
    others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    counts = (
        "SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()), idx_scan, "
        "(SELECT count(*) FROM pgbench_history) FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'"
    )
    clients = 3
    for script, scans in (("select-only", 1), ("tpcb-like", 2)):
        for protocol in ("simple", "extended"):
            # What a session counted is known to others when it is gone from the list.
            eventually(lambda: server.ask(others) == [0], "sessions before did not end")
            before = server.ask(counts)
            given = parameters(script=script, protocol=protocol, clients=clients, ramp_up=0, transactions=300)
            driven, directory = server.drive(given)
            assert driven.invalid_reason == ""
            assert agreeing.contradictions(directory, given) == []
            eventually(lambda: server.ask(others) == [0], "pgbench's sessions did not end")
            commits, scanned, paid = (now - then for now, then in zip(server.ask(counts), before, strict=True))
            assert scanned == 300 * scans
            assert paid == (300 if script == "tpcb-like" else 0)
            assert 300 <= commits < 600, "connections have transactions of their own, and so has every look"


def test_failures_and_retries_of_an_open_loop_are_those_it_reports(server: Server) -> None:
    server.load(parameters(scale=1))
    scripts = {"pay.sql": SCRIPTS["pay"], "dead.sql": SCRIPTS["dead"]}
    given = parameters(
        mix={name: {"weight": 1, "file": file} for name, file in scripts.items()},
        clients=4,
        jobs=2,
        rate=400,
        latency_limit="5ms",
        max_tries=2,
        ramp_up=0,
        transactions=800,
        interval="500ms",
    )
    driven, directory = server.drive(given)
    assert driven.invalid_reason == ""
    assert agreeing.contradictions(directory, given) == []
    found = Pgbench(given).scalars(directory, driven.window)
    assert found["retries"] > 0
    assert found["skipped"] + found["over_limit_share"] > 0
    window_s = (driven.window.end_ns - driven.window.start_ns) / 1e9
    assert found["arrived_per_s"] == pytest.approx(800 / window_s)
    assert window_s > 1.5, "no transaction begins before its time, of which the last is 2 s after the first"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("SELECT 1;\nSELECT 1/0;\n", "own.sql:2 aborted in command 1 query 0: ERROR:  division by zero"),
        ("BEGIN;\nSELECT 1;\n", "aborted: end of script reached without completing the last transaction"),
        ("\\set a nothing(1)\nSELECT :a;\n", 'own.sql:1: unexpected function name (nothing) in command "set"'),
    ],
)
def test_a_script_that_aborts_makes_a_trial_invalid_and_says_where(server: Server, script: str, said: str) -> None:
    own = {"name": "own.sql", "text": script}
    driven, _directory = server.drive(parameters(file=own, clients=2, ramp_up=0, transactions=10))
    assert said in driven.invalid_reason


def test_ramping_up_may_fail_as_well_and_an_unknown_option_is_named(server: Server) -> None:
    driven, _directory = server.drive(parameters(options={"frobnicate": 3}, ramp_up="1s"))
    assert driven.invalid_reason.startswith("ramping up: pgbench ended with exit code 1: ")
    assert "unrecognized option '--frobnicate=3'" in driven.invalid_reason


def test_sql_that_makes_no_data_is_named_with_its_file_and_line(server: Server) -> None:
    own, wrong = {"name": "own.sql", "text": OWN}, {"name": "make.sql", "text": f"{MAKE}CREATE TABLE own (i int);\n"}
    with pytest.raises(PlaceError, match=r"loading failed: psql ended with exit code 3: .*make\.sql:3: ERROR"):
        server.load(parameters(file=own, init=wrong))
    with pytest.raises(PlaceError, match="`init` did not create a table"):
        server.load(parameters(file=own, init={"name": "make.sql", "text": "SELECT 1;\n"}))


def test_a_server_killed_under_load_makes_a_trial_invalid(tmp_path: Path) -> None:
    with private_postgres() as sockets, place_here(tmp_path) as place:
        server = Server(place, tmp_path, sockets)
        server.load(parameters(scale=1))
        postmaster = int((sockets / "data" / "postmaster.pid").read_text().splitlines()[0])

        def kill() -> None:
            eventually(lambda: server.processes("--log"), "pgbench at work")
            eventually(lambda: server.ask("SELECT count(*) FROM pgbench_history")[0], "transactions")
            os.kill(postmaster, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        driven, _directory = server.drive(parameters(clients=2, ramp_up=0, duration="60s"))
        killing.join()
    assert driven.invalid_reason.startswith("pgbench ended with exit code 2: ")
    assert "aborted" in driven.invalid_reason
    assert (driven.window.end_ns - driven.window.start_ns) / 1e9 < 60


def test_another_pgbench_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell_program(tmp_path / "pgbench", "echo 'pgbench (PostgreSQL) 9.6.24'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/bin")
    with (
        place_here(tmp_path) as place,
        pytest.raises(PlaceError, match=r"`pgbench \(PostgreSQL\) 9.6.24`: expected pgbench 15 or"),
    ):
        Pgbench(parameters()).load(place, {"kind": "postgres"}, on_progress=lambda _line: None)
