"""`locks`: threads that take locks and do nothing else, by the native load engine (docs/guides/locks.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from fairtrial.metrics import consistency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind
from fairtrial.study.tree.quantities import Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import contention
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

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
        "pthread", description="How a thread waits for a lock that is taken; `pthread`, glibc's mutex, is the control."
    )
    threads: int = Field(2, ge=1, le=512, description="Threads.")
    locks: int = Field(1, ge=1, le=65_536, description="Locks; each acquisition draws one, all alike.")
    padding: bool = Field(
        default=True,
        description="Each lock on 128 bytes of its own, two cache lines; without it they lie as in an array.",
    )
    spins: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Tries, or looks at the queue, before sleeping. Default: 8 of the fast mutexes, 100 of `ticket`, "
        "`mcs` and `clh`; other kinds have none.",
    )
    critical: int = Field(
        50,
        ge=0,
        le=100_000_000,
        description="Length of the section inside: turns of a loop, the same for every kind; `turn_ns` has what one "
        "takes.",
    )
    outside: int = Field(100, ge=0, le=100_000_000, description="Turns of the same loop before each acquisition.")
    spacing: Literal["constant", "exponential"] = Field(
        "constant", description="Whether `outside` is always that long or exponential with that mean."
    )
    lines: int = Field(
        1, ge=1, le=64, description="Cache lines that each acquisition writes inside, of the lock's own; they count it."
    )
    sample_every: int = Field(
        16,
        ge=1,
        le=1_000_000,
        description="Time one acquisition of so many, of each thread: reading the clock costs as much as a free lock. "
        "1 for sections of microseconds.",
    )
    ramp_up: Seconds = Field(1.0, ge=0, description="Load before the measured window, excluded from every figure.")
    duration: Seconds | None = Field(None, gt=0, description="Length of the measured window.")
    acquisitions: int | None = Field(
        None,
        ge=1,
        description="Instead of `duration`: the window ends once one thread has made so many in it, so that all "
        "compete to its end.",
    )
    interval: Seconds = Field(0.1, ge=0.01, le=60, description="Width of timeline and histogram intervals.")

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        if (self.duration is None) == (self.acquisitions is None):
            raise ValueError("exactly one of `duration` and `acquisitions` ends the measured window")
        if self.acquisitions is not None and self.acquisitions < self.sample_every:
            raise ValueError("`acquisitions` must be `sample_every` at least: only a timed one can be the last")
        if self.spins is not None and self.kind not in DEFAULT_SPINS:
            raise ValueError(f"`spins` is for kinds that try or look before they sleep, and `{self.kind}` does not")
        if self.locks * self.lines > MOST_LINES:
            raise ValueError(f"`locks` times `lines` must be {MOST_LINES} at most")
        return self


def duration_s(parameters: Mapping[str, Any]) -> float:
    """Ramp-up and window; what goes by count is guessed."""
    measured = parameters["duration"] or parameters["acquisitions"] / GUESSED_PER_S
    return float(parameters["ramp_up"] + measured)


KIND = Kind(
    name="locks",
    summary="Threads that take locks of a chosen kind and layout, and do nothing else.",
    parameters=TypeAdapter(LocksParameters),
    metrics=lambda _parameters: contention.definitions(),
    throughput="acquisitions_per_s",
    example={"duration": "5s"},
    duration_s=duration_s,
    systems=frozenset({"command"}),
)


def data(_parameters: Mapping[str, Any]) -> None:
    """Locks are made by whoever takes them."""


def load(
    _place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Never called: `data` is None."""
    del on_progress
    raise AssertionError("locks have no data to load")


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Ramps up and measures; leaves `result.json`, `latency.hlog`, `timeline.arrows` and `contention.json`.

    Raises:
        PlaceError: the engine could not start its threads or write its files.
    """
    task = {
        "kind": parameters["kind"],
        "threads": parameters["threads"],
        "locks": parameters["locks"],
        "padding": parameters["padding"],
        "spins": parameters["spins"],
        "critical_turns": parameters["critical"],
        "outside_turns": parameters["outside"],
        "spacing": parameters["spacing"],
        "lines": parameters["lines"],
        "sample_every": parameters["sample_every"],
        "ramp_up_s": parameters["ramp_up"],
        "duration_s": parameters["duration"],
        "acquisitions": parameters["acquisitions"],
        "seed": drive.seed,
        "interval_ms": round(parameters["interval"] * 1000),
        "output_directory": str(drive.directory),
    }
    place.native(
        "lock-drive",
        task,
        timeout_s=_limit_s(parameters),
        on_progress=drive.on_progress,
        **drive.starting,
    )
    result = json.loads(place.agent.get(str(drive.directory / "result.json")))
    text = place.agent.get(str(drive.directory / contention.FILE))
    measured = contention.Contention.model_validate_json(text)
    return Driven(
        window=Window.model_validate(result["window"]),
        effective=result["effective"],
        invalid_reason=_why_invalid(measured),
    )


def _why_invalid(measured: contention.Contention) -> str:
    if measured.not_excluded:
        return measured.not_excluded
    return "" if measured.sampled else "no timed acquisition ended inside the measured window"


def _limit_s(parameters: Mapping[str, Any]) -> float:
    counted = (parameters["acquisitions"] or 0) / COUNTED_PER_S
    return float(parameters["ramp_up"] + (parameters["duration"] or 0) + counted + DRIVE_GRACE_S)


def checks_after(_parameters: Mapping[str, Any]) -> str:
    """What locks guard is checked at the end of every drive."""
    return "never"


def check(_place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any]) -> list[Check]:
    """Nothing more to check."""
    return []


def scalars(directory: Path, _parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, fairness, waits and costs, from `contention.json`, `result.json`, `latency.hlog` and the timeline."""
    return contention.compute(directory, window=window)


def contradictions(directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Where the engine's files disagree: each counts all acquisitions."""
    return [*consistency.of_timeline(directory), *contention.contradictions(directory)]
