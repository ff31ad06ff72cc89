"""One arm against the baseline: ratio, difference, tests. Adjustment and verdict come later, for the whole family."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse import sensitivity, t_tests
from fairtrial.analyse.measured import Measured
from fairtrial.analyse.models import Comparison, Interval, Role, Welch
from fairtrial.analyse.t_tests import TTest, Values

PAIRED_LOGS: Final = "paired t on log ratios over blocks"
PAIRED_UNITS: Final = "paired t on differences over blocks"
WELCH_LOGS: Final = "Welch on logs"
WELCH_UNITS: Final = "Welch on the values"

_LIKE_NORMAL: Final = {
    PAIRED_LOGS: "log ratios of blocks are independent and roughly normal",
    PAIRED_UNITS: "differences of blocks are independent and roughly normal",
    WELCH_LOGS: "trials are independent and their logarithms roughly normal; spreads may differ",
    WELCH_UNITS: "trials are independent and roughly normal; spreads may differ",
}
_LARGEST_LOGARITHM: Final = math.log(sys.float_info.max)  # two blocks that disagree by factors of thousands get there
_TRIALS_COUNT: Final = "the trial is the unit: nothing inside a trial counts as a repetition"


@dataclass(frozen=True)
class Setting:
    """What all comparisons of an analysis share.

    Attributes:
        paired: whether trials of one block are compared with each other.
        margin: equivalence margin as a share; on the log scale it is ± log(1 + margin), the same in both directions.
        family_size: primary comparisons that are judged together.
    """

    paired: bool
    confidence: float
    margin: float
    family_size: int

    @property
    def alpha(self) -> float:
        """Level of a test at this confidence."""
        return 1 - self.confidence


@dataclass(frozen=True)
class Matched:
    """The values that one comparison uses: of common blocks in the same order if paired, else all of them."""

    baseline: Values
    arm: Values


def matched(baseline: Measured, arm: Measured, *, paired: bool) -> Matched:
    """Pairs values by block; blocks that only one arm has are left out, and `doubts` says how many."""
    if not paired:
        return Matched(baseline=baseline.values, arm=arm.values)
    first = dict(zip(baseline.blocks, baseline.values.tolist(), strict=True))
    second = dict(zip(arm.blocks, arm.values.tolist(), strict=True))
    blocks = [block for block in baseline.blocks if block in second]
    return Matched(
        baseline=t_tests.array([first[block] for block in blocks]),
        arm=t_tests.array([second[block] for block in blocks]),
    )


def comparable(baseline: Measured, arm: Measured, *, paired: bool) -> bool:
    """Whether there is anything to compare: a common block if paired, else a value in each."""
    used = matched(baseline, arm, paired=paired)
    return min(len(used.baseline), len(used.arm)) > 0


@dataclass(frozen=True)
class Named:
    """What a comparison is of."""

    metric: str
    role: Role
    cell: str


def compare(baseline: Measured, arm: Measured, *, named: Named, setting: Setting) -> Comparison:
    """Compares two arms, which must have something in common (`comparable`).

    A test that cannot be computed gives p = 1; `verdict` is `undecided` until the family is judged.
    """
    used = matched(baseline, arm, paired=setting.paired)
    logs = baseline.positive and arm.positive
    in_units = _test(used, paired=setting.paired, confidence=setting.confidence)
    on_logs = _test(_logarithms(used), paired=setting.paired, confidence=setting.confidence) if logs else None
    method = _method(paired=setting.paired, logs=logs)
    primary = named.role == "primary"
    deciding = on_logs if logs else in_units
    return Comparison(
        metric=named.metric,
        role=named.role,
        cell=named.cell,
        baseline=baseline.arm,
        arm=arm.arm,
        method=method,
        n=min(len(used.baseline), len(used.arm)),
        confidence=setting.confidence,
        ratio=_ratio(used, on_logs) if logs else Interval(estimate=None, low=None, high=None),
        difference=_difference(used, in_units),
        welch=_welch(baseline, arm, confidence=setting.confidence),
        p=1.0 if deciding is None else deciding.p,
        p_adjusted=None,
        p_equivalence=None if on_logs is None else sensitivity.equivalence(on_logs, bound=math.log1p(setting.margin)),
        family_size=setting.family_size if primary else 0,
        verdict="undecided",
        smallest_effect=_smallest_effect(on_logs, alpha=setting.alpha / (setting.family_size if primary else 1)),
        assumptions=(_LIKE_NORMAL[method], _TRIALS_COUNT),
    )


def _method(*, paired: bool, logs: bool) -> str:
    if paired:
        return PAIRED_LOGS if logs else PAIRED_UNITS
    return WELCH_LOGS if logs else WELCH_UNITS


def _logarithms(used: Matched) -> Matched:
    return Matched(baseline=np.log(used.baseline), arm=np.log(used.arm))


def _test(used: Matched, *, paired: bool, confidence: float) -> TTest | None:
    test = t_tests.paired if paired else t_tests.welch
    return test(used.baseline, used.arm, confidence=confidence)


def _ratio(used: Matched, test: TTest | None) -> Interval:
    """Ratio of geometric means: the estimate is there even where no interval is, or none that a number can hold."""
    logs = _logarithms(used)
    estimate = math.exp(min(_LARGEST_LOGARITHM, float(np.mean(logs.arm) - np.mean(logs.baseline))))
    if test is None or test.high > _LARGEST_LOGARITHM:
        return Interval(estimate=estimate, low=None, high=None)
    return Interval(estimate=estimate, low=math.exp(test.low), high=math.exp(test.high))


def _difference(used: Matched, test: TTest | None) -> Interval:
    estimate = float(np.mean(used.arm) - np.mean(used.baseline))
    if test is None:
        return Interval(estimate=estimate, low=None, high=None)
    return Interval(estimate=estimate, low=test.low, high=test.high)


def _welch(baseline: Measured, arm: Measured, *, confidence: float) -> Welch | None:
    """On all values of both arms, paired or not: what `t.test(arm, baseline)` prints in R."""
    test = t_tests.welch(baseline.values, arm.values, confidence=confidence)
    if test is None:
        return None
    difference = Interval(estimate=test.estimate, low=test.low, high=test.high)
    return Welch(t=test.t, df=test.df, p=test.p, difference=difference)


def _smallest_effect(test: TTest | None, *, alpha: float) -> float | None:
    effect = math.inf if test is None else sensitivity.detectable(test, alpha=alpha)
    return math.expm1(effect) if effect < _LARGEST_LOGARITHM else None
