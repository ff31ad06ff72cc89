"""How concentrated choices are, whatever was added to them: for uniform ones and those of TPC-C's clause 2.1.6."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def effective(counts: Sequence[int]) -> float:
    """How many equally likely things would be met twice as often as these were: the inverse of Simpson's index."""
    total = sum(counts)
    return total * (total - 1) / sum(count * (count - 1) for count in counts)


def effective_nurand(bits: int, low: int, high: int) -> float:
    """The same of `NURand(bits, low, high)` exactly, `bits` being one less than a power of two.

    Its constant moves all values alike, so it does not matter.
    """
    weights = np.zeros(high - low + 1)
    numbers = np.arange(low, high + 1)
    for drawn in range(bits + 1):
        weights += np.bincount((numbers | drawn) % len(numbers), minlength=len(numbers))
    return float(weights.sum() ** 2 / (weights**2).sum())
