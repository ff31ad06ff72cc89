"""A place that answers, against an agent in memory: programs run there, and how they fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from types import NoneType

import pytest

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.subcommands import SETTLE, Subcommand
from fairtrial.wire import Agent
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.wire.open_place import OUTPUT_LINES, OpenPlace


@contextmanager
def place(ran: FakeProgram) -> Iterator[tuple[OpenPlace, list[wire.Spawn]]]:
    """A place where every program ends as told, and what was asked for there."""
    asked: list[wire.Spawn] = []

    def run(spawn: wire.Spawn) -> FakeProgram:
        asked.append(spawn)
        return ran

    with Agent(FakeTransport(run=run), holder="a test", lock=True) as agent:
        yield OpenPlace(agent=agent), asked


def test_it_knows_where_the_agent_keeps_its_things() -> None:
    with place(FakeProgram()) as (opened, _):
        assert opened.state_directory == PurePosixPath("/var/lib/fairtrial")


def test_a_program_gives_its_code_and_both_streams() -> None:
    with place(FakeProgram(code=3, stdout=["one"], stderr=["two"])) as (opened, asked):
        finished = opened.execute(["/usr/bin/thing", "-v"], user="nobody")
    assert finished.code == 3
    assert sorted(finished.output.splitlines()) == ["one", "two"]
    assert (asked[0].name, asked[0].argv, asked[0].user) == ("thing", ["/usr/bin/thing", "-v"], "nobody")


def test_of_a_talkative_program_the_end_is_kept() -> None:
    lines = [f"line {index}" for index in range(OUTPUT_LINES + 50)]
    with place(FakeProgram(stdout=lines)) as (opened, _):
        assert opened.execute(["talk"]).output.splitlines() == lines[50:]


def test_a_program_that_must_succeed_and_fails_is_quoted_with_the_callers_hint() -> None:
    failing = FakeProgram(code=1, stderr=["mkfs: no such device"])
    with place(failing) as (opened, _), pytest.raises(PlaceError, match="no such device") as failure:
        opened.require(["mkfs", "/dev/none"], hint="name another device")
    assert "`mkfs /dev/none` failed (1)" in str(failure.value)
    assert failure.value.hint == "name another device"


def test_a_program_that_must_succeed_and_does_gives_what_it_printed() -> None:
    with place(FakeProgram(stdout=["10.11.6"])) as (opened, _):
        assert opened.require(["mariadbd", "--version"], hint="") == "10.11.6"


def test_a_program_that_hangs_is_not_waited_for_without_end() -> None:
    stopped = r"`sleep 1000` did not end within 0\.01 s and was stopped"
    with place(FakeProgram(code=None)) as (opened, _), pytest.raises(PlaceError, match=stopped) as failure:
        opened.execute(["sleep", "1000"], timeout_s=0.01)
    assert "load and the disks" in failure.value.hint


def test_a_native_subcommand_gets_its_parameters_as_one_document() -> None:
    asked = wire.Settle(dirty_bytes=5, timeout_s=1.0, drop_caches=False)
    settled = wire.Settled(dirty_bytes=0, waited_s=0.5, dropped=False)
    with place(FakeProgram(stdout=[settled.model_dump_json()])) as (opened, spawns):
        result = opened.native(SETTLE, asked, timeout_s=60.0, environment={"LANG": "C"}, processors=[1])
    assert result == settled
    assert wire.Settle.model_validate_json(spawns[0].stdin or "") == asked
    assert (spawns[0].environment, spawns[0].processors) == ({"LANG": "C"}, [1])


def test_a_drive_leaves_its_result_in_files_whatever_its_last_line() -> None:
    asked = wire.FileCountersOf(path="/d")
    counting = Subcommand("count", wire.FileCountersOf, NoneType)
    with place(FakeProgram(stdout=['{"progress": "sampling"}', '{"cut": '])) as (opened, _):
        opened.native(counting, asked, timeout_s=60.0)
