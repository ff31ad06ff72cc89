"""Student's and Welch's t tests, as R's `t.test` computes them, with everything a later step needs of them.

Owns the arithmetic of one test on one scale. It must not know metrics, arms or verdicts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

Values = NDArray[np.float64]

# R refuses a test whose standard error is below this many units of rounding of the means: "essentially constant".
ROUNDING_UNITS: Final = 10
ROUNDING: Final = ROUNDING_UNITS * float(np.finfo(np.float64).eps)  # the same as a share of the means
SMALLEST_N: Final = 2  # one value has no spread
LARGEST_LOGARITHM: Final = math.log(sys.float_info.max)


@dataclass(frozen=True)
class TTest:
    """One t test of an estimate against 0.

    Attributes:
        estimate, standard_error: on the scale of the values.
        df: degrees of freedom, fractional for Welch.
        confidence: of the interval from `low` to `high`.
        below, above: how far the true values' estimate may lie from this one, where values are classes.
    """

    estimate: float
    standard_error: float
    df: float
    confidence: float
    below: float = 0.0
    above: float = 0.0

    @property
    def t(self) -> float:
        """The statistic, of the estimate nearest to 0 that the values' classes allow."""
        nearest = max(self.estimate - self.below, 0.0) if self.estimate > 0 else min(self.estimate + self.above, 0.0)
        return nearest / self.standard_error

    @property
    def p(self) -> float:
        """Two-sided."""
        return two_sided_p(self.t, self.df)

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.interval(confidence=self.confidence)[0]

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.interval(confidence=self.confidence)[1]

    def interval(self, *, confidence: float) -> tuple[float, float]:
        """Low and high of the estimate, of any true values in the values' classes."""
        reach = quantile((1 + confidence) / 2, self.df) * self.standard_error
        return self.estimate - self.below - reach, self.estimate + self.above + reach

    @property
    def many(self) -> TTests:
        """The same as an array of one, without dimensions."""
        return TTests(
            estimate=np.asarray(self.estimate), standard_error=np.asarray(self.standard_error), df=np.asarray(self.df)
        )


def two_sided_p(t: float, df: float) -> float:
    """Probability of a |t| at least this large if the true estimate is 0."""
    return float(2 * special.stdtr(df, -abs(t)))


def quantile(probability: float, df: float) -> float:
    """Student's t quantile."""
    return float(special.stdtrit(df, probability))


def rounding(logs: Values) -> float:
    """What rounding makes of the error of a mean of logarithms."""
    return ROUNDING * max(1.0, float(np.abs(logs).mean()))


def mean(values: Values, *, confidence: float) -> TTest | None:
    """One-sample t on the mean. None if n < 2 or the values are constant up to rounding.

    Source: Student (1908); `t.test(x)` in R.
    """
    if len(values) < SMALLEST_N:
        return None
    return paired_many(np.zeros_like(values), values).single(confidence=confidence)


def paired(first: Values, second: Values, *, confidence: float) -> TTest | None:
    """Paired t on `second - first`, element by element. None if n < 2 or the differences are constant up to rounding.

    Source: `t.test(second, first, paired = TRUE)` in R.
    """
    return None if len(first) < SMALLEST_N else paired_many(first, second).single(confidence=confidence)


def welch(first: Values, second: Values, *, confidence: float) -> TTest | None:
    """Welch's t on `mean(second) - mean(first)`. None if either n < 2 or both samples are constant up to rounding.

    Source: Welch (1947), degrees of freedom by Satterthwaite (1946); `t.test(second, first)` in R.
    """
    few = min(len(first), len(second)) < SMALLEST_N
    return None if few else welch_many(first, second).single(confidence=confidence)


@dataclass(frozen=True)
class TTests:
    """Many t tests at once: arrays of one shape; `standard_error` is NaN where a test cannot be computed."""

    estimate: Values
    standard_error: Values
    df: Values

    @property
    def p(self) -> Values:
        """Two-sided; 1 where a test cannot be computed."""
        p: Values = 2 * special.stdtr(self.df, -np.abs(self.estimate / self.standard_error))
        return np.where(np.isnan(p), 1.0, p)

    def interval(self, *, confidence: float) -> tuple[Values, Values]:
        """Low and high of the estimates."""
        reach = special.stdtrit(self.df, (1 + confidence) / 2) * self.standard_error
        return self.estimate - reach, self.estimate + reach

    def times(self, exponent: NDArray[np.int32]) -> TTests:
        """The same tests of values times 2 to a power: exact, unless they get too small for a number."""
        return TTests(
            estimate=np.ldexp(self.estimate, exponent),
            standard_error=np.ldexp(self.standard_error, exponent),
            df=self.df,
        )

    def single(self, *, confidence: float) -> TTest | None:
        """The only test, of arrays without dimensions; None if it cannot be computed."""
        if np.isnan(self.standard_error):
            return None
        return TTest(float(self.estimate), float(self.standard_error), df=float(self.df), confidence=confidence)


def paired_many(first: Values, second: Values) -> TTests:
    """`paired` along the last axis of two arrays of one shape (…, n), n ≥ 2."""
    (first, second), exponent = scaled(first, second)
    differences = second - first
    n = differences.shape[-1]
    error = np.std(differences, ddof=1, axis=-1) / math.sqrt(n)
    size = np.maximum(_sizes(first), _sizes(second))
    tests = _tests(np.mean(differences, axis=-1), error=error, df=np.full_like(error, n - 1), size=size)
    return tests.times(exponent)


def welch_many(first: Values, second: Values) -> TTests:
    """`welch` along the last axis of two arrays of shapes (…, n) and (…, m), n and m ≥ 2."""
    (first, second), exponent = scaled(first, second)
    n, m = first.shape[-1], second.shape[-1]
    share, other = np.var(first, ddof=1, axis=-1) / n, np.var(second, ddof=1, axis=-1) / m
    variance = share + other
    with np.errstate(invalid="ignore"):  # without any spread there is no test, and `_tests` says so
        df = variance**2 / (share**2 / (n - 1) + other**2 / (m - 1))
    size = np.maximum(_sizes(first), _sizes(second))
    tests = _tests(np.mean(second, axis=-1) - np.mean(first, axis=-1), error=np.sqrt(variance), df=df, size=size)
    return tests.times(exponent)


def scaled(*samples: Values) -> tuple[list[Values], NDArray[np.int32]]:
    """All divided by a power of 2, so that no square is too large or too small for a number, and its exponent."""
    exponent = np.frexp(reduce(np.maximum, [np.abs(each).max(axis=-1) for each in samples]))[1]
    return [np.ldexp(each, -exponent[..., None]) for each in samples], exponent


def _tests(estimate: Values, *, error: Values, df: Values, size: Values) -> TTests:
    constant = error <= ROUNDING * size
    return TTests(estimate=estimate, standard_error=np.where(constant, np.nan, error), df=df)


def _sizes(values: Values) -> Values:
    """How large the values are, to tell spread from rounding."""
    return np.asarray(np.abs(values).mean(axis=-1))


def spread(values: Values) -> float:
    """Sample standard deviation (n - 1) of two values or more, whatever their size."""
    (values,), exponent = scaled(values)
    return float(np.ldexp(np.std(values, ddof=1), exponent))


def array(values: Sequence[float]) -> Values:
    """Values as the functions above take them."""
    return np.asarray(values, dtype=np.float64)
