"""Servers that are there already: options as arms, everything restored whatever ends, and what is refused."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, desk, eventually
from support.machines.holding import Held
from support.machines.servers_there import KINDS, PASSWORD, SBIN, VARIABLE, ServerThere, there

from fairtrial import record

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
LOAD = "{oltp: {profile: update_non_index, table_size: 1000, virtual_users: 2, ramp_up: 100ms, duration: 1s}}"


@pytest.fixture(scope="module", params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[ServerThere]:
    program = {"postgres": "/usr/lib/postgresql", "mariadb": shutil.which("mariadbd", path=SBIN)}[request.param]
    if program is None or not Path(program).exists():
        pytest.skip(f"needs {request.param}")
    with there(request.param) as started:
        yield started


@pytest.fixture(autouse=True)
def _begun_afresh(monkeypatch: pytest.MonkeyPatch, server: ServerThere) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
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


def restored_by_doctor(here: Desk, server: ServerThere, before: str) -> None:
    done = here.fairtrial("doctor", code=None)
    assert server.snapshot() == before, done.stdout + done.stderr
    assert list((here.state / "originals").glob("*")) == []


def secret_files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]


def test_an_option_is_an_arm_and_the_server_is_as_before(here: Desk, server: ServerThere) -> None:
    before = server.snapshot()
    done = here.fairtrial("run", study(here, server, workload=LOAD))
    assert server.snapshot() == before
    found = record.read(here.run)
    name, _, read = server.option
    values = {trial.trial.arm: trial.options[name] for trial in found.trials}
    assert values["ours"].split()[0] == read
    assert values["own"] != values["ours"]
    assert all(trial.valid for trial in found.trials), done.stdout
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert all("server" in trial.telemetry for trial in found.trials)
    here.fairtrial("verify", here.run)
    assert secret_files(here.directory) == []
    assert PASSWORD not in done.stdout + done.stderr


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
    restored_by_doctor(here, server, before)
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


def test_what_somebody_else_sets_meanwhile_makes_the_trial_invalid_and_stays(here: Desk, server: ServerThere) -> None:
    before, held = server.snapshot(), Held(here)
    original = server.value()
    held.hold()
    run = here.start("run", study(here, server))
    eventually(lambda: server.value() == server.option[2], "the option in effect")
    server.set_otherwise()
    held.release()
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 0, output
    (invalid,) = [trial for trial in record.read(here.run).trials if not trial.valid]
    assert invalid.invalid_reason == f"changed by another process during the trial: {server.option[0]}"
    assert server.value() not in (original, server.option[2])
    server.reset()
    assert server.snapshot() == before


def test_a_database_of_somebody_elses_is_named_twice_or_not_touched(here: Desk, server: ServerThere) -> None:
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
    output, _ = run.communicate(timeout=120)
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
    output, _ = run.communicate(timeout=120)
    server.start()
    assert run.returncode == 3, output
    # Who asks next finds no server; who was asking has lost its connection.
    assert "cannot connect" in output or "connection_lost" in output
    assert "bug" not in output
    restored_by_doctor(here, server, before)


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
        try:
            os.kill(run.pid if victim == "controller" else here.agent_pid(), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            continue  # it has ended
    run.communicate(timeout=120)
    return was_set


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
def test_whatever_is_killed_nothing_stays_changed(here: Desk, server: ServerThere, kills: int) -> None:
    before, draw = server.snapshot(), random.Random(kills)
    changed = 0
    for _ in range(kills):
        changed += kill_once(here, server, draw)
        restored_by_doctor(here, server, before)
    print(f"{server.kind}: {kills} kills, {changed} while the option was set")  # noqa: T201 - for who runs the long one
