"""What every workload offers to the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import ClassVar, Generic, Literal, TypedDict, TypeVar

from pydantic import BaseModel

from fairtrial.programs import Act, Program, untold
from fairtrial.protocol.endpoints import Endpoint
from fairtrial.protocol.generated import FleetShare, Loaded
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import Process

P = TypeVar("P", bound=BaseModel)
When = Literal["every_trial", "once_per_cell", "never"]


class ProcessOptions(TypedDict):
    """What the settings of a trial say about a process, as `Agent.spawn` and `OpenPlace.native` take it."""

    environment: Mapping[str, str]
    processors: Sequence[int] | None
    groups: Sequence[str]


@dataclass(frozen=True)
class Drive:
    """One measured drive of a workload.

    Attributes:
        endpoint: of the running system; None if it cannot be reached by one.
        seed: of this trial.
        directory: at the place, for raw files, which become part of the record; exists.
        work_directory: at the place, for anything else; exists, and is removed after the trial.
        environment, processors: of the load's process.
        on_progress: gets the load's progress lines as they come.
        groups: directories of the control groups that the load's process starts in.
        share: of one client of several; None: it drives alone.
        on_start: is told of the load's process once it runs.
    """

    endpoint: Endpoint | None
    seed: int
    directory: PurePosixPath
    work_directory: PurePosixPath
    environment: Mapping[str, str]
    processors: tuple[int, ...] | None
    on_progress: OnProgress
    groups: tuple[str, ...] = ()
    share: FleetShare | None = None
    on_start: Callable[[Process], None] | None = None

    @property
    def process_options(self) -> ProcessOptions:
        """How each of the load's processes starts, whatever starts it."""
        return {"environment": self.environment, "processors": self.processors, "groups": self.groups}


@dataclass(frozen=True)
class DriveOutcome:
    """A finished drive.

    Attributes:
        window: the measured window.
        effective: options of the system as the load's own connections read them back.
        invalid_reason: why the trial cannot count; empty if it can.
    """

    window: Window
    effective: Mapping[str, str] = field(default_factory=dict)
    invalid_reason: str = ""


class Workload(ABC, Generic[P]):
    """A workload with its parameters. A subclass is a kind: what any other room must know of it is said here.

    Where its parameters have all those of a specification of `metrics.fidelity`, its trials are held against that, by
    `drawn` of their `result.json`.

    Attributes:
        name: its key in the study file.
        summary: one sentence for the reference page.
        model: validates and documents its parameters.
        throughput: the metric that says how much it did per time, which progress prints; empty: none.
        example: smallest parameters that validate, as a study file gives them; the reference page shows them.
        systems: kinds of system that it can drive; empty: any.
        files: keys whose value names a YAML file, each with the key that the file's content takes the place of.
        programs: what it runs at the place beside the agent's own subcommands.
        builds: options of a trial that hold the hash of a program, by the program's name: no run goes on with another.
        is_native: whether the native load generator drives.
        announces: whether it says when its measurement window begins; else the window is its whole life.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    model: ClassVar[type[BaseModel]]
    throughput: ClassVar[str] = ""
    example: ClassVar[Mapping[str, object]] = MappingProxyType({})
    systems: ClassVar[frozenset[str]] = frozenset()
    files: ClassVar[Mapping[str, str]] = MappingProxyType({})
    programs: ClassVar[tuple[Program, ...]] = ()
    builds: ClassVar[Mapping[str, str]] = MappingProxyType({})
    is_native: ClassVar[bool] = False
    announces: ClassVar[bool] = True

    def __init__(self, parameters: P) -> None:
        self.parameters = parameters

    @classmethod
    def check(cls, parameters: P, branch: Branch, problems: Problems) -> None:
        """Notes what the model cannot see in validated parameters, given their nodes with their path."""

    @abstractmethod
    def metrics(self) -> Mapping[str, MetricDefinition]:
        """The metrics that a trial with these parameters measures."""

    def duration_s(self) -> float:
        """How long a drive is expected to take, seconds."""
        return 0.0

    def disk_bytes(self) -> int:
        """What it is expected to need on the place's disk, bytes."""
        return 0

    def window_holds(self) -> str:
        """What its window holds beside what it measures, in words; empty: nothing. Telemetry is of the whole window."""
        return ""

    def acts(self) -> Iterator[Act]:
        """What a trial does for it, from its parameters alone."""
        yield untold("workload", self.name)

    def loading(self) -> Iterator[Act]:
        """What makes its data, where its system is, beyond `acts`."""
        yield from ()

    def require(self, place: OpenPlace) -> None:
        """Looks for what it runs, as a drive does, and changes nothing.

        Raises:
            PlaceError: something is missing, or of a version that it cannot use.
        """

    def data(self) -> Mapping[str, object] | None:
        """What determines the data it needs, as part of their key; None if it needs none."""
        return None

    def loader(self, place: OpenPlace) -> Mapping[str, str]:
        """Which program of the place makes the data that it needs, by version and hash; empty: none but the agent.

        Raises:
            PlaceError: it is missing, or of a version that it cannot use.
        """
        return {}

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> Loaded:
        """Fills an empty system with data; only asked of what needs some.

        Raises:
            PlaceError: the loader failed.
        """
        raise AssertionError(f"{self.name} needs no data")

    def undividable(self, clients: int) -> str:
        """Why so many clients cannot drive it together; empty if they can."""
        return f"the workload `{self.name}` has one client"

    def divided(self, clients: int) -> list[list[int]]:
        """Numbers of the virtual users of each of so many clients; only asked of what is not `undividable`."""
        raise AssertionError(f"{self.name} has one client")

    def judged(self, directory: Path) -> str:
        """Why the merged files of several clients cannot count; empty if they can."""
        return ""

    @abstractmethod
    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Ramps up and measures.

        Raises:
            PlaceError: the load itself failed.
        """

    def checks_after(self) -> When:
        """When data are checked."""
        return "never"

    def check_data(self, place: OpenPlace, endpoint: Endpoint) -> list[Check]:
        """Checks the data after a drive."""
        return []

    @abstractmethod
    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """The trial's metrics from its raw files, here in the record. Pure: `verify` calls it again."""

    def contradictions(self, directory: Path) -> list[str]:
        """Where these raw files disagree, a sentence each; `agreement.contradictions` asks and explains errors."""
        return []
