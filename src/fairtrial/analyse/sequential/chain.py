"""The exact law of a sequence of t statistics, one after every block, while the true effect is nothing.

Of independent normal values x, let r = sum(x) / sqrt(sum(x²)) after n of them. The direction of (x₁ … xₙ) does not
depend on its length, so w = xₙ₊₁ / sqrt(sum(x²)) is independent of everything r has been so far, w · sqrt(n) has
Student's t distribution with n degrees of freedom, and

    r' = (r + w) / sqrt(1 + w²).

So r, and with it t, is a Markov chain in one dimension, whatever the variance: its law needs no simulation. Source:
Jennison and Turnbull, Exact calculations for sequential t, χ² and F tests, Biometrika 78 (1991), by another route.

States are y, the standard normal quantile of t's probability: y is standard normal after any one number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference.t_tests import Values

REACH: Final = 9.0  # of the grid: a probability of 1e-19 lies beyond it
CELLS: Final = 360  # half the width moves no error rate by more than 0.5 % of itself
NEARLY_NORMAL: Final = 30  # blocks from which the steps of y are a normal variable's to within the grid


EDGES: Final = np.linspace(-REACH, REACH, CELLS + 1)  # of the cells over y, shape (cells + 1,)
MIDDLES: Final = (EDGES[1:] + EDGES[:-1]) / 2

Law = Callable[[int, int], Values]
"""How y moves: P(y after `later` blocks > edge | y after n blocks = middle), shape (cells, cells + 1)."""


def sequential_t(n: int, later: int) -> Values:
    """The law where the spread is estimated: Student's t after every block."""
    if n >= NEARLY_NORMAL:
        return sequential_z(n, later)
    step = _t_step(n)
    for between in range(n + 1, later):
        step = -np.diff(step, axis=1) @ _t_step(between)
    return step


def sequential_z(n: int, later: int) -> Values:
    """The law where the spread is known: partial sums of normal values."""
    share = n / later
    moved = np.sqrt(share) * MIDDLES[:, None]
    return np.asarray(special.ndtr((moved - EDGES[None, :]) / np.sqrt(1 - share)))


@lru_cache(maxsize=64)
def _t_step(n: int) -> Values:
    """From n to n + 1 blocks: with w = tan θ, r' = sqrt(1 + r²) sin(θ + atan r), so c is passed between angles."""
    r = _sums(MIDDLES, n)[:, None]
    c = _sums(EDGES, n + 1)[None, :]
    with np.errstate(invalid="ignore"):
        lowest = np.arcsin(np.clip(c / np.sqrt(1 + r * r), -1, 1))
    angle = np.arctan(r)

    def below(theta: Values) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(special.stdtr(n, np.sqrt(n) * np.tan(np.clip(theta, -np.pi / 2, np.pi / 2))))

    around = below(-np.pi - lowest - angle)  # where c and r are negative, also above it at the other end
    return (below(np.pi - lowest - angle) - below(lowest - angle) + around).clip(0, 1)


def _sums(y: Values, n: int) -> Values:
    """From y to r after n blocks: r = sqrt(n) t / sqrt(n - 1 + t²)."""
    t = -special.stdtrit(n - 1, special.ndtr(-np.abs(y)))
    r: Values = np.sign(y) * np.sqrt(n) * t / np.hypot(np.sqrt(n - 1), t)
    return r
