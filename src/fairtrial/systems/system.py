"""What every system under test offers to the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel

from fairtrial import servers
from fairtrial.programs import Act, Program, untold
from fairtrial.protocol.endpoints import Endpoint
from fairtrial.systems.existing.server import ExistingServer
from fairtrial.systems.instance import Identity, Instance, Launch, ServerAddress
from fairtrial.wire.agent import Process
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

P = TypeVar("P", bound=BaseModel)


class System(ABC, Generic[P]):
    """A system under test with its parameters. A subclass is a kind: what any other room must know of it is said here.

    Attributes:
        name: its key in the study file.
        summary: one sentence for the reference page.
        model: validates and documents its parameters.
        programs: what it runs at the place, for `doctor`.
        encrypts: whether it can be given a certificate for connections of other places.
        is_its_binary: whether its binary decides what data it makes; else its version and facts do, too.
        orderly_codes: exit codes of a shutdown that has kept its data; None: nothing is known of them.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    model: ClassVar[type[BaseModel]]
    programs: ClassVar[tuple[Program, ...]] = ()
    encrypts: ClassVar[bool] = False
    is_its_binary: ClassVar[bool] = True
    orderly_codes: ClassVar[Collection[int] | None] = None

    def __init__(self, parameters: P) -> None:
        self.parameters = parameters

    def disk_bytes(self) -> int:
        """What it is expected to need on the place's disk, bytes, without a workload's data."""
        return 0

    def cache_bytes(self) -> tuple[str, float] | None:
        """The option that sizes its cache, and the bytes it asks for; None: no such option, or no size in it."""
        return None

    def handed_in(self) -> Collection[str]:
        """Names that telemetry's addresses and commands may have in braces: of a service, what it is started with."""
        return ()

    def has_server(self) -> bool:
        """Whether a process of its own runs; false where it lives in the load's process, or is none."""
        return False

    def there(self) -> ServerAddress | None:
        """Where its server is, if that is there already; None: one is started for every trial, or there is none."""
        existing = self.existing()
        return None if existing is None else ServerAddress(existing.address, existing.at.host, [*existing.options])

    def acts(self) -> Iterator[Act]:
        """What a trial does for it, from its parameters alone."""
        yield untold("system", self.name)

    def existing(self) -> ExistingServer | None:
        """The server that is there already, in whose place none is started; None: one is."""
        return None

    def hold(self, place: OpenPlace, held: dict[str, Process], *, holder: str) -> None:
        """Keeps other studies from a server without an advisory lock of its own, by processes in `held`."""
        del place, held, holder

    def user(self, place: OpenPlace) -> str | None:
        """The user that its directories belong to and that it runs as; None: the agent's own."""
        return place.server_user

    def has_data_directory(self) -> bool:
        """Whether it starts only on a data directory that was created, a workload's data or not."""
        return False

    def awaited(self) -> servers.Source | None:
        """What would be fetched before it could run; None: nothing."""
        return None

    def fetched(self) -> servers.ServerFiles | None:
        """What its parameters name, unpacked on this machine; None where they name what a place has itself.

        Raises:
            PlaceError: it cannot be fetched or unpacked.
        """
        return None

    @abstractmethod
    def identity(self, place: OpenPlace) -> Identity:
        """Finds the binary at the place.

        Raises:
            PlaceError: it is missing, with where it was looked for.
        """

    def initial(self) -> Mapping[str, str]:
        """The parameters that matter when data are created; they are part of the key of prepared data."""
        return {}

    def for_loading(self, facts: Facts) -> Self:
        """The system to create and load data with, at a place of these facts.

        It has the initial parameters, and what makes loading fast, no arm's own.
        """
        del facts
        return self

    def create(self, place: OpenPlace, launch: Launch) -> None:
        """Fills an existing, empty data directory with an empty system."""

    def create_database(self, place: OpenPlace, endpoint: Endpoint | None) -> None:
        """Makes the empty database that a running system's endpoint names, for a workload that loads nothing itself."""

    def disturbance(self, place: OpenPlace, instance: Instance) -> str:
        """Why a trial cannot count, seen from its system at its end; empty if it can."""
        del place, instance
        return ""

    @abstractmethod
    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """Starts it and waits until it answers; reads every asked option back.

        Raises:
            SystemStartError: it does not come up, or an option is not in effect; with its last log lines.
        """

    def stop(self, place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        """Stops it. `settled`: leave nothing to do for the next start (purge, checkpoint), for prepared data."""
