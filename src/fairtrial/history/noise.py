"""How much a series scatters from run to run, and how alike neighbours are.

Both come from first differences with the largest pulled in: a spike touches two of them. A step adds to the squares of
differences and not to the products of neighbouring ones, and so passes for autocorrelation; the levels of a series are
therefore taken out first (`distances`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from fairtrial.analyse.inference.t_tests import Values

MAD_OF_NORMAL: Final = 0.6744897501960817  # median absolute deviation of a standard normal variable
WINSOR_SDS: Final = 3.0  # differences beyond this many robust standard deviations are pulled in to it
LARGEST_AUTOCORRELATION: Final = 0.8  # beyond, a series of tens of points cannot be told from a random walk
# sd of the estimate below times the root of n; simulated: 0.32, 0.22, 0.18 at n = 20, 40, 60.
AUTOCORRELATION_SPREAD: Final = 1.6
CAUTION: Final = 0.5  # standard errors added to the estimate: an interval too wide is better than one too narrow


@dataclass(frozen=True)
class Noise:
    """Of one series.

    Attributes:
        unit: standard deviation of a difference, divided by √2.
        autocorrelation: lag 1, with caution added, in [0, `LARGEST_AUTOCORRELATION`].
        sd: standard deviation of a point around its level.
    """

    unit: float
    autocorrelation: float
    sd: float

    def effective(self, n: int) -> float:
        """How many independent points n neighbours are worth. Source: Bayley & Hammersley (1946), n large."""
        return max(1.0, n * (1 - self.autocorrelation) / (1 + self.autocorrelation))


def noise(values: Values) -> Noise | None:
    """None where all values are equal."""
    pulled = _differences(values)
    unit = math.sqrt(float((pulled**2).mean()) / 2)
    if unit == 0:
        return None
    raw = 1 + 2 * float(pulled[1:] @ pulled[:-1]) / float(pulled @ pulled)
    cautious = raw + CAUTION * AUTOCORRELATION_SPREAD / math.sqrt(len(values))
    autocorrelation = min(max(cautious, 0.0), LARGEST_AUTOCORRELATION)
    plain = min(max(raw, 0.0), LARGEST_AUTOCORRELATION)
    return Noise(unit=unit, autocorrelation=autocorrelation, sd=unit / math.sqrt(1 - plain))


def scatter(values: Values, starts: Sequence[int]) -> float:
    """Standard deviation of a point around its segment's median, the largest distances pulled in.

    Narrower than `Noise.sd` for a short series, whose autocorrelation is a guess, and good for one point's alarm.
    """
    away = distances(values, starts)
    limit = WINSOR_SDS * float(np.median(np.abs(away))) / MAD_OF_NORMAL
    pulled = np.clip(away, -limit, limit)
    return math.sqrt(float(pulled @ pulled) / (len(values) - len(starts) - 1))


def distances(values: Values, starts: Sequence[int]) -> Values:
    """Of every point from its segment's median."""
    bounds = [0, *starts, len(values)]
    return np.concatenate([values[a:b] - np.median(values[a:b]) for a, b in pairwise(bounds)])


def _differences(values: Values) -> Values:
    """First differences, the largest pulled in; where more than half are 0, with their plain standard deviation."""
    steps = np.diff(values)
    robust = float(np.median(np.abs(steps))) / MAD_OF_NORMAL
    limit = WINSOR_SDS * (robust or math.sqrt(float((steps**2).mean())))
    return np.asarray(np.clip(steps, -limit, limit), dtype=np.float64)
