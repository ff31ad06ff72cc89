"""Paired or Welch tests of hundreds of counters at once: the tests of `t_tests`, as arrays.

On logarithms where every value of a counter is positive, else on its values. Interval of the standardised effect by
inverting the noncentral t distribution (Steiger and Fouladi, 1997; R's `MBESS::ci.sm`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from fairtrial.analyse.inference.t_tests import ROUNDING_UNITS

CONFIDENCE: Final = 0.95
LARGEST_T: Final = 30.0  # from here on SciPy's inverse of the noncentral t may fail; the effect is beyond doubt anyway

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """Student's or Welch's test of each column; arrays of shape (columns,)."""

    estimate: Matrix
    error: Matrix
    df: Matrix
    size: Matrix

    @property
    def t(self) -> Matrix:
        """The statistics; infinite or NaN where nothing varies."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.estimate / self.error)

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Where there is a spread beyond rounding."""
        return np.asarray(self.error > ROUNDING_UNITS * np.finfo(np.float64).eps * self.size)

    def bounds(self) -> tuple[Matrix, Matrix]:
        """Interval of the estimate at `CONFIDENCE`."""
        reach = special.stdtrit(self.df, (1 + CONFIDENCE) / 2) * self.error
        return np.asarray(self.estimate - reach), np.asarray(self.estimate + reach)


@dataclass(frozen=True)
class Tested:
    """Tests of counters, arrays of shape (counters,).

    Attributes:
        varies: where there is a test at all.
        baseline, arm: means of rates and levels.
        plain, worked: `ratio`, `low`, `high` per second, and per unit of work; NaN where a value is not positive.
        difference: of rates and levels, with its interval.
        standardised, standardised_interval, p: of the deciding scale.
    """

    varies: npt.NDArray[np.bool_]
    baseline: Matrix
    arm: Matrix
    plain: Mapping[str, Matrix]
    worked: Mapping[str, Matrix]
    difference: Matrix
    difference_low: Matrix
    difference_high: Matrix
    standardised: Matrix
    standardised_interval: tuple[Matrix, Matrix]
    p: Matrix

    def only(self, kept: npt.NDArray[np.intp]) -> Tested:
        """The tests of some counters."""
        low, high = self.standardised_interval
        return replace(
            self,
            varies=self.varies[kept],
            baseline=self.baseline[kept],
            arm=self.arm[kept],
            plain={name: values[kept] for name, values in self.plain.items()},
            worked={name: values[kept] for name, values in self.worked.items()},
            difference=self.difference[kept],
            difference_low=self.difference_low[kept],
            difference_high=self.difference_high[kept],
            standardised=self.standardised[kept],
            standardised_interval=(low[kept], high[kept]),
            p=self.p[kept],
        )


def compare(baseline: Matrix, arm: Matrix, *, work: list[Matrix] | None, paired: bool) -> Tested:
    """Tests every column.

    Args:
        baseline: rates and levels, shape (trials, counters).
        arm: the same; rows of one block beside each other if paired.
        work: of each arm, what makes a rate a cost per unit of work; None where work is not counted.
        paired: whether rows pair.
    """
    positive = np.asarray((baseline > 0).all(axis=0) & (arm > 0).all(axis=0))
    sample = paired_test if paired else welch_test
    units = sample(baseline, arm)
    plain = _where(positive, sample(_log(baseline, positive), _log(arm, positive)), units)
    worked = plain
    if work is not None:
        costs = baseline * work[0], arm * work[1]
        worked = _where(positive, sample(_log(costs[0], positive), _log(costs[1], positive)), sample(*costs))
    low, high = units.bounds()
    trials = len(baseline) if paired else 1 / (1 / len(baseline) + 1 / len(arm))
    return Tested(
        varies=worked.varies,
        baseline=baseline.mean(axis=0),
        arm=arm.mean(axis=0),
        plain=_ratios(plain, positive),
        worked=_ratios(worked, positive),
        difference=units.estimate,
        difference_low=low,
        difference_high=high,
        standardised=worked.t / np.sqrt(trials),
        standardised_interval=standardised(worked.t, worked.df, trials=float(trials)),
        p=2 * special.stdtr(worked.df, -np.abs(worked.t)),
    )


def paired_test(first: Matrix, second: Matrix) -> Sampled:
    """Student's t of each column's differences."""
    differences = second - first
    n = len(differences)
    return Sampled(
        estimate=differences.mean(axis=0),
        error=differences.std(axis=0, ddof=1) / np.sqrt(n),
        df=np.full(differences.shape[1], n - 1.0),
        size=np.maximum(np.abs(first).mean(axis=0), np.abs(second).mean(axis=0)),
    )


def welch_test(first: Matrix, second: Matrix) -> Sampled:
    """Welch's t of each column, with Satterthwaite's degrees of freedom."""
    shares = [values.var(axis=0, ddof=1) / len(values) for values in (first, second)]
    whole = shares[0] + shares[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        df = whole**2 / (shares[0] ** 2 / (len(first) - 1) + shares[1] ** 2 / (len(second) - 1))
    return Sampled(
        estimate=second.mean(axis=0) - first.mean(axis=0),
        error=np.sqrt(whole),
        df=np.nan_to_num(df, nan=1.0),
        size=np.maximum(np.abs(first).mean(axis=0), np.abs(second).mean(axis=0)),
    )


def standardised(t: Matrix, df: Matrix, *, trials: float) -> tuple[Matrix, Matrix]:
    """Interval of the standardised effect; NaN where t is too large to invert, or there is none."""
    usable = np.where(np.abs(t) <= LARGEST_T, t, np.nan)
    tail = (1 - CONFIDENCE) / 2
    low, high = (special.nctdtrinc(df, probability, usable) for probability in (1 - tail, tail))
    return np.asarray(low / np.sqrt(trials)), np.asarray(high / np.sqrt(trials))


def _log(values: Matrix, positive: npt.NDArray[np.bool_]) -> Matrix:
    return np.asarray(np.log(np.where(positive, values, 1.0)))


def _where(positive: npt.NDArray[np.bool_], logs: Sampled, units: Sampled) -> Sampled:
    """Each column's test on the scale it has."""
    return Sampled(
        estimate=np.where(positive, logs.estimate, units.estimate),
        error=np.where(positive, logs.error, units.error),
        df=np.where(positive, logs.df, units.df),
        size=np.where(positive, logs.size, units.size),
    )


def _ratios(test: Sampled, positive: npt.NDArray[np.bool_]) -> dict[str, Matrix]:
    low, high = test.bounds()
    with np.errstate(over="ignore"):
        return {
            name: np.where(positive, np.exp(values), np.nan)
            for name, values in (("ratio", test.estimate), ("low", low), ("high", high))
        }
