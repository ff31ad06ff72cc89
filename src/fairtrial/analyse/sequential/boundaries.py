"""Boundaries of a sequential t test at every level at once, and the p value that looking often leaves valid.

A boundary is kept as the nominal level that a look asks for. The *sequential p* of a path is the smallest overall level
at which any look so far has crossed its boundary: it is valid whenever, and for whatever reason, one stops looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.sequential.chain import EDGES, Law, sequential_t
from fairtrial.analyse.sequential.spending import FUNCTIONS, Spending

EVERY_ROUND: Final = 100  # looks after every block up to here; later ones would hardly differ
LATER_STEP: Final = 1.05  # and then whenever there is a twentieth more
LEVELS: Final = np.geomspace(1e-12, 0.5, 61)  # overall levels that boundaries are solved for; interpolated between


def looks(first: int, last: int) -> tuple[int, ...]:
    """Numbers of blocks after which a rule decides, the last always among them."""
    numbers = [first]
    while numbers[-1] < last:
        n = numbers[-1]
        numbers.append(min(last, n + 1 if n < EVERY_ROUND else int(np.ceil(n * LATER_STEP))))
    return tuple(numbers)


@dataclass(frozen=True)
class Boundaries:
    """Nominal levels by look and overall level, shape (looks, levels); one- or two-sided as `sides` says."""

    looks: tuple[int, ...]
    sides: int
    nominal: Values

    def nominal_level(self, n: int, *, level: float) -> float:
        """What a fixed test after n blocks must reach for the sequential one to have `level`."""
        return float(np.exp(_line(np.log(level), np.log(LEVELS), np.log(self._at(n)))))

    def sequential_p(self, p: Values, n: int) -> Values:
        """The overall level at which a nominal p after n blocks lies on the boundary. Any shape; 1 at most."""
        with np.errstate(divide="ignore"):
            logarithm = np.log(p)
        level: Values = np.exp(_line(logarithm, np.log(self._at(n)), np.log(LEVELS)))
        capped: Values = np.where(p > self._at(n)[-1], 1.0, np.maximum(level, p))
        return capped

    def _at(self, n: int) -> Values:
        levels: Values = self.nominal[self.looks.index(n)]
        return levels


def _line(at: Values | float, x: Values, y: Values) -> Values:
    """Interpolates linearly, and beyond the smallest x goes on as steeply as there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (y[1] - y[0]) / (x[1] - x[0])
        return np.where(np.asarray(at) < x[0], y[0] + slope * (np.asarray(at) - x[0]), np.interp(at, x, y))


@lru_cache(maxsize=64)
def boundaries(spending: Spending, *, first: int, last: int, sides: int) -> Boundaries:
    """The boundaries of a t test that looks from `first` to `last` blocks."""
    after = looks(first, last)
    return solve(sequential_t, after, spent=[FUNCTIONS[spending](LEVELS, n / last, sides) for n in after], sides=sides)


def solve(law: Law, after: Sequence[int], *, spent: Sequence[Values], sides: int) -> Boundaries:
    """Boundaries that use up exactly `spent`: by look, the error so far at each of `LEVELS`.

    Carries the probability of not having crossed, by level and state, from look to look.
    """
    start = special.ndtr(-EDGES)
    inside = np.tile(-np.diff(start), (len(LEVELS), 1))
    beyond = np.tile(start, (len(LEVELS), 1))
    nominal = np.empty((len(after), len(LEVELS)))
    before = np.zeros(len(LEVELS))
    for index, n in enumerate(after):
        if index:
            step = law(after[index - 1], n)
            beyond = inside @ step
            inside = -np.diff(beyond, axis=1)
        critical = _critical((spent[index] - before) / sides, beyond)
        nominal[index] = sides * special.ndtr(-critical)
        inside = inside * _kept(critical, sides=sides)
        before = spent[index]
    return Boundaries(looks=tuple(after), sides=sides, nominal=nominal)


def _critical(error: Values, beyond: Values) -> Values:
    """The y above which lies just `error`, by level; between edges the logarithm of the tail is nearly straight."""
    with np.errstate(divide="ignore"):
        tails, targets = np.log(beyond.clip(0)), np.log(error.clip(0))  # rounding may leave less than nothing
    return np.array(
        [
            np.interp(-logarithm, -tail[np.isfinite(tail)], EDGES[np.isfinite(tail)])
            for logarithm, tail in zip(targets, tails, strict=True)
        ]
    )


def _kept(critical: Values, *, sides: int) -> Values:
    """Share of each cell that lies inside the boundary, shape (levels, cells)."""
    low, width = EDGES[:-1], EDGES[1] - EDGES[0]
    kept: Values = np.clip((critical[:, None] - low) / width, 0, 1)
    mirrored: Values = kept * kept[:, ::-1]
    return mirrored if sides == 2 else kept  # noqa: PLR2004 - the grid is symmetric
