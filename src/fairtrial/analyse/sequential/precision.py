"""Intervals that keep their coverage although one stops as soon as they are narrow.

Stopping when the interval is narrow means stopping when the spread happens to look small, so Student's t alone covers
too seldom. The spread and the mean are independent, and sums of squares grow by independent χ² with 1 degree of freedom
(Helmert), so the coverage of t, stretched by a constant, follows from paths of the spread alone. The constant is the
smallest that covers for every true spread. Source: Anscombe (1952), Large-sample theory of sequential estimation, for
the rule; the constant by simulation of the spread with a fixed seed, which leaves ± 0.1 points.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference.roots import root
from fairtrial.analyse.inference.t_tests import Values, quantile

PATHS: Final = 4_000  # of the spread; given a path, coverage is computed, not simulated
SEED: Final = 20261121  # the constant is part of the method, not of a study
LONGEST: Final = 200  # blocks of a path; by then the stretch has vanished
WIDTHS: Final = np.geomspace(0.05, 3.0, 25)  # targets, in standard deviations of a block


def reach(n: int, *, level: float, first: int, last: int) -> float:
    """How many standard errors the interval of confidence 1 - level reaches after n blocks; infinite for n < 2."""
    if n < 2:  # noqa: PLR2004 - one value has no spread
        return math.inf
    return stretch(first, last, level=level) * quantile(1 - level / 2, n - 1)


@lru_cache(maxsize=64)
def stretch(first: int, last: int, *, level: float) -> float:
    """The factor on Student's t, 1 or a little more."""
    after = np.arange(first, min(last, max(LONGEST, first)) + 1, dtype=np.float64)
    if len(after) == 1:
        return 1.0
    critical = special.stdtrit(after - 1, 1 - level / 2)
    spread = _spreads(first, int(after[-1]))  # (paths, looks), of a true one of 1

    def missing(factor: float) -> float:
        return min(_coverage(spread, factor * critical, after=after, width=width) for width in WIDTHS) - (1 - level)

    if missing(1.0) >= 0:
        return 1.0
    return root(missing, 1.0, 3.0, within=1e-3)


def _spreads(first: int, last: int) -> Values:
    """Sample standard deviations after `first` to `last` blocks, by path."""
    random = np.random.default_rng(SEED)
    start = random.chisquare(first - 1, size=(PATHS, 1))
    grown = np.concatenate([start, random.chisquare(1, size=(PATHS, last - first))], axis=1).cumsum(axis=1)
    deviations: Values = np.sqrt(grown / (np.arange(first, last + 1) - 1))
    return deviations


def _coverage(spread: Values, critical: Values, *, after: Values, width: float) -> float:
    """Of intervals of ± critical · spread / sqrt(n), at the first n where that is within the width."""
    narrow = critical * spread / np.sqrt(after) <= width
    narrow[:, -1] = True
    at = narrow.argmax(axis=1)
    reached = critical[at] * spread[np.arange(len(spread)), at]  # in true standard errors
    return float(np.mean(1 - 2 * special.ndtr(-reached)))
