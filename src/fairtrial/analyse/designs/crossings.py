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
    apart = np.flatnonzero(np.abs(difference) > reach)
    for sign_change in _sign_changes(x, difference):
        zero, before, after = sign_change.at, sign_change.before, sign_change.after
        below, above = apart[apart <= before], apart[apart >= after]
        low = min(zero, _end(x, difference, reach, apart=below[-1], toward=1)) if len(below) else None
        high = max(zero, _end(x, difference, reach, apart=above[0], toward=-1)) if len(above) else None
        yield Place(
            at=float(np.exp(zero)),
            low=None if low is None else float(np.exp(low)),
            high=None if high is None else float(np.exp(high)),
        )


@dataclass(frozen=True)
class _SignChange:
    """At `at`, between the points numbered `before` and `after`, which have two signs and at most zeros between."""

    at: float
    before: int
    after: int


def _sign_changes(x: Values, y: Values) -> Iterator[_SignChange]:
    """Where y changes its sign, by straight lines between neighbours; the middle of the zeros between two signs.

    Zeros alone are no change: curves that coincide do not cross.
    """
    some = np.flatnonzero(y)
    for before, after in zip(some[:-1].tolist(), some[1:].tolist(), strict=True):
        if (y[before] > 0) == (y[after] > 0):
            continue
        if after == before + 1:
            share = y[before] / (y[before] - y[after])
            at = x[before] + share * (x[after] - x[before])
        else:
            at = (x[before + 1] + x[after - 1]) / 2
        yield _SignChange(float(at), before, after)


def _end(x: Values, difference: Values, reach: Values, *, apart: int, toward: int) -> float:
    """Where the interval begins to leave 0 out, between a point where it does and its neighbour where it does not.

    The neighbour may lie beyond the other end, on the other side of 0: an interval can be narrower than a step of the
    grid, and is then found from the difference with its sign.
    """
    inside = apart + toward
    side = 1 if difference[apart] > 0 else -1
    beyond, within = (side * difference[index] - reach[index] for index in (apart, inside))
    share = beyond / (beyond - within) if np.isfinite(within) else 0.0
    return float(x[apart] + share * (x[inside] - x[apart]))
