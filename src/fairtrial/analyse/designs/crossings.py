"""Where two curves cross: every place where their difference may be 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairtrial.analyse.inference.t_tests import Values


@dataclass(frozen=True)
class Place:
    """A crossing at `at`; `low` and `high` are None where the curves cannot be told apart up to the range's end."""

    at: float
    low: float | None
    high: float | None


def crossings(n: Values, difference: Values, reach: Values) -> Iterator[Place]:
    """Crossings of two curves by their difference on a fine grid, and how far its interval reaches there.

    All values at which the interval holds 0 are possible; those around a crossing are its interval.
    """
    x = np.log(n)
    apart = np.abs(difference) - reach
    for zero in _sign_changes(x, difference):
        index = int(np.searchsorted(x, zero))
        below = [end for end in _ends(x[: index + 1], apart[: index + 1]) if end <= zero]
        above = [end for end in _ends(x[max(index - 1, 0) :], apart[max(index - 1, 0) :]) if end >= zero]
        low, high = (max(below, default=None), min(above, default=None))
        yield Place(
            at=float(np.exp(zero)),
            low=None if low is None else float(np.exp(low)),
            high=None if high is None else float(np.exp(high)),
        )


def _sign_changes(x: Values, y: Values) -> list[float]:
    """Where y changes its sign, by straight lines between neighbours; the middle of the zeros between two signs.

    Zeros alone are no change: curves that coincide do not cross.
    """
    some = np.flatnonzero(y)
    found = []
    for before, after in zip(some[:-1].tolist(), some[1:].tolist(), strict=True):
        if (y[before] > 0) == (y[after] > 0):
            continue
        if after == before + 1:
            share = y[before] / (y[before] - y[after])
            found.append(float(x[before] + share * (x[after] - x[before])))
        else:
            found.append(float((x[before + 1] + x[after - 1]) / 2))
    return found


def _ends(x: Values, y: Values) -> list[float]:
    """Where stretches without a positive y begin or end, by straight lines between neighbours."""
    found = []
    for index in np.flatnonzero((y[:-1] > 0) != (y[1:] > 0)).tolist():
        share = y[index] / (y[index] - y[index + 1])
        found.append(float(x[index] + share * (x[index + 1] - x[index])))
    return found
