"""Settling the ends first: how large the change between them is, or that there is none to look for. Pure.

A search by a size that is not known yet is often wrong and long: blocks go to the two ends until the size's estimate
is four standard errors. Arrays may have any shape: so many independent searches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from fairtrial.bisect.posterior import LEAST_NOISE, Floats, Integers, Posterior, Truths

STANDARD_ERRORS: Final = 4.0
STILL_SETTLED: Final = 3.0  # by the noise that the search shows; with fewer, the ends get more blocks
FEWEST: Final = 4  # blocks: of fewer, a standard error is too uncertain to count in
FEWEST_WITHOUT: Final = 6  # blocks before "no change", as for every claim of equivalence
LEVEL: Final = 0.005  # one-sided, of a look at the margin: all looks call a change of just the margin none in 3 to 4 %
OPEN, CHANGED, NO_CHANGE, UNDECIDED = range(4)


@dataclass(frozen=True)
class Ends:
    """What blocks of the two ends say.

    Attributes:
        n: blocks.
        mean: of the log ratios, the end's to the reference's.
        sd: of the log ratios.
    """

    n: Floats
    mean: Floats
    sd: Floats

    @property
    def error(self) -> Floats:
        """Standard error of the mean."""
        return np.asarray(self.sd / np.sqrt(np.maximum(self.n, 1)))


def ends_of(log_ratios: Sequence[float], *, least: float = LEAST_NOISE) -> Ends:
    """Mean and spread of one search; `least`: smallest standard deviation that is believed."""
    values = np.array(log_ratios, dtype=float)
    sums = np.asarray(math.fsum(values)), np.asarray(math.fsum(values**2))
    return ends_from(np.asarray(float(len(values))), *sums, least=least)


def ends_from(n: Floats, total: Floats, squares: Floats, *, least: float = LEAST_NOISE) -> Ends:
    """The same, from sums."""
    mean = total / np.maximum(n, 1)
    spread = np.maximum(squares - n * mean**2, 0) / np.maximum(n - 1, 1)
    return Ends(n, mean, np.maximum(np.sqrt(spread), least))


def settle(ends: Ends, *, bound: float, limit: int, width: float = 0.0) -> tuple[Integers, Integers]:
    """Whether the ends are settled (by a size, by there being none, or not within the limit), and how many blocks more.

    A change within the margin is not looked for, however well it is known: its confirmation would call it equivalent.

    Args:
        ends: so far.
        bound: largest log ratio that does not matter.
        limit: the largest number of blocks.
        width: of the metric's classes, as a log ratio: the true size may lie so far from what values say. Ends that
            classes so wide do not tell apart are not settled.
    """
    n, size = ends.n, np.abs(ends.mean)
    quantile = special.stdtrit(np.maximum(n - 1, 1), 1 - LEVEL)
    enough = n >= FEWEST
    changed = enough & (size > bound) & (size >= STANDARD_ERRORS * ends.error)
    alike = (n >= FEWEST_WITHOUT) & (size + quantile * ends.error <= bound)
    without = alike & (size + quantile * ends.error + width <= bound)
    least = np.maximum(size - quantile * ends.error, 0.0)
    given_up = (n >= limit) | (alike & (least + width >= bound))
    outcome = np.select([changed, without, given_up], [CHANGED, NO_CHANGE, UNDECIDED], OPEN)
    with np.errstate(divide="ignore"):
        for_size = (STANDARD_ERRORS * ends.sd / size) ** 2
        for_none = (quantile * ends.sd / np.maximum(bound - width - size, 0)) ** 2
    needed = np.minimum(np.where(size > bound, for_size, for_none), 2 * n)
    half_way = np.clip(np.ceil((needed - n) / 2), 1, np.maximum(limit - n, 1))
    return outcome, np.where(enough, half_way, FEWEST - n).astype(np.int64)


def unsettled(now: Posterior) -> Truths:
    """Whether, by the noise that all blocks show, the size is less than three standard errors."""
    blocks = (now.evidence.n * np.cumsum(now.last, axis=-1)).sum(axis=-1)
    return np.asarray(np.abs(now.tail) * np.sqrt(blocks) < STILL_SETTLED * np.sqrt(now.noise))
