"""What a test could have shown: equivalence within a margin, and the smallest effect it would have found."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference.roots import root
from fairtrial.analyse.inference.t_tests import LARGEST_LOGARITHM, TTest, TTests, Values, quantile

POWER: Final = 0.8  # the convention of planning: four of five true effects of that size are found
_WRONG_TAIL_MATTERS: Final = 5.0
_SCIPYS: Final = 30.0  # noncentralities below which SciPy 1.17 knows a noncentral t; from 40 on it returns NaN for some
_NORMAL: Final = np.linspace(-9.0, 9.0, 901)
_WEIGHTS: Final = np.exp(-(_NORMAL**2) / 2) / np.exp(-(_NORMAL**2) / 2).sum()
_SPREADS: Final = (np.arange(2000) + 0.5) / 2000  # quantiles of what a study takes its spread for: exact to 3 digits


def equivalence(test: TTest, *, bound: float) -> float:
    """Two one-sided tests: p for "the true value is not inside (-bound, bound)". Small p means equivalent.

    Source: Schuirmann (1987).
    """
    above_low = float(special.stdtr(test.df, -(test.estimate - test.below + bound) / test.standard_error))
    below_high = float(special.stdtr(test.df, (test.estimate + test.above - bound) / test.standard_error))
    return max(above_low, below_high)


def equivalence_many(tests: TTests, *, bound: float) -> Values:
    """`equivalence` of many tests at once; 1 where one cannot be computed."""
    above_low = special.stdtr(tests.df, -(tests.estimate + bound) / tests.standard_error)
    below_high = special.stdtr(tests.df, (tests.estimate - bound) / tests.standard_error)
    larger = np.maximum(above_low, below_high)
    return np.where(np.isnan(larger), 1.0, larger)


def exponential(logarithm: float) -> float | None:
    """A ratio from its logarithm; None where no number holds it."""
    return math.exp(logarithm) if logarithm <= LARGEST_LOGARITHM else None


def share(effect: float) -> float | None:
    """A change of logarithms as a share of the baseline; None where no number holds it."""
    return math.expm1(effect) if effect < LARGEST_LOGARITHM else None


def detectable(test: TTest, *, alpha: float) -> float:
    """The true value, on the test's scale, that a repeat with this spread would find with probability `POWER`."""
    return shift(test.df, alpha=alpha) * test.standard_error + max(test.below, test.above)


def shift(df: float, *, alpha: float) -> float:
    """The noncentrality at which a two-sided t test at `alpha` has power `POWER`; infinite if no number is its t."""
    return shift_beyond(-quantile(alpha / 2, df), df=df)


@lru_cache(maxsize=4096)
def shift_beyond(critical: float, *, df: float) -> float:
    """The same of a test that asks for |t| above `critical`."""
    if math.isinf(critical):
        return math.inf

    def missing(noncentrality: float) -> float:
        return power(df, critical=critical, noncentrality=noncentrality) - POWER

    high = critical + 2.0
    while missing(high) < 0:
        high *= 2
    return root(missing, 0.0, high, within=1e-9)


def power(df: float, *, critical: float, noncentrality: float) -> float:
    """Probability that |t| exceeds `critical`; the wrong tail counts too, as in R's `power.t.test(strict = TRUE)`."""
    upper = 1 - float(special.nctdtr(df, noncentrality, critical)) if noncentrality < _SCIPYS else math.nan
    if math.isnan(upper):  # over the errors of a mean: that the spread is small enough beside it
        largest = ((noncentrality + _NORMAL) / critical) ** 2
        return float(_WEIGHTS @ special.gammainc(df / 2, df / 2 * largest))
    # From 5 on the wrong tail is under Phi(-5) = 3e-7. SciPy 1.17 returns NaN for some values below 1e-13, too.
    wrong_tail = noncentrality < _WRONG_TAIL_MATTERS
    lower = float(special.nctdtr(df, noncentrality, -critical)) if wrong_tail else 0.0
    return upper + (0.0 if math.isnan(lower) else lower)


def exaggeration(df: float, *, critical: float, noncentrality: float) -> float:
    """By what factor the estimates that pass a two-sided t test exceed the truth on average, whatever their direction.

    A study with little power finds an effect only where chance adds to it, or makes the spread look small. The mean
    size of the estimates with |t| above `critical`, over the true value: `noncentrality` standard errors.

    Source: Gelman and Carlin (2014), type M error; there t is simulated with the spread known.
    """
    limit = critical * np.sqrt(2 * special.gammaincinv(df / 2, _SPREADS) / df)
    above, below = noncentrality - limit, -noncentrality - limit
    passing = special.ndtr(above) + special.ndtr(below)
    size = noncentrality * (special.ndtr(above) - special.ndtr(below)) + _density(above) + _density(below)
    return float(size.mean() / passing.mean() / noncentrality)


def _density(at: Values) -> Values:
    return np.asarray(np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi))
