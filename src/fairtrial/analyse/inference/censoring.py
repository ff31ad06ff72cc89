"""Comparisons of values that are known only to lie within a class, of which one end stands for them.

A histogram's class stands for its values by its upper bound, a search's by its lower one.

Owns what classes do to a test: it holds for every set of true values that the classes allow. Where values are spread
over many classes none of this is needed: rounding is then noise, and the spread contains it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import TTest, Values

# Fewer distinct values than this share of n count as quantised. Continuous values never tie; values rounded to a
# twentieth of their standard deviation tie this often in about 1 of 100 samples of 10 (tests simulate it).
DISTINCT_SHARE: Final = 0.7
SMALLEST_N_TO_TIE: Final = 5  # below it two equal values are already most of the sample


@dataclass(frozen=True)
class CensoredValues:
    """Values, and how far below each its true one may lie (above: negative), shape (n,), on the scale of the test."""

    values: Values
    widths: Values

    @property
    def n(self) -> int:
        """Values."""
        return len(self.values)

    @property
    def error_sd(self) -> float:
        """The largest standard deviation that errors within the widths can have: half of them at either end."""
        return float(np.abs(self.widths).max()) / 2 * math.sqrt(self.n / (self.n - 1))


def coarse(values: Values) -> bool:
    """Whether values are equal, or tie so often that their classes decide their spread."""
    n, distinct = len(values), len(np.unique(values))
    if n < t_tests.SMALLEST_N:
        return False
    return distinct == 1 or (n >= SMALLEST_N_TO_TIE and distinct <= DISTINCT_SHARE * n)


def by_class(*arms: Values, resolution: float) -> bool:
    """Whether the classes of a metric of this resolution decide the spread of an arm's values."""
    return resolution != 0 and any(map(coarse, arms))


def on_units(values: Values, *, resolution: float) -> CensoredValues:
    """Values whose true ones lie up to a share `resolution` of them below; above if it is negative."""
    return CensoredValues(values=values, widths=np.abs(values) * resolution)


def on_logs(values: Values, *, resolution: float) -> CensoredValues:
    """The same of their logarithms."""
    return CensoredValues(values=np.log(values), widths=np.full(len(values), -math.log1p(-resolution)))


def paired(first: CensoredValues, second: CensoredValues, *, confidence: float) -> TTest | None:
    """As `t_tests.paired`, for the least favourable true values; None if n < 2 or the classes have no width."""
    n = first.n
    if n < t_tests.SMALLEST_N:
        return None
    differences = second.values - first.values
    errors = CensoredValues(values=differences, widths=np.abs(first.widths) + np.abs(second.widths))
    error = (float(np.std(differences, ddof=1)) + errors.error_sd) / math.sqrt(n)
    return _bounded(first, second, error=error, df=n - 1, confidence=confidence)


def welch(first: CensoredValues, second: CensoredValues, *, confidence: float) -> TTest | None:
    """As `t_tests.welch`, for the least favourable true values; None if an n < 2 or the classes have no width."""
    if min(first.n, second.n) < t_tests.SMALLEST_N:
        return None
    shares = [(float(np.std(each.values, ddof=1)) + each.error_sd) ** 2 / each.n for each in (first, second)]
    variance = sum(shares)
    if variance == 0:
        return None
    df = variance**2 / sum(share**2 / (each.n - 1) for share, each in zip(shares, (first, second), strict=True))
    return _bounded(first, second, error=math.sqrt(variance), df=df, confidence=confidence)


def _bounded(
    first: CensoredValues, second: CensoredValues, *, error: float, df: float, confidence: float
) -> TTest | None:
    if error == 0:
        return None
    return TTest(
        estimate=float(np.mean(second.values) - np.mean(first.values)),
        standard_error=error,
        df=df,
        confidence=confidence,
        below=_mean_reach(second.widths) + _mean_reach(-first.widths),
        above=_mean_reach(first.widths) + _mean_reach(-second.widths),
    )


def _mean_reach(widths: Values) -> float:
    """How far the mean of true values may lie on the side where widths are positive."""
    return float(np.maximum(widths, 0.0).mean())
