"""How faithful a record's drives were: what they drew, held against the specification of their workload.

Counts come from `drawn` of each trial's `result.json`: whole drives, ramp-up included. Trials of equal parameters are
added up; of those with equal seeds, which draw the same inputs, the longest stands for all. It must not know how trials
are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairtrial import foreign
from fairtrial.metrics.fidelity.points import Counts, Deviation, FidelityPoint, Specification
from fairtrial.metrics.fidelity.script import ScriptSpecification
from fairtrial.metrics.fidelity.tpcc import TpccSpecification
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.study.resolved import Section

SPECIFICATIONS: Final[tuple[type[Specification], ...]] = (TpccSpecification, ScriptSpecification)
FILE: Final = "result.json"


class Fidelity(BaseModel):
    """Trials of equal parameters against the specification.

    Attributes:
        workload: its kind.
        specification: what its draws are held against; no part of what a report stores.
        trials: their identifiers.
        seeds: how many different seeds they have: as many drives are added up.
        points: what the specification asks for, and what was drawn.
        deviations: what the study chose otherwise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: str
    specification: Specification = Field(exclude=True, repr=False)
    trials: tuple[str, ...]
    seeds: int
    points: tuple[FidelityPoint, ...]
    deviations: tuple[Deviation, ...]

    @property
    def broken(self) -> tuple[FidelityPoint, ...]:
        """Points that do not keep to the specification, of all trials together or of one alone."""
        return tuple(point for point in self.points if point.verdict == "broken" or point.trials_broken)


def of_record(record: Record) -> tuple[Fidelity, ...]:
    """The record's valid trials whose workloads have a specification, by their parameters in the order of the plan.

    Raises:
        RecordError: a trial's `result.json` is missing or damaged.
    """
    groups: dict[Section, list[TrialRecord]] = {}
    for trial in record.trials:
        if trial.valid and trial.window is not None:
            groups.setdefault(trial.resolved.workload, []).append(trial)
    fidelities = []
    for workload, trials in groups.items():
        if (specification := _specification(workload)) is not None:
            planned = [trial.trial for trial in trials]
            drives = {each.id: (each.seed, read(record.trial_directory(each.id))) for each in planned}
            fidelities.append(assess(workload.kind, drives, specification))
    return tuple(fidelities)


def _specification(workload: Section) -> Specification | None:
    """The one whose parameters the workload has: its kind needs no name here."""
    for specification in SPECIFICATIONS:
        with suppress(ValidationError):
            return specification.model_validate(workload.parameters)
    return None


def contradictions(directory: Path) -> list[str]:
    """Where `drawn` cannot be what led to the transactions that ended, a sentence each; empty if nowhere.

    What ended in the window had been drawn by then; a drive draws before and after its window too.

    Raises:
        RecordError: `result.json` is missing, cut or changed.
    """
    result = foreign.of_trial(directory / FILE, _Result)
    ended = {kind: each.committed + each.rolled_back + each.failed for kind, each in result.transactions.items()}
    return [
        f"{FILE}: {count} transactions {kind} ended, but only {result.drawn.get(kind, 0)} were drawn"
        for kind, count in ended.items()
        if result.drawn.get(kind, 0) < count
    ]


def read(directory: Path) -> dict[str, int]:
    """What a trial's drive drew: name → count.

    Raises:
        RecordError: `result.json` is missing, cut or changed.
    """
    return foreign.of_trial(directory / FILE, _Result).drawn


_Count = Annotated[int, Field(ge=0, lt=1 << 64)]


class _Ended(BaseModel):
    committed: _Count
    rolled_back: _Count
    failed: _Count


class _Result(BaseModel):
    """The part of `result.json` that fidelity comes from; its owner is the `Driven` type of the protocol crate."""

    transactions: dict[str, _Ended]
    drawn: dict[str, _Count]


def assess(workload: str, drives: Mapping[str, tuple[int, Counts]], specification: Specification) -> Fidelity:
    """Drives of equal parameters against the specification.

    Args:
        workload: its kind.
        drives: by trial: its seed and what it drew.
        specification: with the workload's parameters, as resolved.
    """
    counted = {trial: (seed, specification.comparable(drawn)) for trial, (seed, drawn) in drives.items()}
    longest = _longest(counted.values(), specification.length)
    together = specification.points(_sum(longest), trials=len(longest))
    alone = [list(specification.points(drawn)) for _, drawn in counted.values()]
    return Fidelity(
        workload=workload,
        specification=specification,
        trials=tuple(drives),
        seeds=len(longest),
        points=(*_with_each(together, alone), *specification.points_of_each([drawn for _, drawn in drives.values()])),
        deviations=tuple(specification.deviations()),
    )


def _longest(drives: Iterable[tuple[int, Counts]], length: Callable[[Counts], int]) -> list[Counts]:
    """Of the drives of each seed the longest."""
    longest: dict[int, Counts] = {}
    for seed, drawn in drives:
        longest[seed] = max(longest.get(seed, {}), drawn, key=length)
    return list(longest.values())


def _with_each(together: Iterable[FidelityPoint], alone: Sequence[Sequence[FidelityPoint]]) -> Iterator[FidelityPoint]:
    """Points of all trials together, with how many of them break each by themselves."""
    for index, point in enumerate(together):
        broken = sum(each[index].verdict == "broken" for each in alone)
        yield point.model_copy(update={"trials_broken": broken})


def _sum(drives: Iterable[Counts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for drawn in drives:
        for name, count in drawn.items():
            total[name] = total.get(name, 0) + count
    return total
