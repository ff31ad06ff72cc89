"""Purge governed beside real servers: in trials of a study, and from the command line; ended in every way there is."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from support.command_line import FAIRTRIAL, Desk, desk, eventually
from support.forking import Started
from support.machines.apart import apart, kill_at_work
from support.progress import Told

from fairtrial import record
from fairtrial.protocol.generated import MysqlEndpoint, Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.run.opening import opened
from fairtrial.run.trial import workspace
from fairtrial.study.resolved import Section
from fairtrial.systems import Launch
from fairtrial.systems.mariadb import Mariadb, MariadbParameters
from fairtrial.wire.open_place import OpenPlace

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root"),
]

STUDY = """\
study: governed
question: What does a governor of purge cost?
system: {mariadb: {options: {innodb_buffer_pool_size: 64M, innodb_flush_log_at_trx_commit: 0}}}
workload:
  oltp: {profile: update_non_index, table_size: 1000, virtual_users: 2, ramp_up: 1s, transactions: 300, rate: 50}
factors:
  purge:
    own: {}
    governed: {settings: {purge_governor: {period: 500ms, threads: {min: 2, max: 3}}}}
arm: purge
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps, secondary: [governor_cpu_ms_per_s, governor_period_s]}
telemetry: {interval: 500ms}
"""
# A trial lasts until something is killed in it, and uses little of a processor.
SPARING = STUDY.replace("transactions: 300, rate: 50", "transactions: 320, think_time: 50ms")
DECIDED = "work/*/out/governor-decisions.jsonl"  # below the state directory: of a governor that has begun to govern
THREE = ("--min-threads", "3", "--max-threads", "3", "--answer-limit", "10s")


@dataclass(frozen=True)
class Server:
    """A private server of this file's own."""

    place: OpenPlace
    socket: Path

    def ask(self, statement: str) -> list[list[str | None]]:
        endpoint = MysqlEndpoint(socket=str(self.socket), user="root", database="mysql")
        return self.place.native(SQL, Sql(endpoint=endpoint, statements=[statement]), timeout_s=120).rows

    @property
    def threads(self) -> int:
        ((found,),) = self.ask("SELECT @@global.innodb_purge_threads")
        return int(found or 0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Started once; every test leaves it as it was."""
    with (
        desk() as own,
        opened(
            Section({"local": {"state_directory": str(own.state)}}), directory=own.directory, progress=Told()
        ) as place,
    ):
        mariadb = Mariadb(MariadbParameters())
        work = workspace.work_directory(place, "server")
        launch = Launch(data_directory=work / "data", work_directory=work / "server", log_path=work / "server.log")
        for directory in (launch.data_directory, launch.work_directory):
            workspace.make_private(place, directory, user=place.server_user)
        mariadb.create(place, launch)
        instance = mariadb.start(place, launch)
        assert isinstance(instance.endpoint, MysqlEndpoint)
        yield Server(place, Path(str(instance.endpoint.socket)))
        mariadb.stop(place, instance, settled=False)


def governor_of(here: Desk) -> int | None:
    """The process id of the governor that works for a desk."""
    return next((pid for pid, command in here.processes().items() if "govern-purge" in command), None)


@contextlib.contextmanager
def governing(here: Desk, server: Server, *options: str) -> Iterator[Started]:
    """The command at work, once it has set three threads."""
    with here.start("govern", "purge", "--socket", server.socket, *THREE, *options) as started:
        try:
            eventually(lambda: server.threads == 3 or started.poll() is not None, "never governed")
            assert started.poll() is None, started.stdout.read() if started.stdout else ""
            yield started
        finally:
            if started.poll() is None:
                started.terminate()


def test_a_study_compares_a_governed_server_with_one_that_is_not(here: Desk) -> None:
    here.fairtrial("run", here.study(STUDY))
    found = record.read(here.run)
    trials = {trial.trial.arm: trial for trial in found.trials}
    assert all(trial.valid for trial in trials.values()), [trial.invalid_reason for trial in trials.values()]
    scalars = trials["governed"].scalars
    assert scalars["governor_period_s"] >= 0.45
    assert scalars["governor_cpu_ms_per_s"] > 0
    shares = [scalars["governor_held_share"], scalars["governor_threads_2_share"], scalars["governor_threads_3_share"]]
    assert sum(shares) == pytest.approx(1, abs=0.2), "of a window whose edges lie between two looks"
    assert scalars["governor_threads_1_share"] == 0, "below the bound"
    assert not any(name.startswith("governor_") for name in trials["own"].scalars)
    (effective,) = [each for each in trials["governed"].effective if each.name == "purge_governor"]
    assert json.loads(effective.asked)["period_ms"] == 500
    assert "innodb_purge_threads=4" in (effective.before or "")
    directory = next((here.run / "trials").glob("*.governed"))
    decisions = [json.loads(line) for line in (directory / "governor-decisions.jsonl").read_text().splitlines()]
    assert (decisions[0]["decision"], decisions[-1]["decision"]) == ("started", "restored")
    looks = pl.read_parquet(directory / "telemetry-governor.parquet")
    assert set(looks["threads"].to_list()) <= {2, 3, 4}
    assert not list((here.run / "trials").glob("*.own/governor-*"))
    here.fairtrial("verify", here.run)


@pytest.mark.waits
def test_a_governor_killed_in_a_trial_voids_the_block_and_the_run_goes_on(here: Desk) -> None:
    with apart(kill_at_work, str(here.directory), DECIDED, "govern-purge"):
        running = here.start("run", here.study(SPARING))
    output, _ = running.communicate()
    assert running.returncode == 0, output
    found = record.read(here.run)
    voided = [trial for trial in found.trials if not trial.valid]
    assert [trial.trial.arm for trial in voided] == ["governed"]
    assert "the purge governor failed (signal SIGKILL)" in (voided[0].invalid_reason or "")
    used = [
        trial for trial in found.trials if trial.valid and trial.trial.block == max(t.trial.block for t in found.trials)
    ]
    assert {trial.trial.arm for trial in used} == {"own", "governed"}


@pytest.mark.waits
def test_a_server_killed_beside_its_governor_voids_the_block_and_the_run_goes_on(
    here: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "stall_s=8")  # a server that is no more ends no transaction
    with apart(kill_at_work, str(here.directory), DECIDED, "mariadbd --defaults-file"):
        running = here.start("run", here.study(SPARING))
    output, _ = running.communicate()
    assert running.returncode == 0, output
    trials = record.read(here.run).trials
    (voided,) = [trial for trial in trials if not trial.valid]
    assert voided.trial.arm == "governed"
    assert "governor" not in (voided.invalid_reason or ""), "it is not to blame"
    assert len([trial for trial in trials if trial.valid]) >= 2


@pytest.mark.parametrize("ending", [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_in_order(here: Desk, server: Server, ending: tuple[signal.Signals, int]) -> None:
    number, code = ending
    before = server.threads
    with governing(here, server) as started:
        started.send_signal(number)
        output, _ = started.communicate()
    assert started.returncode == code, output
    assert "restored" in output
    assert "polls" in output.splitlines()[-1]
    assert server.threads == before


def test_a_killed_governor_is_restored_at_once_and_told(here: Desk, server: Server) -> None:
    before = server.threads
    with governing(here, server) as started:
        killed = governor_of(here)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        output, _ = started.communicate()
    assert started.returncode == 3, output
    assert "signal SIGKILL" in output
    assert server.threads == before


def test_a_killed_command_is_restored_by_its_agent(here: Desk, server: Server) -> None:
    before = server.threads
    with governing(here, server) as started:
        started.kill()
        started.wait()
        eventually(lambda: server.threads == before, "the agent has not restored it")
    eventually(lambda: not here.processes(), "processes were left behind")


def test_a_killed_agent_is_made_up_for_by_the_next(here: Desk, server: Server) -> None:
    before = server.threads
    with governing(here, server) as started:
        agents = [pid for pid, command in here.processes().items() if " serve" in command]
        for pid in agents:
            os.kill(pid, signal.SIGKILL)
        started.communicate()
        assert started.returncode == 3
    eventually(lambda: not here.processes(), "the governor outlives its agent")
    assert server.threads == 3, "nobody was left to restore it"
    here.fairtrial("govern", "purge", "--socket", server.socket, "--seconds", "0.2")
    assert server.threads == before


def test_its_time_is_over_and_every_decision_is_a_json_line(here: Desk, server: Server) -> None:
    before = server.threads
    done = here.fairtrial(
        "govern", "purge", "--socket", server.socket, *THREE, "--seconds", "0.5", "--period", "10ms", "--json"
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["decision"] for line in lines[:-1]] == ["started", "restored"]
    assert lines[-1]["restored"] is True
    assert lines[-1]["sets"] == 1
    assert server.threads == before


def test_a_reader_that_goes_away_ends_it_in_order(here: Desk, server: Server) -> None:
    """As `| head` does: the pipe is found broken by the thread that reads the agent, which is not to blame."""
    before = server.threads
    reader, writer = os.pipe()
    os.close(reader)
    command = [FAIRTRIAL, "govern", "purge", "--socket", server.socket, *THREE]
    with os.fdopen(writer, "w") as nobody:
        ended = subprocess.run(
            command, cwd=here.directory, env=here.environment, stdout=nobody, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")
    assert server.threads == before


def test_a_dry_run_sets_nothing_and_needs_no_lock(here: Desk, server: Server) -> None:
    with governing(here, server):
        done = here.fairtrial(
            "govern", "purge", "--socket", server.socket, "--dry-run", "--seconds", "0.3", "--max-threads", "8"
        )
        assert server.threads == 3
        assert ", 0 values set," in done.stdout
        refused = here.fairtrial("govern", "purge", "--socket", server.socket, "--seconds", "0.3", code=3)
        assert "fairtrial govern purge, process" in refused.stderr, "who holds the place"


def test_a_user_without_the_privilege_is_told_what_to_do(here: Desk, server: Server) -> None:
    server.ask("CREATE OR REPLACE USER watcher IDENTIFIED BY 'se cret'")
    server.ask("GRANT PROCESS ON *.* TO watcher")
    file = here.directory / "password"
    file.write_text("se cret\n", encoding="utf-8")
    login = ("--socket", server.socket, "--user", "watcher", "--password-file", file)
    refused = here.fairtrial("govern", "purge", *login, code=3)
    assert "SET GLOBAL innodb_purge_threads" in refused.stderr
    assert "--dry-run" in refused.stderr
    here.fairtrial("govern", "purge", *login, "--dry-run", "--seconds", "0.2")


def test_a_server_that_is_not_there_is_the_environment_s_fault(here: Desk) -> None:
    refused = here.fairtrial("govern", "purge", "--socket", here.directory / "nothing", code=3)
    assert "cannot govern" in refused.stderr
    assert "hint: check that the server runs" in refused.stderr
