"""What every workload offers to the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypedDict

from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind
from fairtrial.wire.open_place import OpenPlace

OnProgress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Loaded:
    """Data that a workload made.

    Attributes:
        content_sha256: over the logical content; equal for every arm, or arms are not comparable.
        rows: per table.
    """

    content_sha256: str
    rows: Mapping[str, int] = field(default_factory=dict)


class Starting(TypedDict):
    """What the settings of a trial say about a process, as `Agent.spawn` and `OpenPlace.native` take it."""

    environment: dict[str, str]
    processors: list[int] | None
    groups: Sequence[str]


@dataclass(frozen=True)
class Drive:
    """One measured drive of a workload.

    Attributes:
        endpoint: of the running system; None if it is no database.
        seed: of this trial.
        directory: at the place, for raw files, which become part of the record; exists.
        work_directory: at the place, for anything else; exists, and is removed after the trial.
        environment, processors: of the load's process.
        on_progress: gets the load's progress lines as they come.
        groups: directories of the control groups that the load's process starts in.
    """

    endpoint: Mapping[str, Any] | None
    seed: int
    directory: PurePosixPath
    work_directory: PurePosixPath
    environment: Mapping[str, str]
    processors: tuple[int, ...] | None
    on_progress: OnProgress
    groups: tuple[str, ...] = ()

    @property
    def starting(self) -> Starting:
        """How each of the load's processes starts, whatever starts it."""
        processors = None if self.processors is None else list(self.processors)
        return {"environment": dict(self.environment), "processors": processors, "groups": self.groups}


@dataclass(frozen=True)
class Driven:
    """A finished drive.

    Attributes:
        window: the measured window.
        effective: options of the system as the load's own connections read them back.
        invalid_reason: why the trial cannot count; empty if it can.
    """

    window: Window
    effective: Mapping[str, str] = field(default_factory=dict)
    invalid_reason: str = ""


class Workload(Protocol):
    """One kind of workload. Parameters are the validated values of its model, as JSON values."""

    KIND: Kind

    def data(self, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What determines the data it needs, as part of their key; None if it needs none."""

    def load(
        self, place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
    ) -> Loaded:
        """Fills an empty system with data."""

    def drive(self, place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
        """Ramps up and measures.

        Raises:
            PlaceError: the load itself failed.
        """

    def checks_after(self, parameters: Mapping[str, Any]) -> str:
        """When data are checked: `every_trial`, `once_per_cell` or `never`."""

    def check(self, place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any]) -> list[Check]:
        """Checks the data after a drive."""

    def scalars(self, directory: Path, parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
        """The trial's metrics from its raw files, here in the record. Pure: `verify` calls it again."""

    def contradictions(self, directory: Path, parameters: Mapping[str, Any]) -> list[str]:
        """Where these raw files disagree, a sentence each; `agreement.contradictions` asks and explains errors."""
