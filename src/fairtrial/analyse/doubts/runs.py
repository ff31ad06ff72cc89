"""Reasons to trust a whole analysis less: what shows only across cells, or in how the run went.

Time order is the order of positions in the run. Rates of false alarms hold for each metric of a run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.doubts import order
from fairtrial.analyse.inference import ranks, t_tests
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison, Doubt
from fairtrial.words import counted

SORTED_LEVEL: Final = 0.001  # chance of a false alarm per metric; sorted data are pasted data, and rare
DRIFT_LEVEL: Final = 0.01  # drift is common, and blocks take most of it out: one false alarm in 100 metrics is fair
SMALLEST_N_TO_SORT: Final = 3  # two values are always sorted
SMALLEST_DF_TO_DRIFT: Final = 3  # a slope through fewer residuals says nothing
FACTOR: Final = 10  # a drift by so many times the mean is no matter of percents
EXAMPLES: Final = 3  # places that a message names before it only counts

PROTECTED: Final = "comparisons within blocks are protected, intervals of single arms are not; find out what drifts"
ONE_SIDE: Final = (
    "an arm ran on one side of its baseline in all blocks of a cell: its difference contains the drift within a block"
)
NOT_INTERLEAVED: Final = "arms were not interleaved: the drift may be the difference that is reported"

Groups = Sequence[tuple[str, ArmValues]]  # (cell, values of one arm in it)


def of_boots(groups: Groups, boots: Sequence[str]) -> Groups:
    """Groups whose trials share boots, those of one name in `boots`, as one: a value is the mean of a boot's trials.

    What a boot changes is in all its trials: group by group it would be counted as often as there are cells. The mean
    is that of logarithms if all values are positive, over the groups and blocks that have most in common.
    """
    relative = all(each.positive for _, each in groups)
    found: list[tuple[str, ArmValues]] = []
    for boot in dict.fromkeys(boots):
        own = [group for group, name in zip(groups, boots, strict=True) if name == boot]
        found += own if len(own) == 1 else _averaged(boot, [each for _, each in own], relative=relative)
    return found


def _averaged(boot: str, groups: Sequence[ArmValues], *, relative: bool) -> Groups:
    chosen, blocks = order.most_in_common([each.blocks for each in groups], fewest=SMALLEST_N_TO_SORT)
    if not chosen:
        return []
    of = [groups[index] for index in chosen]
    values = np.array([np.log(each.at(blocks)) if relative else each.at(blocks) / len(of) for each in of])
    means = np.exp(values.mean(axis=0)) if relative else values.sum(axis=0)
    at = [dict(zip(each.blocks, each.positions, strict=True)) for each in of]
    positions = [round(sum(each[block] for each in at) / len(at)) for block in blocks]
    in_time = sorted(range(len(blocks)), key=lambda index: positions[index])
    arm = ArmValues(
        arm=boot,
        values=means[in_time],
        blocks=tuple(blocks[index] for index in in_time),
        positions=tuple(positions[index] for index in in_time),
        absent=0,
    )
    return [("boots of", arm)]


@dataclass(frozen=True)
class Slope:
    """A straight line through a run's residuals.

    Attributes:
        change: from the first to the last trial, as a share of the mean (logarithms) or in the unit.
        relative: whether `change` is a share.
        p: two-sided t test of the slope, residuals taken as independent.
        n: trials.
    """

    change: float
    relative: bool
    p: float
    n: int


def monotone_probability(values: t_tests.Values) -> float:
    """Chance that these values, in random order, never fall or never rise: 2 · ∏(ties!) / n!, 1 if all are equal."""
    n = len(values)
    _, ties = np.unique(values, return_counts=True)
    if len(ties) <= 1:
        return 1.0
    logarithm = math.log(2) + sum(math.lgamma(count + 1) for count in ties.tolist()) - math.lgamma(n + 1)
    return min(1.0, math.exp(logarithm))


def is_monotone(values: t_tests.Values) -> bool:
    """Whether values never fall or never rise."""
    steps = np.diff(values)
    return bool((steps >= 0).all() or (steps <= 0).all())


def at_least(count: int, probabilities: Sequence[float]) -> float:
    """Chance that at least `count` of independent events happen (Poisson binomial, by convolution)."""
    happened = np.array([1.0])
    for probability in probabilities:
        happened = np.convolve(happened, [1 - probability, probability])
    return float(min(1.0, happened[count:].sum()))


def sorted_values(metric: str, groups: Groups) -> Iterator[Doubt]:
    """Asks whether more groups are sorted than chance allows. False alarms: `SORTED_LEVEL` per metric.

    Groups of constant values are left aside: they are sorted whatever the order.
    """
    usable = [
        (cell, each) for cell, each in groups if len(each.values) >= SMALLEST_N_TO_SORT and np.ptp(each.values) > 0
    ]
    ordered = [(cell, each) for cell, each in usable if is_monotone(each.values)]
    chance = at_least(len(ordered), [monotone_probability(each.values) for _, each in usable])
    if ordered and chance < SORTED_LEVEL:
        where = ", ".join(f"{cell} {each.arm}".strip() for cell, each in ordered[:EXAMPLES])
        more = f" and {len(ordered) - EXAMPLES} more" if len(ordered) > EXAMPLES else ""
        yield Doubt(
            code="sorted",
            message=f"values are sorted in time order in {len(ordered)} of {len(usable)} groups ({where}{more}); "
            f"random order does that with probability {chance:.2g}",
            advice="the order was lost before analysis, so drift cannot be seen, or the values follow time",
            metric=metric,
        )


def slope(groups: Groups) -> Slope | None:
    """Least squares of values on position, each group around its own mean; logarithms if all values are positive.

    None with too few trials, or without spread in values or positions.
    """
    relative = all(each.positive for _, each in groups)
    values = [_centred(np.log(each.values) if relative else each.values) for _, each in groups if len(each.values)]
    positions = [_centred(t_tests.array(each.positions)) for _, each in groups if len(each.values)]
    if not values:
        return None
    residuals, slots = np.concatenate(values), np.concatenate(positions)
    exponent = np.frexp(np.abs(residuals).max())[1]
    residuals = np.ldexp(residuals, -exponent)  # so that no square is too large for a number
    df = len(residuals) - len(values) - 1
    spread = float(slots @ slots)
    if df < SMALLEST_DF_TO_DRIFT or spread == 0 or float(residuals @ residuals) == 0:
        return None
    rate = float(slots @ residuals) / spread
    left = residuals - rate * slots
    error = math.sqrt(float(left @ left) / df / spread)
    every = [position for _, each in groups for position in each.positions]
    reach = max(every) - min(every)
    change = float(np.ldexp(rate * reach, exponent))
    if relative:
        change = math.expm1(min(t_tests.LARGEST_LOGARITHM, change))
    p = t_tests.two_sided_p(rate / error, df) if error > 0 else 0.0
    return Slope(change=change, relative=relative, p=p, n=len(residuals))


def drift(metric: str, groups: Groups, *, unit: str, advice: str, noun: str = "trials") -> Iterator[Doubt]:
    """False alarms: `DRIFT_LEVEL` per metric if trials are independent, more if neighbours in time are alike.

    `noun`: what a value is the measurement of.
    """
    trend = slope(groups)
    if trend is None or trend.p >= DRIFT_LEVEL:
        return
    size = f"{100 * trend.change:+.1f} % of the mean" if trend.relative else f"{trend.change:+.3g} {unit}"
    if trend.relative and trend.change >= FACTOR:
        size = f"a factor of {1 + trend.change:.3g}"
    yield Doubt(
        code="drift",
        message=f"values drift by {size} from the first trial to the last "
        f"(p = {trend.p:.2g}, {trend.n} {noun} around their groups' means)",
        advice=advice,
        metric=metric,
    )


def not_compared(absent: Sequence[tuple[str, str, str]], *, planned: int) -> Iterator[Doubt]:
    """Says which of the planned comparisons (cell, metric, arm) have nothing to compare. Never a false alarm."""
    if absent:
        where = "; ".join(", ".join(each) for each in absent[:EXAMPLES])
        more = f" and {len(absent) - EXAMPLES} more" if len(absent) > EXAMPLES else ""
        yield Doubt(
            code="missing",
            message=f"{len(absent)} of {planned} comparisons cannot be made, because an arm has no value or shares no "
            f"block with the baseline: {where}{more}",
            advice="they get no verdict but still count in their family: find out which trials are invalid or lack "
            "the metric",
        )


def few_blocks(comparisons: Sequence[Comparison], *, paired: bool, alpha: float, family_size: int) -> Iterator[Doubt]:
    """Says where no exact test could claim anything: n is too small for any order of the data to reach the level.

    Paired, the signs of n differences give at best p = 2 / 2ⁿ (n ≥ 6 for 0.05); unpaired, the ranks of n + n values
    give at best 2 / C(2n, n) (n ≥ 4), those of n + m more. Below that a
    claim rests on the normal distribution alone. A primary comparison
    must reach alpha / `family_size`, where Holm's procedure begins.
    """

    def level(each: Comparison) -> float:
        return alpha / family_size if each.role == "primary" else alpha

    small = [each for each in comparisons if _smallest_p(each, paired=paired) > level(each) or not each.claimable]
    if not small:
        return
    least = min(each.n for each in small)
    best = max(_smallest_p(each, paired=paired) for each in small if each.n == least)
    claimed = sum(each.verdict in ("faster", "slower", "equivalent") for each in small)
    unit = "blocks" if paired else "trials per arm"
    needed = min(level(each) for each in small)
    enough = next(n for n in itertools.count(1) if smallest_exact_p(n, paired=paired) <= needed)
    reason = f"no exact test can go below p = {best:.2g} there, and {needed:.2g} is needed"
    few = counted(least, "block") if paired else f"{counted(least, 'trial')} per arm"
    rest = "rests" if len(small) == 1 else "rest"
    yield Doubt(
        code="few_blocks",
        message=f"{len(small)} of {counted(len(comparisons), 'comparison')} {rest} on as few as {few}, {claimed} with "
        f"a claim; {reason if best > needed else 'so few show almost nothing of their spread'}",
        advice=f"claims rest on the assumption of normality alone: run at least {enough} {unit}",
    )


def _smallest_p(comparison: Comparison, *, paired: bool) -> float:
    return smallest_exact_p(comparison.n, paired=paired) if comparison.rank is None else comparison.rank.smallest_p


def smallest_exact_p(n: int, *, paired: bool) -> float:
    """The smallest two-sided p of the exact sign-flip test of n pairs, or of the exact rank test of n + n values."""
    return ranks.smallest_signed_rank_p(n) if paired else ranks.smallest_rank_sum_p(n, n)


def _centred(values: t_tests.Values) -> t_tests.Values:
    return values - np.float64(values.mean())
