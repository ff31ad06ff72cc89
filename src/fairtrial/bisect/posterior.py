"""Where in an ordered history a metric's level changed: the posterior over none, one or two steps. Pure.

An observation is the log ratio of a version to the reference, of one block. Under one step, versions before it have
level 0 and those from it on an unknown level; under two, a level of its own between them. Levels and noise have the
conjugate normal-inverse-gamma prior (Gelman et al., Bayesian Data Analysis, section 3.3), so every hypothesis has its
marginal likelihood in closed form. Versions that were not tested differ in nothing that was seen: steps between the
same two tested versions share one likelihood, and the cost depends on tested versions alone.

Every array may have leading axes: so many independent searches, as a simulation has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

NO_CHANGE: Final = 0.02  # prior probabilities; what is left is one step
TWO_STEPS: Final = 0.1  # with more, one step costs more blocks; with less, one of two is nearly always taken for it
SHAPE: Final = 0.5  # of the noise's prior: as if one block had been seen
LEAST_NOISE: Final = 5e-4  # with this standard deviation: a metric that never varies is not infinitely sure
# Prior variances of levels, in units of the noise's, and their probabilities: changes of about the noise are usual, but
# where blocks hardly vary, they are worth what they seem to be.
SPREADS: Final = (1.0, 100.0)
USUAL: Final = (0.95, 0.05)
LEAST_SHARE: Final = 0.25  # of the whole change: with a smaller second step, the larger one is the answer


@dataclass(frozen=True)
class Evidence:
    """What was seen of tested versions, in their order. Unused places repeat the last position with no blocks.

    Attributes:
        position: of each tested version: how many intervals lie before it; the last is the end of the history.
        n: blocks of each.
        total: their log ratios, summed.
        squares: of all log ratios, summed over versions too.
    """

    position: Integers
    n: Floats
    total: Floats
    squares: Floats


@dataclass(frozen=True)
class Posterior:
    """Probabilities of hypotheses, and the levels that they imply. The last axes are tested versions.

    Attributes:
        none: that nothing changed.
        one: that one step lies between a tested version and the tested one before it.
        two: the same of two steps, the first and the second.
        tail: level of the end, over all hypotheses with a step.
        middle, middle_spread: level between two steps, and the variance that is left of it.
        noise: variance of a block's log ratio.
        cumulative: prior weight of all intervals before a position, from 0 to 1.
        evidence: what it is conditional on.
    """

    none: Floats
    one: Floats
    two: Floats
    tail: Floats
    middle: Floats
    middle_spread: Floats
    noise: Floats
    cumulative: Floats
    evidence: Evidence

    @property
    def first(self) -> Floats:
        """Probability that the first step, or the only one, lies before each tested version."""
        return np.asarray(self.one + self.two.sum(axis=-1))

    @property
    def last(self) -> Floats:
        """The same of the last step, or the only one."""
        return np.asarray(self.one + self.two.sum(axis=-2))

    @property
    def material(self) -> Truths:
        """Of two steps, whether each is a share of the whole change that matters: a smaller one beside it does not."""
        size = self.tail[..., None, None]
        lesser = np.minimum(np.abs(self.middle), np.abs(size - self.middle))
        return np.asarray(lesser >= LEAST_SHARE * np.abs(size))

    @property
    def two_steps(self) -> Floats:
        """That there are two steps that matter."""
        return np.asarray((self.two * self.material).sum(axis=(-2, -1)))

    def at_intervals(self, of_tested: Floats) -> Floats:
        """Spreads probabilities of the steps between tested versions over the intervals, by prior weight."""
        spans = np.diff(_at(self.cumulative, self.evidence.position), prepend=0.0, axis=-1)
        density = np.divide(of_tested, spans, out=np.zeros_like(of_tested), where=spans > 0)
        return np.asarray(np.diff(self.cumulative) * np.take_along_axis(density, self.tested_after, axis=-1))

    @property
    def tested_after(self) -> Integers:
        """Of each interval, which tested version is the first behind it."""
        position = self.evidence.position
        intervals = len(self.cumulative) - 1
        ends = np.zeros((*position.shape[:-1], intervals + 1), dtype=np.int64)
        np.put_along_axis(ends, position, 1, axis=-1)
        ends[..., 0] = 0
        return np.cumsum(ends, axis=-1)[..., :-1]

    @property
    def culprits(self) -> Floats:
        """Of each interval, the probability that a step lies in it, alone, with another, or as the larger of two."""
        both = self.two * self.material
        lesser = self.two - both
        first_larger = np.abs(self.middle) > np.abs(self.tail[..., None, None] - self.middle)
        return self.at_intervals(
            self.one + (both + lesser * first_larger).sum(axis=-1) + (both + lesser * ~first_larger).sum(axis=-2)
        )


def posterior(evidence: Evidence, weights: Floats) -> Posterior:
    """The posterior after some blocks.

    Args:
        evidence: of tested versions; the end is one of them.
        weights: prior weight of each interval between neighbouring versions that can be tested.
    """
    cumulative = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
    shape = SHAPE + evidence.n.sum(axis=-1) / 2
    parts = [_Part.of(evidence, spread) for spread in SPREADS]
    priors = _priors(evidence, cumulative)
    logs = [
        prior + np.log(chance) + log
        for part, chance in zip(parts, USUAL, strict=True)
        for prior, log in zip(priors, part.logs(shape), strict=True)
    ]
    shares = _normalised(logs)
    none, one, two = (_sum(shares[kind::3]) for kind in range(3))
    rest = [left for part in parts for left in part.rest]
    left_over = [(share * left).reshape(*shape.shape, -1) for share, left in zip(shares, rest, strict=True)]
    noise = _sum([each.sum(axis=-1) for each in left_over]) / np.maximum(shape - 1, SHAPE)
    ended = [first + both.sum(axis=-2) for first, both in zip(shares[1::3], shares[2::3], strict=True)]
    tail = _sum([(each * part.tail.mean).sum(axis=-1) for each, part in zip(ended, parts, strict=True)])
    usual = [both / np.maximum(two, np.finfo(float).tiny) for both in shares[2::3]]
    return Posterior(
        none=none[..., 0],
        one=one,
        two=two,
        tail=tail / np.maximum(1 - none[..., 0], np.finfo(float).tiny),
        middle=_sum([each * part.middle.mean for each, part in zip(usual, parts, strict=True)]),
        middle_spread=noise[..., None, None]
        * _sum([each * part.middle.left for each, part in zip(usual, parts, strict=True)]),
        noise=noise,
        cumulative=cumulative,
        evidence=evidence,
    )


def _sum(parts: Sequence[Floats]) -> Floats:
    return np.asarray(sum(parts))


@dataclass(frozen=True)
class _Part:
    """All hypotheses with one prior variance of levels.

    Attributes:
        tail, middle: the level from a tested version on, and that between two of them.
        rest: half the sum of squares that is left to noise: by none, one step, two.
    """

    tail: _Level
    middle: _Level
    rest: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, evidence: Evidence, spread: float) -> _Part:
        tail = _Level(_from_here(evidence.n), _from_here(evidence.total), spread)
        middle = _Level(_between(evidence.n), _between(evidence.total), spread)
        seen = SHAPE * LEAST_NOISE**2 + evidence.squares[..., None] / 2
        rest = seen, seen - tail.explained, seen[..., None] - middle.explained - tail.explained[..., None, :]
        return cls(tail, middle, rest)

    def logs(self, shape: Floats) -> list[Floats]:
        """Logarithms of the marginal likelihoods, but for what all have in common."""
        occam = (np.zeros(1), self.tail.occam, self.middle.occam + self.tail.occam[..., None, :])
        return [penalty - _like(shape, left) * np.log(left) for penalty, left in zip(occam, self.rest, strict=True)]


@dataclass(frozen=True)
class _Level:
    """A level of so many blocks with this sum, its prior N(0, spread × noise)."""

    n: Floats
    total: Floats
    spread: float

    @property
    def left(self) -> Floats:
        """Variance of the level, in units of the noise's."""
        return np.asarray(self.spread / (1 + self.spread * self.n))

    @property
    def mean(self) -> Floats:
        return self.left * self.total

    @property
    def explained(self) -> Floats:
        """Half the sum of squares that the level takes from the noise."""
        return self.mean * self.total / 2

    @property
    def occam(self) -> Floats:
        return np.asarray(-np.log1p(self.spread * self.n) / 2)


def _priors(evidence: Evidence, cumulative: Floats) -> tuple[Floats, Floats, Floats]:
    """Logarithms: of none, of one step before each tested version, of two."""
    weights = np.diff(cumulative)
    alone = float((weights**2).sum())  # both in one interval, which is one step
    two_steps = TWO_STEPS if alone < 1 - np.finfo(float).eps else 0.0
    span = np.diff(_at(cumulative, evidence.position), prepend=0.0, axis=-1)
    squares = np.diff(_at(np.concatenate([[0.0], np.cumsum(weights**2)]), evidence.position), prepend=0.0, axis=-1)
    pairs = np.triu(span[..., :, None] * span[..., None, :], 1)
    within = np.maximum((span**2 - squares) / 2, 0)
    pairs += within[..., None] * np.eye(span.shape[-1])
    with np.errstate(divide="ignore"):
        return (
            np.full((*span.shape[:-1], 1), np.log(NO_CHANGE)),
            np.log((1 - NO_CHANGE - two_steps) * span),
            np.log(two_steps * pairs * (2 / max(1 - alone, np.finfo(float).eps))),
        )


def _normalised(logs: list[Floats]) -> list[Floats]:
    flat = [each.reshape(*logs[0].shape[:-1], -1) for each in logs]
    largest = np.max([each.max(axis=-1) for each in flat], axis=0)
    shares = [np.exp(each - largest[..., None]) for each in flat]
    total = sum(each.sum(axis=-1) for each in shares)
    return [
        (share / np.asarray(total)[..., None]).reshape(each.shape) for share, each in zip(shares, logs, strict=True)
    ]


def _at(values: Floats, position: Integers) -> Floats:
    return np.asarray(values[position])


def _from_here(values: Floats) -> Floats:
    """Sum over each tested version and all behind it."""
    return np.flip(np.cumsum(np.flip(values, -1), -1), -1)


def _between(values: Floats) -> Floats:
    """Sum from one tested version up to before another."""
    before = np.cumsum(values, axis=-1) - values
    return np.triu(before[..., None, :] - before[..., :, None])


def _like(values: Floats, other: Floats) -> Floats:
    return values.reshape(*values.shape, *[1] * (other.ndim - values.ndim))
