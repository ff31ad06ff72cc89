"""Why, as far as counters can say: what changed with the arm in each cell that has an effect. Pure.

Every counter is compared over blocks as the metrics are, on log ratios where all its values are positive; ranked by
the standardised effect among those that changed by more than the margin, and labelled exploratory. It is correlation:
what moved with the arm may be a cause, a consequence, or neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from fairtrial.analyse.boots import parts
from fairtrial.analyse.inference.families import benjamini_hochberg
from fairtrial.analyse.inference.t_tests import SMALLEST_N
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.selection import ContrastCell, select
from fairtrial.analyse.why import counter_notes, counter_tests
from fairtrial.analyse.why.counter_tests import CounterTests, Matrix
from fairtrial.analyse.why.models import CellWhy, CertainChange, CounterChange, Form, RatioInterval
from fairtrial.metrics.telemetry.counters import Counters
from fairtrial.record.models import Plan, TrialRecord

FEWEST_BLOCKS: Final = 3  # with two, four of hundreds of counters are "certain" by chance alone
CHANGES_KEPT: Final = 40  # of some 400 per cell: what a reader may scan
LEVEL: Final = 0.05  # of the exploratory family, as a share of false discoveries

Read = Callable[[TrialRecord], Counters | None]
ReadUnit = Callable[[str], Counters | None]  # of a trial or a boot, by the id of its first trial


def explain(
    analysis: Analysis, plan: Plan, trials: Sequence[TrialRecord], *, read: Read, paths: Sequence[str]
) -> tuple[CellWhy, ...]:
    """What changed in every cell in which an arm is faster or slower on a primary metric.

    `read` gives a trial's counters and is called for the trials of those cells only, all those of a boot; levels differ
    at `paths`.
    """
    selection = select(plan, trials, contrast=analysis.contrast)
    cells = {cell.name: cell for cell in selection.cells}
    boots = parts(selection.used)

    @cache
    def counted(unit: str) -> Counters | None:
        return _together([read(trial) for trial in boots[unit]])

    compared = [
        each
        for cell, arm in _with_effect(analysis)
        if (each := _compared(cells[cell], arm, paired=analysis.paired, read=counted)) is not None
    ]
    every = np.concatenate([each.tests.p[list(each.columns)] for each in compared]) if compared else np.empty(0)
    adjusted = iter(benjamini_hochberg(every).tolist())
    return tuple(_why(each, [next(adjusted) for _ in each.names], analysis=analysis, paths=paths) for each in compared)


def _with_effect(analysis: Analysis) -> list[tuple[str, str]]:
    """(cell, arm) with a claim on a primary metric, in the order of the cells."""
    return list(
        dict.fromkeys(
            (cell.cell, each.arm)
            for cell in analysis.cells
            for comparisons in cell.comparisons.values()
            for each in comparisons
            if each.role == "primary" and each.verdict in ("faster", "slower")
        )
    )


@dataclass(frozen=True)
class _CellCounters:
    """One cell's counters that vary, with the column of each in the tests.

    Attributes:
        errors: by how much growth may be off in any trial, as readings take time, as a share of it.
    """

    cell: str
    baseline: str
    arm: str
    n: int
    unit: str
    names: tuple[str, ...]
    forms: tuple[Form, ...]
    errors: tuple[float, ...]
    tests: CounterTests
    columns: tuple[int, ...]
    constant: int
    certain: tuple[CertainChange, ...]


def _together(trials: Sequence[Counters | None]) -> Counters | None:
    """Those of one boot as of one long trial; None if one of them has none."""
    known = [each for each in trials if each is not None]
    if len(known) < len(trials):
        return None
    if len(known) == 1:
        return known[0]
    length_s = math.fsum(each.length_s for each in known)
    grown = [name for name in known[0].grown if all(name in each.grown for each in known)]
    levels = [name for name in known[0].levels if all(name in each.levels for each in known)]
    return Counters(
        grown={name: math.fsum(each.grown[name] for each in known) for name in grown},
        levels={name: math.fsum(each.levels[name] * each.length_s for each in known) / length_s for name in levels},
        length_s=length_s,
        work=math.fsum(each.work or 0.0 for each in known) if all(each.work for each in known) else None,
        unit=known[0].unit if len({each.unit for each in known}) == 1 else "",
        errors={name: math.fsum(each.errors.get(name, 0.0) for each in known) for name in grown},
    )


def _compared(cell: ContrastCell, arm: str, *, paired: bool, read: ReadUnit) -> _CellCounters | None:
    baseline = next(iter(cell.groups))
    sides = _common(cell.groups[baseline], cell.groups[arm], paired=paired)
    counted = [[each for trial in side if (each := read(trial.trial.id)) is not None] for side in sides]
    sizes = [len(side) for side in counted]
    if min(sizes) < max(FEWEST_BLOCKS, SMALLEST_N) or sizes != [len(side) for side in sides]:
        return None
    every = [*counted[0], *counted[1]]
    worked = all(each.work for each in every)
    unit = every[0].unit if worked and len({each.unit for each in every}) == 1 else ""
    names, forms = _names(every)
    if not names:
        return None
    values = [_matrix(side, names) for side in counted]
    tests = counter_tests.compare(
        *values, work=[_per(side, forms=forms) for side in counted] if unit else None, paired=paired
    )
    kept = np.flatnonzero(tests.varies)
    certain = tuple(
        CertainChange(
            counter=names[at],
            form=forms[at],
            baseline=float(tests.costs[0][at]),
            arm=float(tests.costs[1][at]),
            p=tests.certain_p,
        )
        for at in np.flatnonzero(tests.certain)
    )
    return _CellCounters(
        cell=cell.name,
        baseline=baseline,
        arm=arm,
        n=min(sizes),
        unit=unit,
        names=tuple(names[index] for index in kept),
        forms=tuple(forms[index] for index in kept),
        errors=tuple(max(_error(each, names[index]) for each in every) for index in kept),
        tests=tests,
        columns=tuple(kept.tolist()),
        constant=len(names) - len(kept) - len(certain),
        certain=certain,
    )


def _common(
    baseline: Sequence[TrialRecord], arm: Sequence[TrialRecord], *, paired: bool
) -> tuple[list[TrialRecord], list[TrialRecord]]:
    """The trials to compare: of common blocks in the same order if paired, else all."""
    if not paired:
        return list(baseline), list(arm)
    second = {trial.trial.block: trial for trial in arm}
    kept = [trial for trial in baseline if trial.trial.block in second]
    return kept, [second[trial.trial.block] for trial in kept]


def _names(every: Sequence[Counters]) -> tuple[list[str], list[Form]]:
    """Counters, then levels, that every trial has."""
    grown = [name for name in every[0].grown if all(name in each.grown for each in every)]
    held = [name for name in every[0].levels if all(name in each.levels for each in every)]
    # Processor time is told by its shares, which sum to what the machine has.
    ticks = {name.removesuffix(" share") for name in held if name.endswith(" share")}
    grown = [name for name in grown if name not in ticks]
    forms: list[Form] = ["counter"] * len(grown)
    forms += ["share" if name.endswith(" share") else "level" for name in held]
    return grown + held, forms


def _matrix(side: Sequence[Counters], names: Sequence[str]) -> Matrix:
    """Counters per second and levels, shape (trials, counters)."""
    return np.array(
        [[each.grown[n] / each.length_s if n in each.grown else each.levels[n] for n in names] for each in side]
    )


def _error(trial: Counters, name: str) -> float:
    error = trial.errors.get(name, 0.0)
    return error / (trial.grown[name] or math.ulp(0.0)) if error else 0.0


def _per(side: Sequence[Counters], *, forms: Sequence[Form]) -> Matrix:
    """Seconds per unit of work of each trial, shape (trials, counters): what turns a rate into a cost; 1 for levels."""
    each = np.array([trial.length_s / trial.work if trial.work else math.nan for trial in side])
    counter = np.array([form == "counter" for form in forms])
    return np.where(counter[None, :], each[:, None], 1.0)


def _why(counters: _CellCounters, adjusted: Sequence[float], *, analysis: Analysis, paths: Sequence[str]) -> CellWhy:
    slow = [error > analysis.margin for error in counters.errors]
    changes = [
        _change(counters, index, p_adjusted=p, note=counter_notes.note(name, paths=paths, is_slow=slow[index]))
        for index, (name, p) in enumerate(zip(counters.names, adjusted, strict=True))
    ]
    changes.sort(key=lambda change: (not _discovered(change, margin=analysis.margin), -abs(change.standardised)))
    return CellWhy(
        cell=counters.cell,
        baseline=counters.baseline,
        arm=counters.arm,
        n=counters.n,
        unit=counters.unit,
        tested=len(counters.names),
        constant=counters.constant,
        changes=tuple(changes[:CHANGES_KEPT]),
        certain=tuple(
            each.model_copy(update={"note": counter_notes.note(each.counter, paths=paths)}) for each in counters.certain
        ),
    )


def speaks(change: CounterChange, *, margin: float) -> bool:
    """Whether a change may stand in a cell's line: discovered, and meaning the same in both arms."""
    return _discovered(change, margin=margin) and not change.note


def speaks_certainly(change: CertainChange, *, margin: float) -> bool:
    """The same of one that is the same in every trial, by its own p."""
    if change.p >= LEVEL or change.note:
        return False
    if change.form == "share":
        return abs(change.arm - change.baseline) >= margin / 2
    low, high = sorted((change.baseline, change.arm))
    return low <= 0 or high / low >= 1 + margin


def _discovered(change: CounterChange, *, margin: float) -> bool:
    """Whether a change is discovered by the family's rule and larger than what the study calls nothing."""
    if change.p_adjusted >= LEVEL:
        return False
    if change.form == "share":
        return abs(change.difference) >= margin / 2  # of all processors' time; half, as no share is near 1 by itself
    moved = change.per_work or change.per_second or change.level
    return moved is None or abs(math.log(moved.ratio)) >= math.log1p(margin)


def _change(counters: _CellCounters, index: int, *, p_adjusted: float, note: str) -> CounterChange:
    tests, form, at = counters.tests, counters.forms[index], counters.columns[index]
    low, high = tests.standardised_interval
    counter = form == "counter"
    return CounterChange(
        counter=counters.names[index],
        form=form,
        subsystem=counter_notes.subsystem(counters.names[index]),
        baseline=float(tests.baseline[at]),
        arm=float(tests.arm[at]),
        per_second=_moved(tests.plain, at) if counter else None,
        per_work=_moved(tests.worked, at) if counter and counters.unit else None,
        level=_moved(tests.plain, at) if form == "level" else None,
        difference=float(tests.difference[at]),
        difference_low=float(tests.difference_low[at]),
        difference_high=float(tests.difference_high[at]),
        standardised=float(tests.standardised[at]),
        standardised_low=_finite(low[at]),
        standardised_high=_finite(high[at]),
        p=float(tests.p[at]),
        p_adjusted=p_adjusted,
        note=note,
    )


def _moved(ratios: Mapping[str, Matrix], index: int) -> RatioInterval | None:
    ratio, low, high = (float(ratios[name][index]) for name in ("ratio", "low", "high"))
    return RatioInterval(ratio=ratio, low=low, high=high) if all(map(math.isfinite, (ratio, low, high))) else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
