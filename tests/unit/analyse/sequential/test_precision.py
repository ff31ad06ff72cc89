"""Stopping by an interval's width: what Student's t loses, the stretch gives back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from fairtrial.analyse.sequential import precision

REPLICATES = 8_000


def coverage(factor: float, *, first: int, last: int, width: float) -> float:
    """Of intervals around means of normal values, at the first look where they are narrow: simulated whole."""
    values = np.random.default_rng(11).standard_normal((REPLICATES, last))
    covered, open_ = np.zeros(REPLICATES, dtype=bool), np.ones(REPLICATES, dtype=bool)
    for n in range(first, last + 1):
        so_far = values[:, :n]
        away = factor * special.stdtrit(n - 1, 0.975) * so_far.std(axis=1, ddof=1) / math.sqrt(n)
        stops = open_ & ((away <= width) | (n == last))
        covered |= stops & (np.abs(so_far.mean(axis=1)) <= away)
        open_ &= ~stops
    return float(covered.mean())


@pytest.mark.parametrize(("first", "last"), [(3, 20), (8, 20)])
def test_the_stretched_interval_covers_whatever_the_spread(first: int, last: int) -> None:
    factor = precision.stretch(first, last, level=0.05)
    widths = (0.4, 0.7, 1.0, 1.5)
    error = math.sqrt(0.05 * 0.95 / REPLICATES)
    assert min(coverage(factor, first=first, last=last, width=width) for width in widths) > 0.95 - 3 * error - 0.001
    assert min(coverage(1.0, first=first, last=last, width=width) for width in widths) < 0.945


def test_the_fewer_blocks_come_first_the_more_is_stretched() -> None:
    assert precision.stretch(3, 20, level=0.05) > precision.stretch(8, 20, level=0.05) > 1


def test_a_single_look_is_students_t() -> None:
    assert precision.reach(10, level=0.05, first=10, last=10) == pytest.approx(special.stdtrit(9, 0.975))
