"""Many searches at once, by the rules of `deciding`: what a bisection will take before it is begun. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.bisect import settling
from fairtrial.bisect.asking import next_version
from fairtrial.bisect.holding import SEARCHING, held
from fairtrial.bisect.posterior import Evidence, Floats, Integers, posterior
from fairtrial.bisect.settling import CHANGED, FEWEST, OPEN, ends_from, settle, unsettled

Draw = Callable[[tuple[int, ...]], Floats]  # noise of that shape
NO_CHANGE: Final = -1  # beside the outcomes of `holding`: the ends say so
AT_ONCE: Final = 250  # searches: their arrays stay in the processor's cache


@dataclass(frozen=True)
class Truth:
    """What is simulated.

    Attributes:
        levels: by search and version, the reference first: its true log ratio.
        draw: noise of blocks.
    """

    levels: Floats
    draw: Draw

    def blocks(self, searches: Integers, versions: Integers) -> Floats:
        """A block of a version of each search."""
        return self.levels[searches, versions] + self.draw((len(searches),))


@dataclass
class Searches:
    """What came out, by search.

    Attributes:
        blocks, ends: all, and those of the ends.
        versions: how many were tested beside the reference.
        outcome: `NO_CHANGE`, or `holding`'s; `SEARCHING` for none.
        interval, second: where the step lies, and the second of two.
        size, noise: level of the end, and what a block's log ratio varies by.
    """

    blocks: Integers
    ends: Integers
    versions: Integers
    outcome: Integers
    interval: Integers
    second: Integers
    size: Floats
    noise: Floats


@dataclass
class _Seen:
    """Sums by search and tested version; an unused place stands at the end with no blocks."""

    position: Integers
    n: Floats
    total: Floats
    squares: Floats

    def only(self, chosen: Integers) -> _Seen:
        return _Seen(*(each[chosen] for each in vars(self).values()))

    def add(self, versions: Integers, values: Floats, *, end: int) -> None:
        rows = np.arange(len(versions))
        free = self.n == 0
        same = (self.position == versions[:, None]) & ~free
        if not (same | free).any(axis=-1).all():
            room = ((0, 0), (0, 8))
            self.position = np.pad(self.position, room, constant_values=end)
            self.n, self.total = np.pad(self.n, room), np.pad(self.total, room)
            free, same = self.n == 0, np.pad(same, room)
        place = np.where(same.any(axis=-1), same.argmax(axis=-1), free.argmax(axis=-1))
        self.position[rows, place] = versions
        self.n[rows, place] += 1
        self.total[rows, place] += values
        self.squares += values**2
        order = np.argsort(self.position, axis=-1, kind="stable")
        self.position = np.take_along_axis(self.position, order, axis=-1)
        self.n, self.total = (np.take_along_axis(each, order, axis=-1) for each in (self.n, self.total))

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.position, self.n, self.total, self.squares)


def simulate(truth: Truth, *, blocks: int, margin: float) -> Searches:
    """Carries every search out to its answer, or to the largest number of blocks."""
    parts = [
        _some(Truth(truth.levels[start : start + AT_ONCE], truth.draw), blocks=blocks, margin=margin)
        for start in range(0, len(truth.levels), AT_ONCE)
    ]
    names = list(vars(parts[0]))
    return Searches(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _some(truth: Truth, *, blocks: int, margin: float) -> Searches:
    count, end = len(truth.levels), truth.levels.shape[1] - 1
    settled, of_end = _settled(truth, margin=margin, limit=max(blocks // 2, 1))
    ends = ends_from(*of_end.T)
    found = Searches(
        blocks=ends.n.astype(np.int64),
        ends=ends.n.astype(np.int64),
        versions=np.ones(count, dtype=np.int64),
        outcome=np.where(settled == settling.NO_CHANGE, NO_CHANGE, SEARCHING),
        interval=np.full(count, -1),
        second=np.full(count, -1),
        size=ends.mean.copy(),
        noise=ends.sd.copy(),
    )
    active = np.flatnonzero(settled == CHANGED)
    begun = _Seen(np.full((count, 1), end), of_end[:, :1], of_end[:, 1:2], of_end[:, 2])
    seen, weights = begun.only(active), np.ones(end)
    while len(active):
        now = posterior(seen.evidence, weights)
        answer = held(now)
        found.outcome[active], found.interval[active] = answer.outcome, answer.interval
        found.second[active], found.size[active] = answer.second, now.tail
        found.noise[active], found.versions[active] = np.sqrt(now.noise), (seen.n > 0).sum(axis=-1)
        on = np.flatnonzero((answer.outcome == SEARCHING) & (found.blocks[active] < blocks))
        chosen = np.where(unsettled(now), end, next_version(now, weights))[on]
        active, seen = active[on], seen.only(on)
        seen.add(chosen, truth.blocks(active, chosen), end=end)
        found.blocks[active] += 1
        found.ends[active] += chosen == end
    return found


def _settled(truth: Truth, *, margin: float, limit: int) -> tuple[Integers, Floats]:
    """What settling the ends comes to, and the sums of its blocks."""
    count, end = len(truth.levels), truth.levels.shape[1] - 1
    sums = np.zeros((count, 3))
    outcome, more = np.full(count, OPEN), np.full(count, FEWEST)
    while (rows := np.flatnonzero(outcome == OPEN)).size:
        for done in range(more[rows].max()):
            due = rows[more[rows] > done]
            sums[due] += _moments(truth.blocks(due, np.full(len(due), end)))
        outcome[rows], more[rows] = settle(ends_from(*sums[rows].T), bound=math.log1p(margin), limit=limit)
    return outcome, sums


def _moments(values: Floats) -> Floats:
    return np.stack([np.ones_like(values), values, values**2], axis=-1)
