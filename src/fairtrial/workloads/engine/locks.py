"""`locks`: threads that take locks and do nothing else, by the native load engine (docs/guides/locks.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairtrial.metrics import consistency
from fairtrial.programs import Act
from fairtrial.protocol import generated as wire
from fairtrial.protocol.subcommands import LOCK_DRIVE
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.quantities import Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import contention
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.workload import Drive, DriveOutcome, Workload

DRIVE_GRACE_S = 300.0  # beyond ramp-up and window, for many threads to start and to leave their queues
COUNTED_PER_S = 10.0  # acquisitions of one thread; fewer means a section of many milliseconds, which `duration` is for
GUESSED_PER_S = 100_000.0  # to estimate a drive by count before anything was measured
MOST_LINES = 1 << 20  # of all locks together, 128 bytes each

# Kinds that try, or look, before they sleep, with their sources' numbers.
DEFAULT_SPINS: Mapping[str, int] = {
    "fast": 8,
    "fast-local": 8,
    "fast-constant": 8,
    "ticket": 100,
    "mcs": 100,
    "clh": 100,
}


class LocksParameters(BaseModel):
    """Threads that compute outside, take a lock, compute inside and give it back."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pthread", "adaptive", "fast", "fast-local", "fast-constant", "ticket", "mcs", "clh", "spin"] = Field(
        "pthread",
        description="Kind of lock, which decides how a thread waits for it; `pthread`, glibc's mutex, is the control.",
    )
    threads: int = Field(2, ge=1, le=512, description="Threads.")
    locks: int = Field(1, ge=1, le=65_536, description="Number of locks; each acquisition draws one uniformly.")
    padding: bool = Field(
        default=True,
        description="Whether each lock has 128 bytes of its own, two cache lines; otherwise locks are packed as in an "
        "array.",
    )
    spins: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Number of tries, or looks at the queue, before sleeping (default: 8 for the fast mutexes, 100 "
        "for `ticket`, `mcs` and `clh`; not available for other kinds).",
    )
    critical: int = Field(
        50,
        ge=0,
        le=100_000_000,
        description="Length of the critical section in turns of a loop, the same for every kind; `turn_ns` is the "
        "time of one turn.",
    )
    outside: int = Field(
        100, ge=0, le=100_000_000, description="Number of turns of the same loop before each acquisition."
    )
    spacing: Literal["constant", "exponential"] = Field(
        "constant", description="Distribution of `outside`: constant, or exponential with that mean."
    )
    lines: int = Field(
        1,
        ge=1,
        le=64,
        description="Number of the lock's own cache lines that each acquisition writes inside the critical "
        "section; they count acquisitions.",
    )
    sample_every: int = Field(
        16,
        ge=1,
        le=1_000_000,
        description="Number of acquisitions of a thread of which one is timed: reading the clock costs as much as "
        "a free lock. Use 1 for critical sections of microseconds.",
    )
    ramp_up: Seconds = Field(
        1.0, ge=0, description="Length of ramp-up: load before the measurement window, excluded from all metrics."
    )
    duration: Seconds | None = Field(None, gt=0, description="Length of the measurement window.")
    acquisitions: int | None = Field(
        None,
        ge=1,
        description="Length of the measurement window as a number of acquisitions, instead of `duration`: it ends "
        "once one thread has made so many, so that all threads compete to its end.",
    )
    interval: Seconds = Field(0.1, ge=0.01, le=60, description="Width of timeline and histogram intervals.")

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        if (self.duration is None) == (self.acquisitions is None):
            raise ValueError("expected exactly one of `duration` and `acquisitions`, which ends the measurement window")
        if self.acquisitions is not None and self.acquisitions < self.sample_every:
            raise ValueError("`acquisitions` must be at least `sample_every`: only a timed one can be the last")
        if self.spins is not None and self.kind not in DEFAULT_SPINS:
            raise ValueError(f"`spins` needs a kind that spins before it sleeps, and `{self.kind}` does not")
        if self.locks * self.lines > MOST_LINES:
            raise ValueError(f"`locks` times `lines` must be at most {MOST_LINES}")
        return self


class Locks(Workload[LocksParameters]):
    """Threads that take locks, by the native load engine."""

    name = "locks"
    summary = "Threads that take locks of a chosen kind and layout, and do nothing else."
    model = LocksParameters
    throughput = "acquisitions_per_s"
    example = MappingProxyType({"duration": "5s"})
    systems = frozenset({"command"})

    def acts(self) -> Iterator[Act]:
        """The load generator alone."""
        yield native.engine_act(LOCK_DRIVE.name)

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """Throughput, fairness, waits and costs."""
        return contention.definitions()

    def duration_s(self) -> float:
        """Ramp-up and window; what goes by count is guessed."""
        counted = (self.parameters.acquisitions or 0) / GUESSED_PER_S
        return self.parameters.ramp_up + (self.parameters.duration or counted)

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Ramps up and measures; leaves `result.json`, `latency.hlog`, `timeline.arrows` and `contention.json`.

        Raises:
            PlaceError: the engine could not start its threads or write its files.
        """
        request = wire.LockDrive(
            kind=self.parameters.kind,
            threads=self.parameters.threads,
            locks=self.parameters.locks,
            padding=self.parameters.padding,
            spins=self.parameters.spins,
            critical_turns=self.parameters.critical,
            outside_turns=self.parameters.outside,
            spacing=self.parameters.spacing,
            lines=self.parameters.lines,
            sample_every=self.parameters.sample_every,
            ramp_up_s=self.parameters.ramp_up,
            duration_s=self.parameters.duration,
            acquisitions=self.parameters.acquisitions,
            seed=drive.seed,
            interval_ms=round(self.parameters.interval * 1000),
            output_directory=str(drive.directory),
        )
        place.native(
            LOCK_DRIVE, request, timeout_s=self._limit_s(), on_progress=drive.on_progress, **drive.process_options
        )
        result = native.read_result(place, drive)
        tallied = native.left(place, drive.directory / contention.FILE, contention.Contention)
        reason = _why_invalid(tallied)
        return DriveOutcome(window=native.window(result), effective=result.effective, invalid_reason=reason)

    def _limit_s(self) -> float:
        counted = (self.parameters.acquisitions or 0) / COUNTED_PER_S
        return self.parameters.ramp_up + (self.parameters.duration or 0) + counted + DRIVE_GRACE_S

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """From `contention.json`, `result.json`, `latency.hlog` and the timeline."""
        return contention.compute(directory, window=window)

    def contradictions(self, directory: Path) -> list[str]:
        """Where the engine's files disagree: each counts all acquisitions."""
        return [*consistency.of_timeline(directory), *contention.contradictions(directory)]


def _why_invalid(measured: contention.Contention) -> str:
    if measured.not_excluded:
        return measured.not_excluded
    return "" if measured.sampled else "no timed acquisition ended inside the measurement window"
