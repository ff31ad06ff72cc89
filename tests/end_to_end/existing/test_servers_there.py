"""Servers that are there already: options as arms, everything restored whatever ends, and what is refused."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import skips
from support.command_line import Desk, desk, eventually
from support.machines.holding import Held
from support.machines.servers_there import KINDS, PASSWORD, VARIABLE, ServerThere, require_program, there

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.places import open_place
from fairtrial.run.existing import ExistingServers
from fairtrial.systems.existing import DataMark, ExistingServer
from fairtrial.systems.mariadb import Mariadb, MariadbParameters
from fairtrial.systems.postgres import Postgres, PostgresParameters
from fairtrial.wire.open_place import OpenPlace

pytestmark = pytest.mark.servers
STUDY = """\
study: there
system: {{{kind}: {{at: {{{at}, database: bench, password: {{env: {variable}}}{more}}}}}}}
workload: {workload}
factors: {{arm: {{own: {{}}, ours: {{system: {{{kind}: {{options: {{{option}}}}}}}}}}}}}
arm: arm
trials: {{blocks: {blocks}, seed: 4}}
metrics: {{primary: {primary}}}
telemetry: {{interval: 200ms}}
"""
USERS = "virtual_users: 2, think_time: 10ms, ramp_up: 100ms, transactions: 100"  # some are in it, however slow the disk
LOAD = f"{{oltp: {{profile: update_non_index, table_size: 1000, {USERS}}}}}"


@pytest.fixture(scope="module", params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[ServerThere]:
    require_program(request.param)
    with there(request.param) as started:
        yield started


@pytest.fixture(autouse=True)
def _begun_afresh(monkeypatch: pytest.MonkeyPatch, server: ServerThere) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    if server.process.poll() is not None:  # a test that failed has stopped it
        server.start()
    server.reset()


def study(  # noqa: PLR0913 - what the tests differ by
    here: Desk,
    server: ServerThere,
    *,
    workload: str | None = None,
    more: str = "",
    option: str | None = None,
    blocks: int = 1,
) -> Path:
    name, value, _ = server.option
    return here.study(
        STUDY.format(
            kind=server.kind,
            at=server.at(),
            variable=VARIABLE,
            more=more and f", {more}",
            workload=workload or f"{{command: {{run: {Held(here).run}}}}}",
            option=option or f"{name}: {value}",
            blocks=blocks,
            primary="elapsed_s" if workload is None else "throughput_tps",
        )
    )


def restored_by_the_next(here: Desk, server: ServerThere, before: str) -> None:
    eventually(lambda: not here.agent_pids(), "the end of a killed controller's agent, which holds the place")
    with open_place("local", {"state_directory": str(here.state)}, holder="the next") as agent:
        assert agent.hello.leftovers.failed == []
    assert server.snapshot() == before
    assert list((here.state / "originals").glob("*")) == []


def secret_files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]


def run_watched(here: Desk, study: Path) -> str:
    """What a run printed, that showed the password in no list of processes."""
    shown, before = set[bytes](), set(Path("/proc").iterdir())
    run = here.start("run", study)
    while run.poll() is None:
        for process in set(Path("/proc").iterdir()) - before:
            with contextlib.suppress(OSError):  # it has ended
                shown.add((process / "cmdline").read_bytes())
        time.sleep(0.02)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    assert [words for words in shown if PASSWORD.encode() in words] == []
    assert PASSWORD not in output
    assert secret_files(here.directory) + secret_files(here.state) == []
    return output


def test_an_option_is_an_arm_and_the_server_is_as_before(here: Desk, server: ServerThere) -> None:
    before = server.snapshot()
    output = run_watched(here, study(here, server, workload=LOAD))
    assert server.snapshot() == before
    found = record.read(here.run)
    name, _, read = server.option
    values = {trial.trial.arm: trial.options[name] for trial in found.trials}
    assert values["ours"].split()[0] == read
    assert values["own"] != values["ours"]
    assert all(trial.valid for trial in found.trials), output
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert all("server" in trial.telemetry for trial in found.trials)
    here.fairtrial("verify", here.run)


def test_sysbench_fills_and_drives_a_database_whose_name_differs_by_case_alone(here: Desk, server: ServerThere) -> None:
    skips.require("sysbench")
    for name in ("theirs", "Theirs"):
        server.ask(f"DROP DATABASE IF EXISTS {server.quoted(name)}")
    server.ask("CREATE DATABASE theirs")
    server.ask("CREATE TABLE kept (id integer)", "theirs")
    (here.directory / "broken.lua").write_text("function prepare() error('no tables') end\n")
    bulk = "{sysbench: {script: bulk_insert, threads: 1, options: {rate: 50}, ramp_up: 0s, events: 50}}"
    text = study(here, server, workload=bulk, more="restore: reload").read_text()
    text = text.replace("database: bench", "database: Theirs")
    failed = here.fairtrial("run", here.study(text.replace("script: bulk_insert", "file: broken.lua")), code=3)
    assert "no tables" in failed.stderr
    output = run_watched(here, here.study(text))  # the database that the failed load left is ours
    assert all(trial.valid for trial in record.read(here.runs[-1]).trials), output
    assert server.ask("SELECT count(*) FROM kept", "theirs").strip() == "0"


def test_a_command_restores_the_database_that_stays_ours_or_ends_the_run(here: Desk, server: ServerThere) -> None:
    before, script = server.snapshot(), here.directory / "restore.sh"
    restored = study(here, server, more=f"restore: {{command: sh {script}}}")
    done = here.fairtrial("run", restored, code=3)
    assert f"`sh {script}` failed (2)" in done.stderr
    assert f"fix system.{server.kind}.at.restore" in done.stderr
    steps = [
        server.client("DROP DATABASE bench"),
        server.client("CREATE DATABASE bench"),
        server.client("CREATE TABLE mine (id integer)", "bench"),
    ]
    lines = [f'export {server.secret}="${VARIABLE}"', "set -e", *map(shlex.join, steps), f"echo >> {script}.done"]
    script.write_text("\n".join(lines))
    here.fairtrial("run", restored)
    assert len(Path(f"{script}.done").read_text()) == len(record.read(here.runs[-1]).trials) == 2
    assert server.ask("SELECT count(*) FROM mine", "bench").strip() == "0"
    assert server.ask("SELECT made FROM fairtrial_made", "bench").strip() == "1"
    assert server.snapshot() == before


def test_an_agent_that_is_killed_leaves_what_the_next_command_restores(here: Desk, server: ServerThere) -> None:
    before, held = server.snapshot(), Held(here)
    held.hold()
    run = here.start("run", study(here, server))
    eventually(lambda: server.value() == server.option[2], "the option in effect")
    agent = here.agent_pid()
    os.kill(run.pid, signal.SIGSTOP)  # else it opens the next agent, which restores everything
    os.kill(agent, signal.SIGKILL)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    assert server.value() == server.option[2]
    (originals,) = (here.state / "originals").glob("*")
    assert originals.stat().st_mode & 0o777 == 0o600
    assert secret_files(here.state) == [originals]
    assert PASSWORD not in "".join(here.processes().values())
    held.release()
    restored_by_the_next(here, server, before)
    assert secret_files(here.directory) == []


def test_a_controller_that_is_killed_has_an_agent_that_restores(here: Desk, server: ServerThere) -> None:
    before, held = server.snapshot(), Held(here)
    held.hold()
    run = here.start("run", study(here, server))
    eventually(lambda: server.value() == server.option[2], "the option in effect")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    eventually(lambda: here.processes() == {}, "the agent's end")
    assert server.snapshot() == before
    held.release()


@pytest.mark.parametrize(("seed", "first"), [(4, "ours"), (2, "own")])
def test_what_somebody_else_sets_meanwhile_makes_the_trial_invalid_and_stays(
    here: Desk, server: ServerThere, *, seed: int, first: str
) -> None:
    before, held, original = server.snapshot(), Held(here), server.value()
    held.hold()
    run = here.start("run", here.study(study(here, server).read_text().replace("seed: 4", f"seed: {seed}")))
    eventually(held.is_running, "a trial under way, not a rehearsal of it")
    eventually(lambda: server.value() == (server.option[2] if first == "ours" else original), "the option in effect")
    server.set_otherwise()
    held.release()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    (invalid,) = [trial for trial in record.read(here.run).trials if not trial.valid]
    assert invalid.trial.arm == first
    said = invalid.invalid_reason.split("; the kernel killed")[0]  # in another test's container: ours might be in any
    assert said == f"changed by another process during the trial: {server.option[0]}"
    assert server.value() not in (original, server.option[2])
    server.reset()
    assert server.snapshot() == before


def test_a_database_of_somebody_elses_is_named_twice_or_not_touched(here: Desk, server: ServerThere) -> None:
    server.ask("DROP DATABASE IF EXISTS theirs")
    server.ask("CREATE DATABASE theirs")
    try:
        server.ask("CREATE TABLE kept (id integer)", "theirs")
        before, databases = server.snapshot(), server.databases()
        text = study(here, server).read_text().replace("database: bench", "database: theirs")
        done = here.fairtrial("run", here.study(text), code=3)
        assert "theirs on" in done.stderr
        assert "is not one that fairtrial made: nothing was changed" in done.stderr
        assert server.ask("SELECT count(*) FROM kept", "theirs").strip() == "0"
        assert (server.snapshot(), server.databases()) == (before, databases)
        twice = text.replace("database: theirs", "database: theirs, may_overwrite: theirs")
        here.fairtrial("run", here.study(twice))
        other = here.fairtrial(
            "run", here.study(twice.replace("may_overwrite: theirs", "may_overwrite: bench")), code=2
        )
        assert "expected the database's name 'theirs' again" in other.stderr
    finally:
        server.ask("DROP DATABASE theirs")


def test_what_needs_a_restart_is_refused_by_name(here: Desk, server: ServerThere) -> None:
    before, databases = server.snapshot(), server.databases()
    name, value = server.fixed
    done = here.fairtrial("run", study(here, server, option=f"{name}: {value}"), code=3)
    assert name in done.stderr
    assert "takes effect only when" in done.stderr
    assert "nothing was changed" in done.stderr
    assert (server.snapshot(), server.databases()) == (before, databases)


def test_an_option_that_no_server_has_is_refused_before_anything_is_changed(here: Desk, server: ServerThere) -> None:
    done = here.fairtrial("run", study(here, server, option="work_men: 1"), code=3)
    assert "work_men: not a" in done.stderr


def test_a_second_study_is_refused_and_told_by_whom(here: Desk, server: ServerThere) -> None:
    held = Held(here)
    held.hold()
    run = here.start("run", study(here, server))
    eventually(lambda: server.value() == server.option[2], "the option in effect")
    with desk() as other:
        done = other.fairtrial("run", study(other, server), code=3)
        assert f"another study uses {server.kind} on" in done.stderr
        assert "boss" in done.stderr
        assert "since" in done.stderr if server.kind == "postgres" else "connection" in done.stderr
        if server.kind == "postgres":
            assert here.run.name in done.stderr
    held.release()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output


def test_a_wrong_password_is_told_and_shown_nowhere(
    here: Desk, server: ServerThere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "wrong!word")
    done = here.fairtrial("run", study(here, server), code=3)
    assert "authentication failed" in done.stderr or "Access denied" in done.stderr
    assert "wrong!word" not in done.stdout + done.stderr
    monkeypatch.delenv(VARIABLE)
    assert VARIABLE in here.fairtrial("run", study(here, server), code=3).stderr


def test_a_server_that_goes_mid_trial_ends_the_run_in_plain_words_and_is_restored_later(
    here: Desk, server: ServerThere
) -> None:
    before, held = server.snapshot(), Held(here)
    held.hold()
    run = here.start("run", study(here, server))
    eventually(lambda: server.value() == server.option[2], "the option in effect")
    server.stop(signal.SIGKILL if server.kind == "mariadb" else signal.SIGINT)
    held.release()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 3, output
    # Who asks next finds no server; who was asking has lost its connection.
    assert "cannot connect" in output or "connection_lost" in output
    assert "bug" not in output
    if server.kind == "postgres":  # what MariaDB was set to went with its process
        assert "the server had work_mem = 4096" in output
        assert "`fairtrial run` or `fairtrial doctor` at this place tries again" in output.replace("\n", " ")
    server.start()
    resumed = here.fairtrial("run", "--resume", here.run)
    assert ("1 settings restored" in resumed.stdout + resumed.stderr) == (server.kind == "postgres")
    assert server.snapshot() == before
    assert list((here.state / "originals").glob("*")) == []


def kill_once(here: Desk, server: ServerThere, draw: random.Random) -> bool:
    """Kills the controller, the agent or both at a random moment; whether the option was set then."""
    run = here.start("run", study(here, server, workload=LOAD))
    original = server.value()
    eventually(lambda: any("fairtrial-agent serve" in each for each in here.processes().values()), "an agent")
    if draw.random() < 0.5:  # half of the moments are drawn from the seconds in which there is something to restore
        eventually(lambda: server.value() != original or run.poll() is not None, "the option in effect, or the end")
        time.sleep(draw.uniform(0, 1))
    else:
        time.sleep(draw.uniform(0, 7))
    was_set = server.value() != original
    victims = draw.choice([("controller",), ("agent",), ("controller", "agent"), ("agent", "controller")])
    for victim in victims:
        with contextlib.suppress(ProcessLookupError, ValueError):  # it has ended
            os.kill(run.pid if victim == "controller" else here.agent_pid(), signal.SIGKILL)
    run.communicate(timeout=300)
    return was_set


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
def test_whatever_is_killed_nothing_stays_changed(here: Desk, server: ServerThere, kills: int) -> None:
    before, draw = server.snapshot(), random.Random(kills)
    changed = 0
    for _ in range(kills):
        changed += kill_once(here, server, draw)
        restored_by_the_next(here, server, before)
    print(f"{server.kind}: {kills} kills, {changed} while the option was set")  # noqa: T201 - for who runs the long one


POSTGRES, MARIADB = (pytest.mark.parametrize("server", [kind], indirect=True) for kind in ("postgres", "mariadb"))


@pytest.fixture
def place(here: Desk) -> Iterator[OpenPlace]:
    with open_place("local", {"state_directory": str(here.state)}, holder="a test") as agent:
        yield OpenPlace(agent)


def existing(server: ServerThere, options: dict[str, str] | None = None, **at: str) -> ExistingServer:
    """The server as a trial has it."""
    where = dict(part.split(": ") for part in server.at().split(", "))
    document = {
        "at": {**where, "database": "bench", "password": {"env": VARIABLE}, **at},
        "options": options or {},
    }
    if server.kind == "postgres":
        found: ExistingServer | None = Postgres(PostgresParameters.model_validate(document)).existing()
    else:
        found = Mariadb(MariadbParameters.model_validate(document)).existing()
    assert found is not None
    return found


def require(arm: ExistingServer, place: OpenPlace) -> None:
    arm.require_settable(place)
    arm.require_restorable(place)


def test_a_copy_of_a_database_of_ours_is_somebody_elses(place: OpenPlace, server: ServerThere) -> None:
    ours, mark = existing(server), DataMark(made=True, key="k")
    for name in ("bench", "copy"):
        server.ask(f"DROP DATABASE IF EXISTS {name}")
    ours.recreate(place, "bench")
    ours.note(place, "bench", mark)
    if server.kind == "postgres":
        server.ask("ALTER DATABASE bench SET search_path = elsewhere")
        server.ask("CREATE DATABASE copy TEMPLATE bench")
    else:
        server.ask("CREATE DATABASE copy")
        server.ask("CREATE TABLE copy.fairtrial_made AS SELECT * FROM bench.fairtrial_made")
    assert (ours.mark(place, "bench"), ours.mark(place, "copy")) == (mark, DataMark(made=False))
    with pytest.raises(PlaceError, match=r"the database copy on .* is not one that fairtrial made"):
        existing(server, database="copy").require_own(place)
    if server.kind == "postgres":
        ours.recreate(place, "other", template="bench")
        assert ours.mark(place, "other") == mark
        server.ask("DROP DATABASE other")
        server.ask("DROP DATABASE bench")
        server.ask("ALTER DATABASE copy RENAME TO bench")
        assert ours.mark(place, "bench") == DataMark(made=False)
        server.ask("DROP DATABASE bench")
    else:
        server.ask("DROP DATABASE copy")


@MARIADB
def test_what_moves_along_with_an_option_is_restored(place: OpenPlace, server: ServerThere) -> None:
    server.ask("SET GLOBAL collation_server = 'utf8mb4_bin'")
    before = server.snapshot()
    arm = existing(server, {"innodb_io_capacity": "5000", "character_set_server": "latin2"})
    require(arm, place)
    assert server.snapshot() == before
    arm.set_options(place)
    moved = "SELECT @@GLOBAL.innodb_io_capacity_max, @@GLOBAL.collation_server"
    assert server.ask(moved).split() == ["10000", "latin2_general_ci"]
    assert place.agent.undo().failed == []
    assert server.snapshot() == before
    server.ask("SET GLOBAL collation_server = DEFAULT")


@MARIADB
def test_an_option_that_could_not_be_restored_is_named_and_left(place: OpenPlace, server: ServerThere) -> None:
    before = server.snapshot()
    for name, value in {
        "innodb_lru_flush_size": "64",
        "thread_pool_size": "4",
        "innodb_monitor_enable": "all",
        "max_user_connections": "5",
        "system_versioning_asof": "2020-01-01",
    }.items():
        with pytest.raises(PlaceError, match=f"{name}: its value .* could not be restored: .*: nothing was changed"):
            existing(server, {name: value}).require_restorable(place)
    assert server.snapshot() == before
    assert list(Path(place.state_directory / "originals").glob("*")) == []


@POSTGRES
def test_edits_of_others_that_a_reload_would_read_are_refused(place: OpenPlace, server: ServerThere) -> None:
    arm, refusal = existing(server, {"work_mem": "8MB"}), "maintenance_work_mem: edited in a configuration file"
    require(arm, place)
    edits = {"SET maintenance_work_mem = '77777777B'": "75955kB", "RESET maintenance_work_mem": "64MB"}
    for edit, value in edits.items():
        server.ask(f"ALTER SYSTEM {edit}")
        with pytest.raises(PlaceError, match=refusal):
            require(arm, place)
        time.sleep(1.1)  # times of files are of whole seconds, and the server rounds what it was given
        server.ask("SELECT pg_reload_conf()")
        while server.ask("SHOW maintenance_work_mem").strip() != value:
            time.sleep(0.05)
        require(arm, place)


@POSTGRES
def test_a_user_who_may_not_see_what_is_set_is_told_what_to_grant(place: OpenPlace, server: ServerThere) -> None:
    server.ask("DROP DATABASE IF EXISTS bench")
    server.ask(f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}'")
    try:
        with pytest.raises(PlaceError, match="permission denied") as refused:
            require(existing(server, {"work_mem": "8MB"}, user="plain"), place)
        assert "GRANT SELECT ON pg_file_settings TO plain" in refused.value.hint
        server.ask(refused.value.hint.removeprefix("as a superuser: "))
        arm = existing(server, {"work_mem": "8MB"}, user="plain")
        with pytest.raises(PlaceError, match=r"work_mem: its value 4096 could not be restored: .*permission denied"):
            require(arm, place)
        server.ask("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO plain")
        server.ask("GRANT ALTER SYSTEM ON PARAMETER work_mem TO plain")
        require(arm, place)
        server.ask("CREATE DATABASE bench OWNER plain")
        arm.set_options(place)
        assert server.value() == "8192"
        assert place.agent.undo().failed == []
        assert server.value() == "4096"
    finally:
        server.ask("DROP DATABASE IF EXISTS bench")
        server.ask("DROP OWNED BY plain")
        server.ask("DROP ROLE plain")


def test_an_option_that_may_hold_a_secret_is_watched_and_not_recorded(place: OpenPlace, server: ServerThere) -> None:
    name, change, reset = {
        "postgres": ("archive_cleanup_command", "ALTER SYSTEM SET {} = 'false'", "ALTER SYSTEM RESET {}"),
        "mariadb": ("init_connect", "SET GLOBAL {} = 'SET @b = 2'", "SET GLOBAL {} = DEFAULT"),
    }[server.kind]
    reload = "SELECT pg_reload_conf()" if server.kind == "postgres" else "SELECT 1"
    arm = existing(server, {name: "SET @a = 1"})
    arm.recreate(place, "bench")
    try:
        instance = arm.start(place)
        assert name not in instance.options
        assert "@a" not in repr(instance)
        assert arm.changed(place, instance, arm.options) == []
        for statement in (change.format(name), reload):
            server.ask(statement)
        eventually(lambda: arm.changed(place, instance, arm.options) == [name], "the change")
    finally:
        place.agent.undo()
        for statement in (reset.format(name), reload):
            server.ask(statement)


def test_one_server_by_two_names_is_locked_once(here: Desk, place: OpenPlace, server: ServerThere) -> None:
    link = here.directory / "again"
    link.symlink_to(server.directory / "socket")
    key = "socket_directory" if server.kind == "postgres" else "socket"
    one = existing(server)
    two = existing(server, None, **{key: str(one.at.socket_path).replace(str(link.readlink()), str(link))})
    servers = ExistingServers(place, "a run")
    servers.hold(one)
    servers.hold(two)
    assert one.address != two.address
