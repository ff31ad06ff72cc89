"""An always-valid t: the Bayes factor of a normal effect (in standard deviations) under the right-Haar prior.

Its reciprocal bounds the p value at every look, planned or not, for ever. Source: Wang and Ramdas, Anytime-valid
t-tests and confidence sequences for Gaussian means with unknown variance (2023); Robbins' normal mixture with the
spread integrated out.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fairtrial.analyse.inference.t_tests import Values

EFFECT_VARIANCE: Final = 1.0  # prior variance of the effect in standard deviations: large effects stop soonest


def log_bayes_factor(t: Values, n: int) -> Values:
    """Of an effect against none, after n blocks; n ≥ 2."""
    grown, df = 1 + n * EFFECT_VARIANCE, n - 1
    squared = np.square(t) / df
    with np.errstate(invalid="ignore"):
        factor = -0.5 * math.log(grown) + n / 2 * (np.log1p(squared) - np.log1p(squared / grown))
    limit = (n - 1) / 2 * math.log(grown)  # as t grows without end
    return np.where(np.isinf(squared), limit, factor)


def p(t: Values, n: int) -> Values:
    """A bound of the p value that holds at every n together."""
    return np.minimum(1.0, np.exp(-log_bayes_factor(t, n)))


def reach(n: int, *, level: float) -> float:
    """How many standard errors the interval of confidence 1 - level reaches after n blocks; infinite at first."""
    grown = 1 + n * EFFECT_VARIANCE
    ratio = (math.sqrt(grown) / level) ** (2 / n)
    if ratio >= grown:
        return math.inf
    return math.sqrt((n - 1) * (ratio - 1) / (1 - ratio / grown))
