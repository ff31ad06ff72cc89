"""From all that was measured to what happens next: blocks of the ends, a block of a version, or the answer. Pure.

The same history gives the same next step, so a resumed bisection goes on where it stood, and `verify` can follow it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from fairtrial.analyse.inference import shares
from fairtrial.analyse.inference.t_tests import ROUNDING
from fairtrial.bisect import holding, settling
from fairtrial.bisect.asking import next_version
from fairtrial.bisect.holding import HOLDS, held
from fairtrial.bisect.posterior import LEAST_NOISE, Evidence, Floats, Integers, Posterior, posterior

MOST_BLOCKS: Final = 400

Outcome = Literal["one_change", "two_steps", "no_change", "undecided"]


@dataclass
class History:
    """What is known of every version, the reference first, by its number.

    Attributes:
        versions: how many there are, the reference and the end among them.
        log_ratios: of blocks, by version.
        shares: where values are shares of a total, those of the reference and of the end, by block of the end.
        gaps: versions that cannot be built, or do not run.
        ready: versions whose building or fetching is done, or takes nothing.
        block_s: what finished blocks took, each.
        ready_s: what getting versions ready took, each.
    """

    versions: int
    log_ratios: dict[int, list[float]] = field(default_factory=dict)
    shares: list[tuple[float, float]] = field(default_factory=list)
    gaps: set[int] = field(default_factory=set)
    ready: set[int] = field(default_factory=set)
    block_s: list[float] = field(default_factory=list)
    ready_s: list[float] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The last version."""
        return self.versions - 1

    @property
    def blocks(self) -> int:
        """That were measured."""
        return sum(len(each) for each in self.log_ratios.values())

    @property
    def testable(self) -> list[int]:
        """Versions that are not gaps, the reference first."""
        return [number for number in range(self.versions) if number not in self.gaps]

    @property
    def is_searched(self) -> bool:
        """Whether a version between the ends has been measured: the ends are settled then."""
        return any(version != self.end for version in self.log_ratios)


@dataclass(frozen=True)
class Change:
    """Where a step lies: `after` is the last version before it, `at` the first that has it, so far as can be told.

    With nothing but gaps between them, the change is one of several: `at` or a gap before it.
    """

    after: int
    at: int
    probability: float
    size: float


@dataclass(frozen=True)
class Measure:
    """Blocks of one version against the reference; `ends`: to settle the size."""

    version: int
    blocks: int
    ends: bool = False


@dataclass(frozen=True)
class Answer:
    """The end of a search; `changes` in order, of an undecided one the range that holds 95 %."""

    outcome: Outcome
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Limits:
    """When to give up, and what does not matter.

    Attributes:
        blocks: of the whole search; at most half of them settle the ends.
        margin: largest change that does not matter, as a share.
        resolution, total: as in the metric's definition.
    """

    blocks: int = MOST_BLOCKS
    margin: float = 0.02
    resolution: float = 0.0
    total: float = 0.0


def decide(history: History, limits: Limits) -> Measure | Answer:
    """What happens next."""
    if not history.is_searched:
        outcome, more = _settled(history, limits)
        if outcome == settling.OPEN:
            return Measure(history.end, int(more), ends=True)
        if outcome != settling.CHANGED:
            return Answer("no_change" if outcome == settling.NO_CHANGE else "undecided")
    now = believed(history)
    if (answer := _answered(history, now)) is not None:
        return answer
    if history.blocks >= limits.blocks:
        return Answer("undecided", _range(history, now))
    if settling.unsettled(now):
        return Measure(history.end, 1, ends=True)
    return Measure(history.testable[int(next_version(now, costs(history)))], 1)


def _settled(history: History, limits: Limits) -> tuple[Integers, Integers]:
    """What is known of the two ends, as `settling.settle` says it."""
    reference, end = np.array(history.shares, dtype=float).reshape(-1, 2).T
    bound = shares.bound(reference, end, margin=limits.margin, total=limits.total)
    least = LEAST_NOISE * (bound / math.log1p(limits.margin))  # shares may ask for much smaller changes
    return settling.settle(
        settling.ends_of(history.log_ratios.get(history.end, []), least=max(least, ROUNDING)),
        bound=bound,
        limit=max(limits.blocks // 2, 1),
        width=abs(math.log1p(-limits.resolution)),
    )


def believed(history: History) -> Posterior:
    """The posterior over the intervals between neighbouring versions that can be tested."""
    testable = history.testable
    tested = [place for place, version in enumerate(testable) if history.log_ratios.get(version)]
    seen = [history.log_ratios[testable[place]] for place in tested]
    evidence = Evidence(
        position=np.array(tested, dtype=np.int64),
        n=np.array([len(each) for each in seen], dtype=float),
        total=np.array([math.fsum(each) for each in seen]),
        squares=np.asarray(math.fsum(value**2 for each in seen for value in each)),
    )
    return posterior(evidence, np.diff(np.array(testable, dtype=float)))


def probabilities(history: History, now: Posterior) -> dict[int, float]:
    """Of each version that can be tested but the reference: that a step lies right before it, or in the gaps there."""
    return dict(zip(history.testable[1:], now.culprits.tolist(), strict=True))


def costs(history: History) -> Floats:
    """Seconds that the next block of each version takes, as blocks and preparations so far took on average."""
    block, ready = _mean(history.block_s, usual=1.0), _mean(history.ready_s, usual=0.0)
    return np.array([block + ready * (version not in history.ready) for version in history.testable[1:]])


def _answered(history: History, now: Posterior) -> Answer | None:
    """The answer, if what is known holds one."""
    found = held(now)
    size = float(now.tail)
    first = _change(history, int(found.interval), probability=float(found.probability), size=size)
    if found.outcome == holding.ONE_CHANGE:
        return Answer("one_change", (first,))
    if found.outcome != holding.TWO_STEPS:
        return None
    middle = float((now.two * now.material * now.middle).sum() / now.two_steps)
    first = _change(history, int(found.interval), probability=float(found.probability), size=middle)
    second = _change(history, int(found.second), probability=float(found.second_probability), size=size - middle)
    return Answer("two_steps", (first, second))


def _change(history: History, interval: int, *, probability: float, size: float) -> Change:
    testable = history.testable
    return Change(testable[interval], testable[interval + 1], probability, size)


def _range(history: History, now: Posterior) -> tuple[Change, ...]:
    """The shortest run of intervals around the most probable one that holds 95 % of one step; nothing if two rule."""
    shares = now.at_intervals(now.one)
    total = float(shares.sum())
    if total < HOLDS / 2:
        return ()
    low = high = int(np.argmax(shares))
    while (held_ := float(shares[low : high + 1].sum())) < HOLDS * total:
        left = shares[low - 1] if low > 0 else -1.0
        right = shares[high + 1] if high < len(shares) - 1 else -1.0
        low, high = (low - 1, high) if left >= right else (low, high + 1)
    testable = history.testable
    return (Change(testable[low], testable[high + 1], held_, float(now.tail)),)


def _mean(values: Sequence[float], *, usual: float) -> float:
    return max(math.fsum(values) / len(values), 1e-3) if values else usual
