"""Differences of simulated blocks under noises that deceive a t test."""

from __future__ import annotations

import math

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import Values

STALLED = math.log(0.85)  # one trial in ten of one arm
TYPICAL_OF_STALLS = -0.00299  # the pseudo-median of these differences, from four million pairs of them


def modes(shape: tuple[int, ...], *, seed: int, width: float = 1 / 9) -> Values:
    """Differences of trials that fall into one of two modes, whose distance is 1."""
    random = np.random.default_rng(seed)
    first, second = (random.normal(0, width, shape) + (random.random(shape) < 0.5) for _ in range(2))
    return second - first


def p_of_t(differences: Values) -> Values:
    return t_tests.paired_many(np.zeros_like(differences), differences).p


def own_stalls(shape: tuple[int, ...], *, seed: int) -> Values:
    """Differences of an arm that stalls now and then from one that does not, whose typical trials are alike."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, 0.01, shape) - random.normal(0, 0.01, shape)
    return noise + STALLED * (random.random(shape) < 0.1) - TYPICAL_OF_STALLS
