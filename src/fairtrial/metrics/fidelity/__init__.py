"""How faithful a record's drives were: what they drew, held against TPC-C's specification (revision 5.11) or a script.

Counts come from `drawn` of each trial's `result.json`: whole drives, ramp-up included. Trials of equal parameters are
added up; of those with equal seeds, which draw the same inputs, the longest stands for all. It must not know how trials
are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fairtrial.errors import RecordError
from fairtrial.metrics.fidelity import script as fidelity_script
from fairtrial.metrics.fidelity.points import MIX, Counts, FidelityPoint, TpccFidelityParameters, Verdict, points
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.study.resolved import Section

TPCC: Final = "tpcc"
SCRIPT: Final = "script"
WORKLOADS: Final = (TPCC, SCRIPT)
FILE: Final = "result.json"
CONSTANT_LIMITS: Final = {"nurand_c_last_name_run": 255, "nurand_c_customer": 1023, "nurand_c_item": 8191}
DELTAS: Final = range(65, 120)  # of the two constants for last names, clause 2.1.6.1
DELTAS_FORBIDDEN: Final = (96, 112)
TERMINALS_PER_WAREHOUSE: Final = 10
LEAST_MEASURED_S: Final = 7200.0
# Where `NURand` adds C and its range's first number before a number can be seen, as (first number, C).
JOINED: Final = {
    "items": (1, "nurand_c_item"),
    "customers": (1, "nurand_c_customer"),
    "last_names": (0, "nurand_c_last_name_run"),
}


class Deviation(BaseModel):
    """Something the study chose that the specification does not allow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clause: str
    chosen: str


class Fidelity(BaseModel):
    """Trials of equal parameters against the specification.

    Attributes:
        workload: `tpcc`, or `script`, whose specification is the script.
        trials: their identifiers.
        seeds: how many different seeds they have: as many drives are added up.
        points: what the specification asks for, and what was drawn.
        deviations: what the study chose otherwise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: Literal["tpcc", "script"]
    trials: tuple[str, ...]
    seeds: int
    points: tuple[FidelityPoint, ...]
    deviations: tuple[Deviation, ...]

    @property
    def broken(self) -> tuple[FidelityPoint, ...]:
        """Points that do not keep to the specification, of all trials together or of one alone."""
        return tuple(point for point in self.points if point.verdict == "broken" or point.trials_broken)


def of_record(record: Record) -> tuple[Fidelity, ...]:
    """The record's valid trials of TPC-C and scripts, by their parameters in the order they were planned.

    Raises:
        RecordError: a trial's `result.json` is missing or damaged.
    """
    groups: dict[Section, list[TrialRecord]] = {}
    for trial in record.trials:
        if trial.valid and trial.window is not None and trial.resolved.workload.kind in WORKLOADS:
            groups.setdefault(trial.resolved.workload, []).append(trial)
    return tuple(_of_trials(record, trials) for trials in groups.values())


def _of_trials(record: Record, trials: Sequence[TrialRecord]) -> Fidelity:
    workload = trials[0].resolved.workload
    drives = {trial.trial.id: (trial.trial.seed, read(record.trial_directory(trial.trial.id))) for trial in trials}
    if workload.kind == TPCC:
        return assess(drives, TpccFidelityParameters.model_validate(workload.parameters))
    return assess_script(drives, fidelity_script.ScriptFidelityParameters.model_validate(workload.parameters))


def contradictions(directory: Path) -> list[str]:
    """Where `drawn` cannot be what led to the transactions that ended, a sentence each; empty if nowhere.

    What ended in the window had been drawn by then; a drive draws before and after its window too.

    Raises:
        RecordError: `result.json` is missing, cut or changed.
    """
    result = _read(directory)
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
    return _read(directory).drawn


class _Ended(BaseModel):
    committed: int
    rolled_back: int
    failed: int


class _Result(BaseModel):
    """The part of `result.json` that fidelity comes from; its owner is the `Driven` type of the protocol crate."""

    transactions: dict[str, _Ended]
    drawn: dict[str, int]


def _read(directory: Path) -> _Result:
    path = directory / FILE
    try:
        return _Result.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise RecordError(
            f"{path} does not say what was drawn: {error}", hint="restore the trial from a copy, or run it again"
        ) from error


def assess(drives: Mapping[str, tuple[int, Counts]], parameters: TpccFidelityParameters) -> Fidelity:
    """Drives of equal parameters against the specification.

    Args:
        drives: by trial: its seed and what it drew.
        parameters: of the workload, as resolved.
    """
    counted = {trial: (seed, _comparable(drawn)) for trial, (seed, drawn) in drives.items()}
    longest = _longest(counted.values(), _transactions)
    together = points(_sum(longest), parameters, trials=len(longest))
    alone = [points(drawn, parameters) for _, drawn in counted.values()]
    return Fidelity(
        workload=TPCC,
        trials=tuple(drives),
        seeds=len(longest),
        points=(*_with_each(together, alone), _constants([drawn for _, drawn in drives.values()])),
        deviations=tuple(_deviations(parameters)),
    )


def assess_script(
    drives: Mapping[str, tuple[int, Counts]], parameters: fidelity_script.ScriptFidelityParameters
) -> Fidelity:
    """Drives of one script against its weights; arguments as `assess`."""
    longest = _longest(drives.values(), lambda drawn: fidelity_script.transactions(drawn, parameters))
    together = list(fidelity_script.points(_sum(longest), parameters))
    alone = [list(fidelity_script.points(drawn, parameters)) for _, drawn in drives.values()]
    return Fidelity(
        workload=SCRIPT,
        trials=tuple(drives),
        seeds=len(longest),
        points=tuple(_with_each(together, alone)),
        deviations=(),
    )


def _longest(drives: Iterable[tuple[int, Counts]], length: Callable[[Counts], int]) -> list[Counts]:
    """Of the drives of each seed the longest."""
    longest: dict[int, Counts] = {}
    for seed, drawn in drives:
        longest[seed] = max(longest.get(seed, {}), drawn, key=length)
    return list(longest.values())


def _with_each(together: Sequence[FidelityPoint], alone: Sequence[Sequence[FidelityPoint]]) -> Iterator[FidelityPoint]:
    """Points of all trials together, with how many of them break each by themselves."""
    for index, point in enumerate(together):
        broken = sum(each[index].verdict == "broken" for each in alone)
        yield point.model_copy(update={"trials_broken": broken})


def _transactions(drawn: Counts) -> int:
    return sum(drawn.get(kind, 0) for kind in MIX)


def _sum(drives: Iterable[Counts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for drawn in drives:
        for name, count in drawn.items():
            total[name] = total.get(name, 0) + count
    return total


def _comparable(drawn: Counts) -> dict[str, int]:
    """The counts with `nurand_<name>_joined_odd`: odd numbers as they were before a drive's own constant was added."""
    comparable = dict(drawn)
    for name, (first, constant) in JOINED.items():
        if f"nurand_{name}" in drawn and constant in drawn:
            odd, of = drawn.get(f"nurand_{name}_odd", 0), drawn[f"nurand_{name}"]
            comparable[f"nurand_{name}_joined_odd"] = odd if (first + drawn[constant]) % 2 == 0 else of - odd
    return comparable


def _constants(drives: Sequence[Counts]) -> FidelityPoint:
    """Every drive's constants of `NURand` by themselves: they do not add up."""
    known = [drawn for drawn in drives if "nurand_c_last_name_load" in drawn]
    allowed = sum(map(_allowed, known))
    verdict: Verdict = ("kept" if allowed == len(known) else "broken") if known else "untested"
    return FidelityPoint(
        name="NURand, constants",
        clause="2.1.6, 2.1.6.1",
        asked="ranges and delta",
        count=allowed,
        of=len(known),
        value=allowed / len(known) if known else None,
        verdict=verdict,
        trials_broken=len(known) - allowed,
    )


def _allowed(drawn: Counts) -> bool:
    delta = abs(drawn.get("nurand_c_last_name_run", 0) - drawn["nurand_c_last_name_load"])
    in_range = all(0 <= drawn.get(name, -1) <= limit for name, limit in CONSTANT_LIMITS.items())
    return in_range and delta in DELTAS and delta not in DELTAS_FORBIDDEN


def _deviations(parameters: TpccFidelityParameters) -> Iterable[Deviation]:
    scale, warehouses, users = parameters.think_time_scale, parameters.warehouses, parameters.virtual_users
    if scale != 1:
        times = "no keying or thinking times" if scale == 0 else f"keying and thinking times × {scale:g}"
        yield Deviation(clause="5.2.5", chosen=times)
    if parameters.all_warehouses:
        homes = "each transaction draws its home warehouse, and stock level its district, anew"
        yield Deviation(clause="2.4.1.1, 2.5.1.1, 2.6.1.1, 2.7.1.1, 2.8.1.1", chosen=homes)
    if users != TERMINALS_PER_WAREHOUSE * warehouses:
        chosen = f"{users} terminals, not {TERMINALS_PER_WAREHOUSE} for each of {warehouses} warehouses"
        yield Deviation(clause="4.2.1", chosen=chosen)
    if (parameters.duration or 0.0) < LEAST_MEASURED_S:
        measured = f"{parameters.duration:g} s" if parameters.duration else f"{parameters.transactions} transactions"
        yield Deviation(clause="5.5.2", chosen=f"{measured} measured, not two hours at least")
