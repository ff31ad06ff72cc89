"""Student's and Welch's t tests, as R's `t.test` computes them, with everything a later step needs of them.

Owns the arithmetic of one test on one scale. It must not know metrics, arms or verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

Values = NDArray[np.float64]

# R refuses a test whose standard error is below this many units of rounding of the means: "essentially constant".
ROUNDING_UNITS: Final = 10
SMALLEST_N: Final = 2  # one value has no spread


@dataclass(frozen=True)
class TTest:
    """One t test of an estimate against 0.

    Attributes:
        estimate, standard_error: on the scale of the values given.
        df: degrees of freedom, fractional for Welch.
        p: two-sided.
        low, high: interval of the estimate at the confidence asked for.
    """

    estimate: float
    standard_error: float
    df: float
    low: float
    high: float

    @property
    def t(self) -> float:
        """The statistic."""
        return self.estimate / self.standard_error

    @property
    def p(self) -> float:
        """Two-sided."""
        return two_sided_p(self.t, self.df)


def two_sided_p(t: float, df: float) -> float:
    """Probability of a |t| at least this large if the true estimate is 0."""
    return float(2 * special.stdtr(df, -abs(t)))


def quantile(probability: float, df: float) -> float:
    """Student's t quantile."""
    return float(special.stdtrit(df, probability))


def mean(values: Values, *, confidence: float) -> TTest | None:
    """One-sample t on the mean. None if n < 2 or the values are constant up to rounding.

    Source: Student (1908); `t.test(x)` in R.
    """
    if len(values) < SMALLEST_N:
        return None
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return _test(float(np.mean(values)), error=error, df=len(values) - 1, confidence=confidence, size=_size(values))


def paired(first: Values, second: Values, *, confidence: float) -> TTest | None:
    """Paired t on `second - first`, element by element. None if n < 2 or the differences are constant up to rounding.

    Source: `t.test(second, first, paired = TRUE)` in R.
    """
    if len(first) < SMALLEST_N:
        return None
    differences = second - first
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    size = max(_size(first), _size(second))
    return _test(float(np.mean(differences)), error=error, df=len(first) - 1, confidence=confidence, size=size)


def welch(first: Values, second: Values, *, confidence: float) -> TTest | None:
    """Welch's t on `mean(second) - mean(first)`. None if either n < 2 or both samples are constant up to rounding.

    Source: Welch (1947), degrees of freedom by Satterthwaite (1946); `t.test(second, first)` in R.
    """
    if min(len(first), len(second)) < SMALLEST_N:
        return None
    shares = [float(np.var(values, ddof=1)) / len(values) for values in (first, second)]
    variance = sum(shares)
    if variance == 0:
        return None
    df = variance**2 / sum(share**2 / (len(values) - 1) for share, values in zip(shares, (first, second), strict=True))
    return _test(
        float(np.mean(second) - np.mean(first)),
        error=math.sqrt(variance),
        df=df,
        confidence=confidence,
        size=max(_size(first), _size(second)),
    )


def _test(estimate: float, *, error: float, df: float, confidence: float, size: float) -> TTest | None:
    if error <= ROUNDING_UNITS * np.finfo(np.float64).eps * size:
        return None
    reach = quantile((1 + confidence) / 2, df) * error
    return TTest(estimate=estimate, standard_error=error, df=df, low=estimate - reach, high=estimate + reach)


def _size(values: Values) -> float:
    """How large the values are, to tell spread from rounding."""
    return float(np.abs(values).mean())


def array(values: Sequence[float]) -> Values:
    """Values as the functions above take them."""
    return np.asarray(values, dtype=np.float64)
