"""Trials of arms that differ by what is asked for, with the noise of real machines: logarithms, in the order of a run.

Every kind has trial-to-trial deviations near 1 %, the usual size on a quiet machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Values = NDArray[np.float64]

SPREAD = 0.01
SLOW_SHARE, SLOW_BY = 0.1, 0.15  # one trial in ten loses 15 %
MODES_APART = 0.03
DRIFT = 0.03  # from the first trial of a run to the last
CORRELATION = 0.6  # of neighbours in time
OWN_TAIL = 0.02  # mean of an exponential loss
OWN_SPREAD = 0.03
DRAWN = 4_000_000  # their median to within 0.001 %


def normal(random: np.random.Generator, runs: int, slots: int) -> Values:
    return random.normal(0, SPREAD, (runs, slots))


def occasional_slow(random: np.random.Generator, runs: int, slots: int) -> Values:
    return normal(random, runs, slots) - SLOW_BY * (random.random((runs, slots)) < SLOW_SHARE)


def bimodal(random: np.random.Generator, runs: int, slots: int) -> Values:
    return normal(random, runs, slots) / 3 + MODES_APART * (random.integers(0, 2, (runs, slots)) - 0.5)


def drift(random: np.random.Generator, runs: int, slots: int) -> Values:
    return normal(random, runs, slots) + np.linspace(-DRIFT / 2, DRIFT / 2, slots)


def autocorrelated(random: np.random.Generator, runs: int, slots: int) -> Values:
    fresh = normal(random, runs, slots)
    values = np.empty_like(fresh)
    values[:, 0] = fresh[:, 0]
    for slot in range(1, slots):
        values[:, slot] = CORRELATION * values[:, slot - 1] + np.sqrt(1 - CORRELATION**2) * fresh[:, slot]
    return values


KINDS: dict[str, Callable[[np.random.Generator, int, int], Values]] = {
    "normal": normal,
    "occasional slow": occasional_slow,
    "bimodal": bimodal,
    "drift": drift,
    "autocorrelated": autocorrelated,
}
# What a single arm's mean estimates; drift and correlation have no other mean than that of all time.
MEANS = {kind: -SLOW_SHARE * SLOW_BY if kind == "occasional slow" else 0.0 for kind in KINDS}


def own_stalls(random: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return np.log1p(-SLOW_BY) * (random.random(shape) < SLOW_SHARE)


def own_tail(random: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return -random.exponential(OWN_TAIL, shape)


def own_spread(random: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return random.normal(0, OWN_SPREAD, shape)


# Beside the noise that arms share: what only one of them has.
OWN: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Values]] = {
    "own stalls": own_stalls,
    "own tail": own_tail,
    "own spread": own_spread,
}
OWN_MEANS = {"own stalls": SLOW_SHARE * float(np.log1p(-SLOW_BY)), "own tail": -OWN_TAIL, "own spread": 0.0}


@cache
def typical(kind: str, *, paired: bool) -> float:
    """What an arm's own noise does to its typical trial: the median of pairs of differences, or of differences."""
    random = np.random.default_rng(1)
    first, second = (own_differences(random, kind, (DRAWN,)) for _ in range(2))
    return float(np.median((first + second) / 2 if paired else first))


def own_differences(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Values:
    return random.normal(0, SPREAD, shape) - random.normal(0, SPREAD, shape) + OWN[kind](random, shape)


@dataclass(frozen=True)
class Shape:
    """How many of everything; the baseline is one of the arms."""

    runs: int
    cells: int
    arms: int
    n: int


def blocks(random: np.random.Generator, kind: str, shape: Shape) -> Values:
    """Shape (runs, cells, arms, n): blocks of all arms, close in time and in random order; cells do not share noise."""
    in_time = KINDS[kind](random, shape.runs * shape.cells, shape.n * shape.arms).reshape(-1, shape.n, shape.arms)
    mixed = np.swapaxes(random.permuted(in_time, axis=-1), -1, -2)
    return mixed.reshape(shape.runs, shape.cells, shape.arms, shape.n)


def shuffled(random: np.random.Generator, kind: str, *, runs: int, arms: int, n: int) -> Values:
    """Shape (runs, arms, n): no blocks, every order of the trials alike."""
    return random.permuted(KINDS[kind](random, runs, n * arms), axis=-1).reshape(runs, arms, n)


def in_turn(random: np.random.Generator, kind: str, *, runs: int, arms: int, n: int) -> Values:
    """Shape (runs, arms, n): one arm after the other, which no path makes by default."""
    return KINDS[kind](random, runs, n * arms).reshape(runs, arms, n)
