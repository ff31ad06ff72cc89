"""What private servers have in common: started, waited for, and quoted when they fail."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import TypeAdapter
from support.machines.places import place_in_memory, spawned

from fairtrial.errors import SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.study.tree.nodes import Position, Tree, from_plain, plain
from fairtrial.study.tree.problems import Problems, validate
from fairtrial.systems import Launch, server
from fairtrial.systems.mariadb import MariadbParameters
from fairtrial.wire import Limits
from fairtrial.wire.fake import FakeProgram

LAUNCH = Launch(
    data_directory=PurePosixPath("/w/data"),
    work_directory=PurePosixPath("/w/server"),
    log_path=PurePosixPath("/w/log/server.log"),
    environment={"LD_PRELOAD": "lib.so"},
    processors=(2, 3),
)
LOOKS = ("looks", "ready")


def starting(*, looks_fail: int = 0, ends: bool = False) -> Callable[[wire.Spawn], FakeProgram]:
    """A server that is ready after so many looks, or ends at once."""
    looks = itertools.count()

    def run(spawn: wire.Spawn) -> FakeProgram:
        match spawn.name:
            case "server":
                return FakeProgram(code=1) if ends else FakeProgram(code=None)
            case "looks":
                return FakeProgram(code=0 if next(looks) >= looks_fail else 1)
            case "tail":
                return FakeProgram(stdout=["[ERROR] cannot bind", "[ERROR] aborting"])
            case _:
                return FakeProgram()

    return run


def test_a_server_runs_in_its_directory_on_its_processors_with_one_log() -> None:
    with place_in_memory(starting()) as (place, fake):
        process = server.spawned(place, ["/bin/x", "--option"], LAUNCH)
        asked = spawned(fake, "server").model_dump(mode="json")
        process.signal(15)
    assert asked["argv"] == ["/bin/x", "--option"]
    assert asked["directory"] == "/w/server"
    assert asked["processors"] == [2, 3]
    assert asked["environment"] == {"LD_PRELOAD": "lib.so"}
    assert asked["stdout"] == asked["stderr"] == {"kind": "file", "path": "/w/log/server.log"}


def test_without_processors_it_may_use_all_of_them() -> None:
    free = Launch(LAUNCH.data_directory, LAUNCH.work_directory, LAUNCH.log_path)
    with place_in_memory(starting()) as (place, fake):
        server.spawned(place, ["/bin/x"], free).signal(15)
        assert spawned(fake, "server").processors is None


def wait(run: Callable[[wire.Spawn], FakeProgram], monkeypatch: pytest.MonkeyPatch, *, patience_s: float = 60.0) -> int:
    """Waits for a server; how often was looked."""
    monkeypatch.setattr(server, "POLL_S", 0.001)
    with place_in_memory(run, limits=Limits(start_s=patience_s)) as (place, fake):
        process = server.spawned(place, ["/bin/x"], LAUNCH)
        server.wait_until_ready(place, process, LAUNCH, looks=LOOKS, kind="mariadb")
        process.signal(15)
        return sum(isinstance(each, wire.Spawn) and each.name == "looks" for each in fake.requests)


@pytest.mark.parametrize("fails", [0, 1, 5])
def test_it_is_looked_at_until_it_is_ready_and_no_longer(fails: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait(starting(looks_fail=fails), monkeypatch) == fails + 1


def refused(run: Any, monkeypatch: pytest.MonkeyPatch, *, patience_s: float = 60.0) -> SystemStartError:
    with pytest.raises(SystemStartError) as caught:
        wait(run, monkeypatch, patience_s=patience_s)
    return caught.value


def test_one_that_ends_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(starting(looks_fail=10**6, ends=True), monkeypatch)
    assert "the mariadb server exited during startup; the end of its log:" in str(error)
    assert "[ERROR] cannot bind" in str(error)
    assert "system.mariadb.options" in error.hint


def test_one_that_never_answers_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(starting(looks_fail=10**6), monkeypatch, patience_s=0.05)
    assert "did not answer within 0.05 s" in str(error)
    assert "[ERROR] aborting" in str(error)


def test_as_many_lines_of_its_log_are_asked_for_as_a_reader_needs() -> None:
    with place_in_memory(starting()) as (place, fake):
        assert server.log_tail(place, LAUNCH.log_path) == "[ERROR] cannot bind\n[ERROR] aborting"
        asked = spawned(fake, "tail")
    assert asked.argv == ["tail", "-n", "25", "/w/log/server.log"]


def test_options_that_are_in_effect_are_no_error_and_others_are_all_named() -> None:
    server.require_in_effect([])
    with pytest.raises(SystemStartError, match="a: expected 1, the server reports 2; b is not a variable") as caught:
        server.require_in_effect(["a: expected 1, the server reports 2", "b is not a variable"])
    assert caught.value.hint == server.HINT


def test_an_option_under_two_spellings_is_noted_at_the_second_with_both() -> None:
    at = Position("study.yaml", 1, 1)
    options = from_plain({"innodb_io_capacity": 100, "innodb-io-capacity": 200}, at)
    assert isinstance(options, Tree)
    second = options.having("innodb-io-capacity", from_plain(200, Position("study.yaml", 7, 30)))
    problems, node = Problems(), Tree({"options": second}, at)
    validate(TypeAdapter(MariadbParameters), plain(node), node=node, prefix=("system", "mariadb"), problems=problems)
    (problem,) = problems
    assert (problem.line, problem.field) == (7, "system.mariadb.options.innodb-io-capacity")
    assert problem.message == "one option is given twice, as innodb_io_capacity and as innodb-io-capacity: keep one"
