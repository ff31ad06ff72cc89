"""A sequential rule and what it makes of one look: p values valid for looking often, intervals, the chance of a claim.

Works on arrays of any shape, one element per comparison. It must not know trials, cells or journals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.inference import confirming, ranks
from fairtrial.analyse.inference.t_tests import SMALLEST_N, Values
from fairtrial.analyse.sequential import anytime, precision
from fairtrial.analyse.sequential.boundaries import Boundaries, boundaries, looks
from fairtrial.analyse.sequential.spending import Spending

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Kind = Literal["sequential", "anytime", "precision"]

HOPELESS: Final = 0.05  # a claim this improbable by the last block is not worth its trials
QUIETEST: Final = 0.5  # of a pool's spread: a comparison that seems quieter than that is not believed at first
ENOUGH_NEIGHBOURS: Final = 5  # blocks; neighbours of fewer say nothing
DEPENDENT_FROM: Final = 1.645  # standard deviations: one side of 5 %
ENOUGH_TO_GIVE_UP: Final = 5  # blocks; below it the spread is too uncertain to call anything hopeless


@dataclass(frozen=True)
class Rule:
    """When the comparisons of a family are decided.

    Attributes:
        first, last: smallest and largest number of blocks; one block alone decides nothing.
        alpha: error of the whole family, of differences and of equivalences each.
        bound: equivalence margin on the log scale.
        kind: `sequential` spends the error over planned looks; `anytime` may look whenever and for ever; `precision`
            decides by the interval's width, and its p values are those of `sequential`.
        futility: whether a comparison stops once a claim has become improbable.
        equivalence: whether a comparison stops once equivalence is shown.
        half_width: of the interval on the log scale, at which `precision` stops.
    """

    first: int
    last: int
    alpha: float
    bound: float
    kind: Kind = "sequential"
    spending: Spending = "pocock"
    futility: bool = True
    equivalence: bool = True
    half_width: float = math.inf

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of blocks after which the rule decides."""
        return looks(self.first, self.last)

    @property
    def enough(self) -> int:
        """Blocks from which an exact test of one comparison could claim: what few that are alike show may be chance."""
        return exact_from(self.alpha)

    def boundaries(self, sides: int) -> Boundaries:
        """Of the test with one or two sides."""
        return boundaries(self.spending, first=self.first, last=self.last, sides=sides)


@dataclass(frozen=True)
class Estimates:
    """What comparisons have shown so far, arrays of one shape.

    Attributes:
        n: blocks.
        mean, error: of log ratios, and its standard error; infinite where it cannot be computed.
        bound: equivalence margin; 0 where there are no logarithms, so that nothing is equivalent.
        ranked: two-sided p of the signed ranks for a difference in the mean's direction.
        ranked_inside: their one-sided p against the nearer end of the margin.
        neighbours: lag-1 autocorrelation of the blocks; NaN for fewer than `ENOUGH_NEIGHBOURS` or without spread.
        logs: whether they are of log ratios; else of differences in the metric's unit.
        own, own_inside: p of the metric's own test of a difference and of equivalence; 0 where it has none.
        own_reach: of its interval, to the farther side; likewise.
    """

    n: Counts
    mean: Values
    error: Values
    bound: Values
    ranked: Values
    ranked_inside: Values
    neighbours: Values
    logs: Flags = field(default_factory=lambda: np.ones((), dtype=bool))
    own: Values = field(default_factory=lambda: np.zeros(()))
    own_inside: Values = field(default_factory=lambda: np.zeros(()))
    own_reach: Values = field(default_factory=lambda: np.zeros(()))


def estimates(differences: Values, *, n: Counts, error: Values, bound: Values) -> Estimates:
    """Of blocks in the order of their rounds, shape (…, blocks); `n` may be fewer where they are not counted."""
    by_ranks, inside = ranked(differences, bound=bound)
    none = not differences.shape[-1]
    return Estimates(
        n=n,
        mean=np.zeros(n.shape) if none else differences.mean(axis=-1),
        error=error,
        bound=bound,
        ranked=by_ranks,
        ranked_inside=inside,
        neighbours=neighbours(differences),
    )


def ranked(differences: Values, *, bound: Values | float) -> tuple[Values, Values]:
    """What `Estimates` asks of ranks, of differences of shape (…, n); 1 without any."""
    if not differences.shape[-1]:
        return (np.ones(differences.shape[:-1]),) * 2
    sign = np.where(differences.mean(axis=-1, keepdims=True) >= 0, 1.0, -1.0)
    inside = ranks.signed_rank_above(np.asarray(bound)[..., None] - sign * differences)
    return confirming.signed_ranks(differences), inside


def neighbours(differences: Values) -> Values:
    """Lag-1 autocorrelation of blocks, shape (…, n) → (…); NaN for too few."""
    if differences.shape[-1] < ENOUGH_NEIGHBOURS:
        return np.full(differences.shape[:-1], np.nan)
    centred = differences - differences.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations: Values = (centred[..., :-1] * centred[..., 1:]).sum(axis=-1) / np.square(centred).sum(axis=-1)
    return correlations


def dependent(estimates: Estimates, *, pools: Counts, cells: Counts) -> Flags:
    """Whether blocks of what a pool measures resemble their neighbours: in 1 of 20 pools of independent ones.

    By the exact mean and variance of a normal sample's autocorrelation, over all cells of the pool; comparisons of a
    cell share a baseline and count as one. So do cells that share their boots: their caller gives them one number.
    Source: Dufour and Roy (1985).
    """
    n = np.maximum(estimates.n, ENOUGH_NEIGHBOURS).astype(np.float64)
    variance = (n**4 - 4 * n**3 + 3 * n**2 + 4 * n - 4) / ((n + 1) * n**2 * (n - 1) ** 2)
    known = np.isfinite(estimates.neighbours)
    excess = np.where(known, estimates.neighbours + 1 / n, 0.0)
    flags = np.zeros(estimates.n.shape, dtype=bool)
    for pool in np.unique(pools):
        total, spread = np.zeros(estimates.n.shape[:-1]), np.zeros(estimates.n.shape[:-1])
        for cell in np.unique(cells[pools == pool]):
            of = (pools == pool) & (cells == cell)
            count = np.maximum(1, known[..., of].sum(axis=-1))
            total += excess[..., of].sum(axis=-1) / count
            spread += np.where(known[..., of], variance[..., of], 0.0).sum(axis=-1) / count
        alike = total > DEPENDENT_FROM * np.sqrt(spread)
        flags[..., pools == pool] = alike[..., None]
    return flags


def p_difference(estimates: Estimates, rule: Rule, *, level: float) -> Values:
    """Two-sided p of no difference, valid for looking often; 1 before the first look.

    Held against signed ranks as far as they can reach the boundary of one comparison at `level`.
    """
    t = _over(estimates.mean, estimates.error)

    def at(n: int, look: int, here: Flags) -> Values:
        nominal = 2 * special.stdtr(n - 1, -np.abs(t[here]))
        return LookTest(rule, sides=2, level=level, units=n).p(nominal, estimates.ranked[here], n=n, look=look)

    return _by_look(estimates.n, rule=rule, at=at)


def p_equivalence(estimates: Estimates, rule: Rule, *, level: float) -> Values:
    """The larger p of two one-sided tests against the margin, valid for looking often; 1 before the first look."""
    t = _over(np.abs(estimates.mean) - estimates.bound, estimates.error)

    def at(n: int, look: int, here: Flags) -> Values:
        nominal = special.stdtr(n - 1, t[here])
        return LookTest(rule, sides=1, level=level, units=n).p(nominal, estimates.ranked_inside[here], n=n, look=look)

    return _by_look(estimates.n, rule=rule, at=at)


@dataclass(frozen=True)
class LookTest:
    """A test with one or two sides at a look, held against ranks as far as they can reach the look's boundary.

    Attributes:
        level: of one comparison at the hardest step of its family.
        units: independent values that the test is of: blocks, or what blocks are grouped by.
    """

    rule: Rule
    sides: int
    level: float
    units: int

    def p(self, nominal: Values, witness: Values, *, n: int, look: int) -> Values:
        """Of the test's own p and that of ranks, after n blocks, valid for looking often."""
        boundary = nominal_level(look, level=self.level, rule=self.rule, sides=self.sides)
        share = confirming.weight(self.units, level=2 * boundary / self.sides)
        p = confirming.towards(nominal, witness, share)
        if self.rule.kind != "anytime":
            return self.rule.boundaries(self.sides).sequential_p(p, look)
        valid = anytime.p(special.stdtrit(n - 1, p / self.sides), n)
        return valid if self.sides == 2 else np.where(nominal < 0.5, valid, 1.0)  # noqa: PLR2004 - the wrong side

    def p_after(self, nominal: Values, witness: Values, n: int) -> Values:
        """The same after any number of blocks; 1 before the first look."""
        return _by_look(
            np.full(np.shape(nominal), n),
            rule=self.rule,
            at=lambda blocks, look, here: self.p(nominal[here], witness[here], n=blocks, look=look),
        )


def reach(n: int, *, level: float, rule: Rule) -> float:
    """How many standard errors an interval of confidence 1 - level reaches, so that those of all looks hold together.

    Infinite before the first look. Between looks it reaches as far as the wider of its neighbours.
    """
    if n < rule.first:
        return math.inf
    if rule.kind == "precision":
        return precision.reach(n, level=level, first=rule.first, last=rule.last)
    return _critical(n, level=level, rule=rule, sides=2)


def reaches(n: Counts, *, level: float, rule: Rule) -> Values:
    """`reach` of each element."""
    distances = np.empty(n.shape)
    for blocks in np.unique(n).tolist():
        distances[n == blocks] = reach(blocks, level=level, rule=rule)
    return distances


def one_sided_reach(n: int, *, level: float, rule: Rule) -> float:
    """How many standard errors a one-sided test at `level` asks for after n blocks; infinite before the first look."""
    return math.inf if n < rule.first else _critical(n, level=level, rule=rule, sides=1)


def nominal_level(n: int, *, level: float, rule: Rule, sides: int) -> float:
    """What one look must reach for a claim at `level`, as a p of Student's t."""
    if rule.kind == "anytime":
        return sides * float(special.stdtr(n - 1, -anytime.reach(n, level=level)))
    return rule.boundaries(sides).nominal_level(n, level=level)


def _critical(n: int, *, level: float, rule: Rule, sides: int) -> float:
    """Student's t of the boundary after n blocks; between looks the wider of its neighbours."""
    if rule.kind == "anytime":
        return anytime.reach(n, level=level)
    nominal = min(rule.boundaries(sides).nominal_level(look, level=level) for look in _looks_beside(n, rule))
    return float(-special.stdtrit(n - 1, nominal / sides))


def _looks_beside(n: int, rule: Rule) -> set[int]:
    """The look after n blocks, else those before and after; n ≥ the first."""
    after = rule.looks
    return {max(look for look in after if look <= n), min((look for look in after if look >= n), default=after[-1])}


@dataclass(frozen=True)
class Goal:
    """How many standard errors the last look asks for, by comparison: to claim a difference, and equivalence."""

    difference: Values
    equivalence: Values


def goal(rule: Rule, *, differing: Counts, equalling: Counts) -> Goal:
    """What Holm's procedure asks for while so many comparisons are not yet claimed to differ, or to be equivalent."""
    sizes = range(1, 1 + max(int(differing.max(initial=1)), int(equalling.max(initial=1))))
    two, one = (
        np.array([_critical(rule.last, level=rule.alpha / size, rule=rule, sides=sides) for size in sizes])
        for sides in (2, 1)
    )
    return Goal(difference=two[np.maximum(differing, 1) - 1], equivalence=one[np.maximum(equalling, 1) - 1])


def chance_of_claim(estimates: Estimates, rule: Rule, goal: Goal) -> Values:
    """Predictive probability that the last look claims a difference or equivalence, nothing known but these blocks.

    The mean of all blocks, given the first n, is this mean plus t with n - 1 degrees of freedom times
    error · sqrt(1 - n / last). The spread at the end is taken to be that of now. 0 at the last block.
    """
    known = np.isfinite(estimates.error)
    share, error = estimates.n / rule.last, np.where(known, estimates.error, 1.0)
    at_end, scale = np.where(share > 0, error * np.sqrt(share), np.inf), error * np.sqrt(np.maximum(0.0, 1 - share))
    claimed = goal.difference * at_end
    same = np.maximum(0.0, estimates.bound - goal.equivalence * at_end)

    def below(value: Values) -> Values:
        return np.asarray(special.stdtr(np.maximum(1, estimates.n - 1), _over(value - estimates.mean, scale)))

    inner = np.minimum(same, claimed)
    chance = 1 - below(claimed) + below(-claimed) + below(inner) - below(-inner)
    certain = (same >= claimed) | ~known  # what cannot be computed yet may be later
    return np.where(share >= 1, 0.0, np.where(certain, 1.0, chance))


def hopeless(chance: Values, n: Counts, rule: Rule) -> Flags:
    """Whether a comparison may be given up, before its last block."""
    given_up: Flags = (chance < HOPELESS) & (n >= ENOUGH_TO_GIVE_UP) & (n < rule.last) & rule.futility
    return given_up


def steadied(estimates: Estimates, *, pools: Counts, until: Counts) -> Estimates:
    """Errors no smaller than half of what a pool's spread gives, for comparisons of fewer blocks than `until`.

    A few blocks of a metric with two modes may all fall on one side and look certain. No t test sees that in one
    comparison, but the others show the spread. From `until` blocks on an exact test could reach the level.

    Comparisons of equal `pools` number (last axis) measure the same; those without logarithms do so in another unit.
    """
    logs = np.broadcast_to(estimates.logs, estimates.n.shape)
    df = np.where(np.isfinite(estimates.error), np.maximum(0, estimates.n - 1), 0)
    squares = np.where(df > 0, np.square(np.where(df > 0, estimates.error, 0.0)) * estimates.n * df, 0.0)
    error = estimates.error
    for pool, scale in itertools.product(np.unique(pools), (True, False)):
        alike = (pools == pool) & (logs == scale)
        total = np.where(alike, df, 0).sum(axis=-1, keepdims=True).astype(np.float64)
        spread = _over(np.where(alike, squares, 0.0).sum(axis=-1, keepdims=True), total)
        floor = QUIETEST * np.sqrt(_over(spread, estimates.n.astype(np.float64)))
        early = alike & (estimates.n < until)
        error = np.where(early, np.maximum(error, floor), error)
    return replace(estimates, error=error)


def exact_from(level: float) -> int:
    """Blocks from which the exact sign-flip test can reach a level: 2 / 2ⁿ ≤ level."""
    return next(n for n in itertools.count(1) if 2 / 2.0**n <= level)


def _over(number: Values, divisor: Values) -> Values:
    """A quotient that is 0 where the number is, whatever it is divided by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(number == 0, 0.0, np.divide(number, divisor))


def _by_look(n: Counts, *, rule: Rule, at: Callable[[int, int, Flags], Values]) -> Values:
    """Between looks the larger of what both neighbours make of these blocks."""
    p = np.ones(n.shape)
    for blocks in np.unique(n[n >= max(rule.first, SMALLEST_N)]).tolist():
        here = n == blocks
        p[here] = np.max([at(blocks, look, here) for look in _looks_beside(blocks, rule)], axis=0)
    return p
