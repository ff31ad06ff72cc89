"""What every place offers to the run: a stream to an agent there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, JsonValue

from fairtrial.programs import Act, Program, untold
from fairtrial.wire import Agent, Limits, Transport
from fairtrial.wire.facts import GuestFacts
from fairtrial.wire.open_place import OpenPlace

P = TypeVar("P", bound=BaseModel)


@dataclass(frozen=True)
class Disk:
    """Which disk a place gets that boots.

    Attributes:
        keep: whether what is written to it stays.
        key: of the prepared data that it shall hold, if there is such a disk; else it is the kind's own.
    """

    keep: bool = False
    key: str | None = None


KEPT: Final = Disk(keep=True)
PASSING: Final = Disk()


class BootedTransport(Transport, Protocol):
    """The stream to the agent of a place that booted for it; the place ends with it.

    Attributes:
        host: the agent of the machine that carries the place, closed with the stream.
    """

    host: Agent

    @property
    def limits(self) -> Limits:
        """Those of the stream, which its agent keeps as well."""

    def facts(self) -> GuestFacts:
        """How the place is run."""


@dataclass(frozen=True)
class Requirements:
    """What a fresh place takes of the machine that carries it.

    Attributes:
        programs: names of those that it runs there, of the kind's `programs`.
        memory_bytes: while it runs.
        virtualisation: whether the processor's is `required`, `preferred` to an imitated processor, or `unused`;
            None: it runs on the machine's own kernel.
    """

    programs: tuple[str, ...] = ()
    memory_bytes: int = 0
    virtualisation: Literal["required", "preferred", "unused"] | None = "preferred"


class Place(ABC, Generic[P]):
    """A place with its parameters. A kind derives from `ReachedPlace`, `FreshPlace` or `BootedPlace`.

    Attributes:
        name: its key in the study file.
        summary: one sentence for the reference page.
        model: validates and documents its parameters.
        example: smallest parameters that validate, as a study file gives them.
        programs: of this machine that it runs, for `doctor`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    model: ClassVar[type[BaseModel]]
    example: ClassVar[Mapping[str, JsonValue]] = MappingProxyType({})
    programs: ClassVar[tuple[Program, ...]] = ()

    def __init__(self, parameters: P) -> None:
        self.parameters = parameters

    @property
    def title(self) -> str:
        """As messages call it."""
        return self.name

    @property
    def word(self) -> str:
        """As the command line names it; elided where that takes a mapping."""
        return f"'{{{self.name}: …}}'" if self.parameters.model_dump(exclude_none=True) else self.name

    @property
    def need(self) -> str:
        """What must be there to open it, as a plan tells; empty: nothing."""
        return ""

    @property
    def agent_user(self) -> str:
        """Who the agent is there, in words."""
        return "the agent's user"

    @property
    def machine(self) -> str:
        """Of places with one of these, `leave` brings back the same machine, whatever each boots there."""
        return self.title

    def acts(self) -> Iterator[Act]:
        """What is done to reach it, from its parameters alone."""
        yield untold("place", self.name)

    @property
    def boots_anew(self) -> bool:
        """Whether every stream that takes its lock begins with a boot of the place itself, and data stay."""
        return False

    def fetched(self) -> None:
        """Finds and fetches what all its trials are made from, once, before the first of them.

        Raises:
            PlaceError: it is missing, or cannot be fetched.
        """

    def leave(self, *, holder: str) -> None:
        """Brings it back to what it is without fairtrial, after the last stream.

        Raises:
            PlaceError: it does not come back.
        """

    def leaving_s(self) -> float:
        """The longest that `leave` takes, seconds."""
        return 0.0

    def duration_s(self) -> float:
        """What it adds to the expected duration of a trial, seconds."""
        return 0.0

    @abstractmethod
    def open(self, *, holder: str, lock: bool, disk: Disk) -> Agent:
        """Gets a stream to its agent and greets it; see `places.open_place`."""


class ReachedPlace(Place[P]):
    """A place that is there before every stream to it, and after."""

    def open(self, *, holder: str, lock: bool, disk: Disk) -> Agent:
        """Reaches it, with the limits of this process; its disk is its own."""
        del disk
        limits = Limits.from_environment()
        return Agent(self.connect(limits), holder=holder, lock=lock, limits=limits)

    @abstractmethod
    def connect(self, limits: Limits) -> Transport:
        """Gets a stream to an agent, which keeps the same limits.

        Raises:
            PlaceError: it cannot be reached.
        """


class FreshPlace(Place[P]):
    """A place that begins with every stream to it and ends with that stream, on a machine that carries it."""

    @property
    def word(self) -> str:
        """As the command line names what carries it: what this place needs, its machine has."""
        return self.carrier().word

    @abstractmethod
    def carrier(self) -> ReachedPlace[Any]:
        """The machine that carries it, with this place's state directory."""

    def requirements(self) -> Requirements:
        """What it takes of that machine."""
        return Requirements(tuple(program.name for program in self.programs))

    def require(self) -> None:
        """Looks for what it takes of that machine beside programs and memory; changes nothing.

        Raises:
            PlaceError: it is missing.
        """


class BootedPlace(FreshPlace[P]):
    """A fresh place with a kernel of its own and the root of the machine that carries it."""

    def open(self, *, holder: str, lock: bool, disk: Disk) -> Agent:
        """Boots it; its agent knows the machine that carries it."""
        transport = self.boot(holder=holder, lock=lock, disk=disk)
        agent = Agent(transport, holder=holder, lock=lock, limits=transport.limits, guest=transport.facts())
        agent.carrier = transport.host
        return agent

    @abstractmethod
    def boot(self, *, holder: str, lock: bool, disk: Disk) -> BootedTransport:
        """Boots it and gets a stream to its agent.

        Args:
            holder: who asks, in words that a refused second user can act upon.
            lock: take the place's lock.
            disk: which disk it gets, and whether what is written there stays for later ones.

        Raises:
            PlaceError: it does not come up.
        """

    @abstractmethod
    def shares(self, path: PurePosixPath) -> bool:
        """Whether a file of this machine is the same file there."""

    @abstractmethod
    def has_disk(self, host: OpenPlace, *, key: str) -> bool:
        """Whether there is a disk with the prepared data of a key."""

    @abstractmethod
    def make_disk(self, host: OpenPlace, *, key: str) -> bool:
        """Makes a disk with data of a key that were prepared on this machine; false where that is not possible.

        Raises:
            PlaceError: it failed.
        """
