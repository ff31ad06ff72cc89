"""Open places for tests: one in memory, and this machine with a state directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.places import open_place
from fairtrial.protocol import generated as wire
from fairtrial.wire import Agent, Limits
from fairtrial.wire.facts import Facts
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.wire.open_place import OpenPlace
from support.facts import facts_of

FACTS = facts_of()


@contextmanager
def place_in_memory(
    run: Callable[[wire.Spawn], FakeProgram] = lambda _spawn: FakeProgram(),
    *,
    facts: Facts = FACTS,
    limits: Limits | None = None,
) -> Iterator[tuple[OpenPlace, FakeTransport]]:
    """A place whose programs are a function."""
    fake = FakeTransport(run=run)
    with Agent(fake, holder="a test", lock=True, limits=limits) as agent:
        place = OpenPlace(agent=agent)
        place.facts = facts
        yield place, fake


@contextmanager
def place_here(directory: Path) -> Iterator[OpenPlace]:
    """This machine, by a real agent."""
    with open_place("local", {"state_directory": str(directory / "state")}, holder="a test") as agent:
        place = OpenPlace(agent=agent)
        place.facts = FACTS
        yield place


def spawned(fake: FakeTransport, name: str) -> wire.Spawn:
    """The one process of that name that was asked for."""
    (found,) = [each for each in fake.requests if isinstance(each, wire.Spawn) and each.name == name]
    return found
