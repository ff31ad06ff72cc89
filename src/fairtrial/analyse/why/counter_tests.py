"""Paired or Welch tests of hundreds of counters at once: the tests of `t_tests`, as arrays.

On logarithms where every value of a counter is positive, else on its values. Interval of the standardised effect by
inverting the noncentral t distribution (Steiger and Fouladi, 1997; R's `MBESS::ci.sm`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import TTests

CONFIDENCE: Final = 0.95
SAME: Final = 1e-9  # of a value: differences up to it are rounding
LARGEST_T: Final = 30.0  # from here on SciPy's inverse of the noncentral t may fail; the effect is beyond doubt anyway

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CounterTests:
    """Tests of counters, arrays of shape (counters,).

    Attributes:
        varies: where there is a test at all.
        certain: where there is none, as the difference is the same in all trials and not 0.
        baseline, arm: means of rates and levels.
        costs: the same of the deciding scale, baseline first: per unit of work where there is work.
        plain, worked: `ratio`, `low`, `high` per second, and per unit of work; NaN where a value is not positive.
        difference: of rates and levels, with its interval.
        standardised, standardised_interval, p: of the deciding scale.
        certain_p: two-sided, of exchanging arms that always differ alike.
    """

    varies: npt.NDArray[np.bool_]
    certain: npt.NDArray[np.bool_]
    baseline: Matrix
    arm: Matrix
    costs: tuple[Matrix, Matrix]
    plain: Mapping[str, Matrix]
    worked: Mapping[str, Matrix]
    difference: Matrix
    difference_low: Matrix
    difference_high: Matrix
    standardised: Matrix
    standardised_interval: tuple[Matrix, Matrix]
    p: Matrix
    certain_p: float


def compare(baseline: Matrix, arm: Matrix, *, work: list[Matrix] | None, paired: bool) -> CounterTests:
    """Tests every column of rates and levels, shape (trials, counters); `work` makes a rate a cost per unit of work."""
    positive = np.asarray((baseline > 0).all(axis=0) & (arm > 0).all(axis=0))
    units, plain = _tests(baseline, arm, positive, paired=paired)
    worked, costs = plain, (baseline, arm)
    if work is not None:
        costs = baseline * work[0], arm * work[1]
        _, worked = _tests(*costs, positive, paired=paired)
    still = np.isnan(worked.standard_error)
    size = np.where(positive, 1.0, np.maximum(*(np.abs(each).mean(axis=0) for each in costs)))
    exchanges = 2 ** len(arm) if paired else math.comb(len(baseline) + len(arm), len(arm))
    low, high = _bounds(units)
    t = np.asarray(worked.estimate / worked.standard_error)
    trials = len(baseline) if paired else 1 / (1 / len(baseline) + 1 / len(arm))
    return CounterTests(
        varies=~still,
        certain=still & (np.abs(worked.estimate) > SAME * size),
        baseline=baseline.mean(axis=0),
        arm=arm.mean(axis=0),
        costs=(costs[0].mean(axis=0), costs[1].mean(axis=0)),
        plain=_ratios(plain, positive),
        worked=_ratios(worked, positive),
        difference=units.estimate,
        difference_low=low,
        difference_high=high,
        standardised=t / np.sqrt(trials),
        standardised_interval=standardised(t, worked.df, trials=float(trials)),
        p=worked.p,
        certain_p=2 / exchanges,
    )


def standardised(t: Matrix, df: Matrix, *, trials: float) -> tuple[Matrix, Matrix]:
    """Interval of the standardised effect; NaN where t is too large to invert, or there is none."""
    usable = np.where(np.abs(t) <= LARGEST_T, t, np.nan)
    tail = (1 - CONFIDENCE) / 2
    low, high = (special.nctdtrinc(df, probability, usable) for probability in (1 - tail, tail))
    return np.asarray(low / np.sqrt(trials)), np.asarray(high / np.sqrt(trials))


def _tests(baseline: Matrix, arm: Matrix, positive: npt.NDArray[np.bool_], *, paired: bool) -> tuple[TTests, TTests]:
    """Of each column in units, and on the scale it has: logarithms where all its values are positive."""
    test = t_tests.paired_many if paired else t_tests.welch_many
    units = test(baseline.T, arm.T)
    logs = test(*(np.log(np.where(positive, values, 1.0)).T for values in (baseline, arm)))
    scaled = {
        name: np.where(positive, getattr(logs, name), getattr(units, name))
        for name in ("estimate", "standard_error", "df")
    }
    return units, TTests(**scaled)


def _bounds(tests: TTests) -> tuple[Matrix, Matrix]:
    """Intervals; the estimate itself where nothing varies, though there is no test then."""
    low, high = tests.interval(confidence=CONFIDENCE)
    constant = np.isnan(tests.standard_error)
    return np.where(constant, tests.estimate, low), np.where(constant, tests.estimate, high)


def _ratios(tests: TTests, positive: npt.NDArray[np.bool_]) -> dict[str, Matrix]:
    low, high = _bounds(tests)
    with np.errstate(over="ignore"):
        return {
            name: np.where(positive, np.exp(values), np.nan)
            for name, values in (("ratio", tests.estimate), ("low", low), ("high", high))
        }
