"""Whether cells mean what their names say: the study's expectations, on each planned cell's valid trials."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from fairtrial.analyse.models import ArmMean, ExpectationResult
from fairtrial.record.models import Cell, PlannedTrial, RangeExpectation


class _ExpectingPlan(Protocol):
    """What is asked of a plan: `record.models.Plan` has it, and so has any other view of plan.json."""

    @property
    def arm(self) -> str: ...
    @property
    def factors(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def cells(self) -> Sequence[Cell]: ...
    @property
    def expectations(self) -> Sequence[RangeExpectation]: ...


class _MeasuredTrial(Protocol):
    """What is asked of a trial: `record.models.TrialRecord` has it, and so has any other view of trial.json."""

    @property
    def trial(self) -> PlannedTrial: ...
    @property
    def valid(self) -> bool: ...
    @property
    def scalars(self) -> Mapping[str, float | None]: ...


def unmet(found: Mapping[str, Sequence[ExpectationResult]]) -> frozenset[str]:
    """Of results by cell, the cells that failed one: they are not what their names say."""
    return frozenset(cell for cell, results in found.items() if not all(each.met for each in results))


def expectations(plan: _ExpectingPlan, trials: Sequence[_MeasuredTrial]) -> dict[str, tuple[ExpectationResult, ...]]:
    """Results by the plan's cells. Trials of voided blocks count if they are valid themselves.

    An expectation is judged on the mean of the baseline arm: the condition without what is under test. A mean over all
    arms could lie in the range though no arm's does, and an arm that changes the condition would withhold its own
    verdict. The baseline arm is the first level of the plan's own `arm` whatever factor is contrasted, because a
    planned cell means the same in every contrast; in an A/A run it is the first label.

    Single trials are never thrown out by an expectation, which would bias the arms.
    """
    valid: dict[tuple[str, str], list[_MeasuredTrial]] = defaultdict(list)
    for trial in trials:
        if trial.valid:
            valid[trial.trial.cell, trial.trial.arm].append(trial)
    arms = plan.factors[plan.arm]
    return {
        cell.name: tuple(
            _result(cell, expectation, {arm: valid[cell.name, arm] for arm in arms})
            for expectation in plan.expectations
            if cell.levels.get(expectation.factor) == expectation.level
        )
        for cell in plan.cells
    }


def _result(cell: Cell, expectation: RangeExpectation, arms: dict[str, list[_MeasuredTrial]]) -> ExpectationResult:
    baseline, *others = (_mean(arm, expectation, trials) for arm, trials in arms.items())
    return ExpectationResult(
        cell=cell.name,
        metric=expectation.metric,
        text=expectation.text,
        mean=baseline.mean,
        n=baseline.n,
        met=baseline.inside,
        by_arm=(baseline, *others),
    )


def _mean(arm: str, expectation: RangeExpectation, trials: Sequence[_MeasuredTrial]) -> ArmMean:
    scalars = (trial.scalars.get(expectation.metric) for trial in trials)
    values = [value for value in scalars if value is not None and math.isfinite(value)]
    mean = math.fsum(values) / len(values) if values else None
    low = -math.inf if expectation.low is None else expectation.low
    high = math.inf if expectation.high is None else expectation.high
    return ArmMean(arm=arm, mean=mean, n=len(values), inside=mean is not None and low <= mean <= high)
