"""Opening a place: what a killed run left is told and removed, and servers get a user that is not root."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.facts import ORDINARY

from fairtrial.places import Disk
from fairtrial.protocol import generated as wire
from fairtrial.run import opening
from fairtrial.study.resolved import Section
from fairtrial.wire import Agent
from fairtrial.wire.facts import ContainerFacts
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.wire.open_place import OpenPlace


class Left(FakeTransport):
    """An agent that found leftovers."""

    leftovers = wire.Leftovers(undone=0, killed=0, failed=[], overwritten=[])
    failing: tuple[str, ...] = ()

    def _welcome(self, number: int) -> wire.Welcome:
        return super()._welcome(number).model_copy(update={"leftovers": self.leftovers})

    def _step(self, request: wire.Change | wire.Undo) -> None:
        if isinstance(request, wire.Undo) and self.failing:
            self.say(wire.Undone(id=request.id, steps=0, failed=list(self.failing), disturbed=[]))
        else:
            super()._step(request)


FAR = Section({"ssh": {"host": "far"}})


class Notes:
    """The part of progress that opening uses."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def programs(user_id: int, users: tuple[str, ...]) -> Any:
    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name == "facts":
            return FakeProgram(stdout=[json.dumps({**ORDINARY, "user_id": user_id})])
        if spawn.name == "id":
            return FakeProgram(code=0 if spawn.argv[-1] in users else 1)
        return FakeProgram()

    return run


@contextmanager
def opened(
    monkeypatch: pytest.MonkeyPatch, fake: FakeTransport, notes: Notes
) -> Iterator[tuple[OpenPlace, dict[str, Any]]]:
    asked: dict[str, Any] = {}

    def open_place(kind: str, parameters: Any, *, holder: str, disk: Disk) -> Agent:
        asked.update(kind=kind, parameters=parameters, holder=holder, disk=disk)
        return Agent(fake, holder=holder, lock=True)

    monkeypatch.setattr(opening, "open_place", open_place)
    progress: Any = notes
    with opening.opened(FAR, directory=Path("runs/mine"), progress=progress) as place:
        yield place, asked


def test_the_place_is_asked_for_in_the_runs_name_and_old_work_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, notes = Left(run=programs(1000, ())), Notes()
    with opened(monkeypatch, fake, notes) as (place, asked):
        assert place.facts.user_id == 1000
        assert place.server_user is None
    assert (asked["kind"], asked["parameters"]) == ("ssh", {"host": "far"})
    assert asked["holder"].startswith("run mine by ")
    removed = [request.argv for request in fake.requests if isinstance(request, wire.Spawn) and request.name == "rm"]
    assert removed == [["rm", "-rf", "--one-file-system", "--", "/var/lib/fairtrial/work"]]
    assert notes.notes == []


def test_what_an_earlier_run_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, notes = Left(run=programs(1000, ())), Notes()
    fake.leftovers = wire.Leftovers(undone=2, killed=3, failed=["vm.swappiness: gone"], overwritten=[])
    with opened(monkeypatch, fake, notes):
        pass
    assert notes.notes == [
        "cleaned up after an earlier run: 2 settings restored, 3 processes ended",
        "left by an earlier run and not restorable: vm.swappiness: gone",
    ]


def test_what_somebody_had_changed_since_an_earlier_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, notes = Left(run=programs(1000, ())), Notes()
    file = '/proc/sys/vm/swappiness held "5" instead of "60"'
    fake.leftovers = wire.Leftovers(undone=1, killed=0, failed=[], overwritten=[file])
    with opened(monkeypatch, fake, notes):
        pass
    assert notes.notes[1:] == [f"restored although it had been changed since an earlier run: {file}"]


def test_nothing_is_measured_under_settings_of_an_earlier_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, notes = Left(run=programs(1000, ())), Notes()
    fake.leftovers = wire.Leftovers(undone=0, killed=0, failed=["vm.swappiness: gone"], overwritten=[])
    fake.failing = ("vm.swappiness: busy",)
    with (
        pytest.raises(opening.PlaceError, match=r"an earlier run left cannot be restored: vm\.swappiness: busy"),
        opened(monkeypatch, fake, notes),
    ):
        pytest.fail("trials ran with an arm of another run set")
    assert not [request for request in fake.requests if isinstance(request, wire.Spawn) and request.name == "rm"]


def test_nothing_is_measured_in_a_container_whose_machine_has_settings_of_an_earlier_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake, machine, notes = FakeTransport(run=programs(1000, ())), Left(run=programs(1000, ())), Notes()
    machine.leftovers = wire.Leftovers(undone=0, killed=0, failed=["vm.swappiness: gone"], overwritten=[])
    carrier = Agent(machine, holder="a test", lock=True)
    carrier.carrier = None
    monkeypatch.setattr(Agent, "carrier", carrier)
    with opened(monkeypatch, fake, notes):
        """It could be restored by now."""
    machine.failing = ("vm.swappiness: busy",)
    with (
        pytest.raises(opening.PlaceError, match=r"an earlier run left cannot be restored: vm\.swappiness: busy"),
        opened(monkeypatch, FakeTransport(run=programs(1000, ())), notes),
    ):
        pytest.fail("trials ran with an arm of another run set")


class Unrestored(FakeTransport):
    """An agent that cannot restore everything."""

    def _answer(self, request: Any) -> None:
        if isinstance(request, wire.Bye):
            self.say(wire.Farewell(id=request.id, failed=["swap: busy"]))
        else:
            super()._answer(request)


def test_whoever_stops_a_run_hears_that_its_changes_may_still_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    with pytest.raises(KeyboardInterrupt), opened(monkeypatch, Unrestored(run=programs(1000, ())), notes):
        raise KeyboardInterrupt
    stopping, left = notes.notes
    assert stopping == "stopping: what the run has changed at the place is being restored"
    assert "could not restore: swap: busy" in left
    assert left.endswith("the next run or `fairtrial doctor` there restores what is left")


def test_whoever_does_not_wait_for_the_end_hears_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, notes, closed = FakeTransport(run=programs(1000, ())), Notes(), Agent.close

    def again(agent: Agent) -> None:
        closed(agent)
        raise KeyboardInterrupt

    monkeypatch.setattr(Agent, "close", again)
    with pytest.raises(KeyboardInterrupt), opened(monkeypatch, fake, notes):
        raise KeyboardInterrupt
    assert notes.notes[1].startswith("the place may not be restored (interrupted)")


@pytest.mark.parametrize(
    ("users", "expected"),
    [(("mysql", "fairtrial", "nobody"), "fairtrial"), (("mysql", "postgres", "nobody"), "nobody")],
)
def test_an_agent_that_is_root_runs_servers_as_another(
    monkeypatch: pytest.MonkeyPatch, users: tuple[str, ...], expected: str
) -> None:
    with opened(monkeypatch, Left(run=programs(0, users)), Notes()) as (place, _asked):
        assert place.server_user == expected


def test_a_place_whose_root_has_no_other_user_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(opening.PlaceError, match="none of the users fairtrial, nobody"),
        opened(monkeypatch, Left(run=programs(0, ())), Notes()),
    ):
        pass


def test_an_image_without_a_user_for_servers_is_named_with_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    container = ContainerFacts(image="localhost/db:1", image_id="0" * 64, runtime="podman 5", run_options=[])
    monkeypatch.setattr(Agent, "container", container)
    with (
        pytest.raises(opening.PlaceError, match=r"^/etc/passwd of the image localhost/db:1 has none of the") as error,
        opened(monkeypatch, Left(run=programs(0, ())), Notes()),
    ):
        pass
    assert (error.value.field, error.value.hint) == ("place.container.image", "create one there")
