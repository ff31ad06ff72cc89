"""The exact two-sided binomial test, quickly: a report judges twenty counts of every trial by it.

`scipy.stats.binomtest` looks for the other tail with some forty calls of a distribution's `pmf`, a millisecond in all;
tests compare the two. Densities by Loader's saddle point, which loses no digit however large the counts are. Source:
C. Loader (2000), "Fast and Accurate Computation of Binomial Probabilities".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from scipy import special

TIE: Final = 1 + 1e-7  # densities closer than that are equal, as in SciPy and R
SERIES_FROM: Final = 16  # the error of Stirling's formula by its series; below by itself
NEAR: Final = 0.1  # of their sum: closer numbers have their deviance by its series
LOG_ROOT_TAU: Final = 0.5 * math.log(2 * math.pi)


def p_value(count: int, of: int, chance: float) -> float:
    """Probability of a count that is no likelier than this one.

    Args:
        count: successes, 0 to `of`.
        of: trials, 1 at least.
        chance: of each; of 0 or 1 it leaves one count only.
    """
    expected = of * chance
    if count == expected:
        return 1.0
    if not 0 < chance < 1:
        return 0.0
    least = density(count, of, chance) * TIE
    if count < expected:
        first = _first(lambda k: density(k, of, chance) <= least, low=math.ceil(expected), high=of + 1)
        return min(1.0, _at_most(count, of, chance) + _at_least(first, of, chance))
    after = _first(lambda k: density(k, of, chance) > least, low=0, high=math.floor(expected) + 1)
    return min(1.0, _at_most(after - 1, of, chance) + _at_least(count, of, chance))


def density(count: int, of: int, chance: float) -> float:
    """Probability of exactly this count."""
    if count == 0:
        return math.exp(of * math.log1p(-chance))
    if count == of:
        return math.exp(of * math.log(chance))
    rest = of - count
    exponent = _stirling_error(of) - _stirling_error(count) - _stirling_error(rest)
    exponent -= _deviance(count, of * chance) + _deviance(rest, of * (1 - chance))
    return math.exp(exponent - LOG_ROOT_TAU + 0.5 * (math.log(of) - math.log(count) - math.log(rest)))


def _first(true: Callable[[int], bool], *, low: int, high: int) -> int:
    """The smallest integer from `low` on where something that stays true begins to be; `high` if nowhere before."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle + 1, high)
    return low


def _at_most(count: int, of: int, chance: float) -> float:
    if count < 0:
        return 0.0
    return 1.0 if count >= of else float(special.betainc(of - count, count + 1, 1 - chance))


def _at_least(count: int, of: int, chance: float) -> float:
    if count > of:
        return 0.0
    return 1.0 if count <= 0 else float(special.betainc(count, of - count + 1, chance))


def _stirling_error(n: int) -> float:
    """Logarithm of n! over Stirling's formula."""
    if n < SERIES_FROM:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - LOG_ROOT_TAU
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / n


def _deviance(observed: float, expected: float) -> float:
    """Of x, which was observed: x · log(x / expected) + expected - x, also where the two are close."""
    apart = observed - expected
    if abs(apart) >= NEAR * (observed + expected):
        return observed * math.log(observed / expected) - apart
    share = apart / (observed + expected)
    total, term, index = apart * share, 2 * observed * share, 1
    while True:
        term *= share * share
        more = total + term / (2 * index + 1)
        if more == total:
            return total
        total, index = more, index + 1
