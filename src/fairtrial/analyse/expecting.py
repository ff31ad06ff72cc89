"""Whether cells mean what their names say: the study's expectations, on each planned cell's valid trials."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from fairtrial.analyse.models import ExpectationResult
from fairtrial.record.models import Cell, Plan, RangeExpectation, TrialRecord


def expectations(plan: Plan, trials: Sequence[TrialRecord]) -> dict[str, tuple[ExpectationResult, ...]]:
    """Results by the plan's cells. Trials of voided blocks count if they are valid themselves.

    An expectation is judged on all arms together: single trials are never thrown out by it, which would bias the arms.
    """
    valid: dict[str, list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        if trial.valid:
            valid[trial.trial.cell].append(trial)
    return {
        cell.name: tuple(
            _result(cell, expectation, valid[cell.name])
            for expectation in plan.expectations
            if cell.levels.get(expectation.factor) == expectation.level
        )
        for cell in plan.cells
    }


def _result(cell: Cell, expectation: RangeExpectation, trials: Sequence[TrialRecord]) -> ExpectationResult:
    found = [trial.scalars.get(expectation.metric, math.nan) for trial in trials]
    values = [value for value in found if math.isfinite(value)]
    mean = math.fsum(values) / len(values) if values else None
    low = -math.inf if expectation.low is None else expectation.low
    high = math.inf if expectation.high is None else expectation.high
    return ExpectationResult(
        cell=cell.name,
        metric=expectation.metric,
        text=expectation.text,
        mean=mean,
        n=len(values),
        met=mean is not None and low <= mean <= high,
    )
