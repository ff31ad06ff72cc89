"""What every system under test offers to the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel

from fairtrial import servers
from fairtrial.programs import Program
from fairtrial.protocol.endpoints import Database, Endpoint, is_loopback
from fairtrial.wire.agent import Process
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

if TYPE_CHECKING:
    from fairtrial.systems.existing.server import ExistingServer

P = TypeVar("P", bound=BaseModel)


@dataclass(frozen=True)
class Identity:
    """What exactly runs, for the key of prepared data and for the record.

    Attributes:
        version: in the system's own words.
        sha256: of its binary; of the agent's where the system is embedded.
        facts: anything else worth recording (path of the binary, build).
    """

    version: str
    sha256: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """How a system is started.

    Attributes:
        data_directory: its data, already there, owned by the user it runs as.
        work_directory: for sockets, configuration and temporary files; exists.
        log_path: where its log goes.
        environment: added to its environment.
        processors: it may use; None: all.
        groups: directories of the control groups it starts in.
        address: of the place, to listen on for a workload at another one; None: no network.
        ready_s: how long it may take to be ready; None: `Limits.start_s`.
    """

    data_directory: PurePosixPath
    work_directory: PurePosixPath
    log_path: PurePosixPath
    environment: Mapping[str, str] = field(default_factory=dict)
    processors: tuple[int, ...] | None = None
    groups: tuple[str, ...] = ()
    address: str | None = None
    ready_s: float | None = None


@dataclass(frozen=True)
class Instance:
    """A system that answers.

    Attributes:
        endpoint: how a workload reaches it; None: by no endpoint.
        process: its main process; None where it is embedded in the load.
        options: effective options as read back.
        monitoring: how the sampler reaches its own counters; None: it has none.
        is_one_process: whether the main process does all its work; else the sampler adds up its children's, because a
            part would be taken for the whole.
        remote: how a workload at another place reaches it; None: it does not listen.
        slow_shutdown_s: how long it may take to stop `settled` once its load has ended, which is measured then; None:
            it is not.
        is_at_place: whether it runs on the machine of the place, so that this machine's counters are about it.
    """

    endpoint: Endpoint | None
    process: Process | None
    options: Mapping[str, str] = field(default_factory=dict)
    monitoring: Database | None = None
    is_one_process: bool = True
    remote: Database | None = None
    slow_shutdown_s: float | None = None
    is_at_place: bool = True


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is that is there already.

    Attributes:
        text: in words.
        host: its name or address; None: a Unix socket.
    """

    text: str
    host: str | None

    @property
    def is_remote(self) -> bool:
        """Whether it is on another machine than the place, as far as its address tells."""
        return self.host is not None and not is_loopback(self.host)


def changed_meanwhile(names: Sequence[str]) -> str:
    """Why a trial cannot count in which others changed what was set for it; empty if they did not."""
    return "changed by another process during the trial: " + ", ".join(names) if names else ""


class System(ABC, Generic[P]):
    """A system under test with its parameters. A subclass is a kind: what any other room must know of it is said here.

    Attributes:
        name: its key in the study file.
        summary: one sentence for the reference page.
        model: validates and documents its parameters.
        programs: what it runs at the place, for `doctor`.
        is_its_binary: whether its binary decides what data it makes; else its version and facts do, too.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    model: ClassVar[type[BaseModel]]
    programs: ClassVar[tuple[Program, ...]] = ()
    is_its_binary: ClassVar[bool] = True

    def __init__(self, parameters: P) -> None:
        self.parameters = parameters

    def disk_bytes(self) -> int:
        """What it is expected to need on the place's disk, bytes, without a workload's data."""
        return 0

    def cache_bytes(self) -> tuple[str, float] | None:
        """The option that sizes its cache, and the bytes it asks for; None: no such option, or no size in it."""
        return None

    def has_server(self) -> bool:
        """Whether a process of its own runs; false where it lives in the load's process, or is none."""
        return False

    def there(self) -> ServerAddress | None:
        """Where its server is, if that is there already; None: one is started for every trial, or there is none."""
        existing = self.existing()
        return None if existing is None else ServerAddress(existing.address, existing.at.host)

    def existing(self) -> ExistingServer | None:
        """The server that is there already, in whose place none is started; None: one is."""
        return None

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
