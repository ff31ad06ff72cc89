"""The largest of several statistics that share one error: Student's maximum modulus, and Lenth's with its own error.

Owns the distributions that adjust screened effects for one another. It must not know options or metrics.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.inference.roots import root

Values = NDArray[np.float64]

_NODES: Final = 400
_SIMULATED: Final = 100_000  # of the largest of Lenth's statistics: p of 5 % is known to 0.07 percentage points
_SEED: Final = 1989
_TRIMMED: Final = 2.5  # Lenth: effects beyond this many first guesses are left out of the error
_CONSISTENT: Final = 1.5  # and this makes a median of absolute normal values a standard deviation


@cache
def _spreads(df: float) -> tuple[Values, Values]:
    """Standard deviations that are estimated for a true one of 1, with their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    chances = (nodes + 1) / 2
    return np.sqrt(2 * special.gammaincinv(df / 2, chances) / df), weights / 2


def modulus_p(t: float, *, count: int, df: float) -> float:
    """The chance that the largest |t| of `count` independent estimates with one error of `df` exceeds t.

    Of estimates that are not independent it is an upper bound (Šidák 1967).

    Source: the studentised maximum modulus (Stoline and Ury 1979).
    """
    spreads, weights = _spreads(df)
    outside = -np.expm1(count * np.log1p(-np.minimum(2 * special.ndtr(-abs(t) * spreads), 1 - 1e-16)))
    return float(min(1.0, max((outside * weights).sum(), 2 * special.stdtr(df, -abs(t)))))


def t_quantile(confidence: float, *, df: float) -> float:
    """How many standard errors one interval reaches to either side."""
    return float(special.stdtrit(df, (1 + confidence) / 2))


def modulus_quantile(confidence: float, *, count: int, df: float) -> float:
    """How many standard errors reach so that all of `count` intervals hold at once."""
    lowest, highest = t_quantile(confidence, df=df), t_quantile(1 - (1 - confidence) / count / 2, df=df)
    if count == 1:
        return lowest
    excess = lambda reach: modulus_p(reach, count=count, df=df) - (1 - confidence)  # noqa: E731
    return root(excess, lowest, max(highest, lowest + 1.0))


def step_down(t: Values, *, df: float) -> Values:
    """Adjusted p values of independent estimates with one error, in steps from the largest |t| down."""
    order = np.argsort(-np.abs(t))
    adjusted, largest = np.empty_like(t), 0.0
    for place, index in enumerate(order.tolist()):
        largest = max(largest, modulus_p(float(t[index]), count=len(t) - place, df=df))
        adjusted[index] = largest
    return adjusted


def pseudo_error(effects: Values) -> Values:
    """Lenth's pseudo standard error along the last axis. Source: Lenth (1989)."""
    sizes = np.sort(np.abs(effects), axis=-1)
    guess = _CONSISTENT * np.median(sizes, axis=-1, keepdims=True)
    kept = np.maximum((sizes < _TRIMMED * guess).sum(axis=-1, keepdims=True), 1)  # the smallest ones: they are sorted
    middle = np.take_along_axis(sizes, (kept - 1) // 2, axis=-1) + np.take_along_axis(sizes, kept // 2, axis=-1)
    error: Values = _CONSISTENT * middle[..., 0] / 2
    return error


@cache
def _under_nothing(count: int) -> tuple[Values, Values]:
    """Sorted |statistics| of one and of the largest of `count` effects of nothing over their own pseudo error."""
    # Uniform numbers of this generator are the same in every version; those of its normal ones need not be.
    uniform = np.random.Generator(np.random.PCG64(_SEED + count)).random((_SIMULATED, count))
    effects = special.ndtri(uniform)
    statistics = np.abs(effects) / pseudo_error(effects)[:, None]
    return np.sort(statistics.ravel()), np.sort(statistics.max(axis=1))


def lenth_p(statistic: float, *, count: int) -> tuple[float, float]:
    """The p of one of Lenth's statistics among `count`, alone and adjusted for all of them, by simulation.

    Source: Ye and Hamada (2000), whose tables are simulated alike; Lenth's own quantiles of t are too wide.
    """
    one, largest = _under_nothing(count)
    return _share_above(one, statistic), _share_above(largest, statistic)


def _share_above(simulated: Values, statistic: float) -> float:
    return float(1 + len(simulated) - np.searchsorted(simulated, abs(statistic))) / (1 + len(simulated))


def lenth_reach(confidence: float, *, count: int) -> tuple[float, float]:
    """How many pseudo errors reach, for one effect and for all of `count`."""
    one, largest = (float(np.quantile(each, confidence)) for each in _under_nothing(count))
    return one, largest
