"""Reasons to trust a whole analysis less that lie in the order of its trials: fixed slots, neighbours that are alike.

Pairing within blocks asks for two things that the numbers can show to be missing: that no arm always has the same slot,
and that what one block shows says nothing of the next. Without blocks the same is asked of each row of an arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference import ranks, t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Doubt

FIXED_LEVEL: Final = 0.01  # chance that random order within blocks looks fixed; of two arms it takes eight blocks
DEPENDENT_LEVEL: Final = 0.05  # false alarms per primary metric: so few blocks show dependence weakly
SMALLEST_N_TO_DEPEND: Final = 5  # neighbours of fewer blocks say nothing
LARGEST_N: Final = 1000  # blocks; the orders of more take gigabytes
RESAMPLES: Final = 999
ROWS_LEVEL: Final = 0.01  # false alarms per metric of independent rows: dependence that matters is found with far less
MOST_ROWS_PERMUTED: Final = 10_000  # 160 MB; so many are normal enough
SMALLEST_ROWS: Final = 20  # of an arm in a cell: fewer are no samples of one run, and the normal bound needs some
_ROUNDING: Final = 1e-12

Cells = Sequence[Sequence[ArmValues]]  # every arm of each cell, the baseline first


def interleaved(cells: Cells) -> bool:
    """Whether in every cell each arm stood before its baseline in some block, and after it in another."""
    return all(len(set(_after(arms, arm))) > 1 for arms in cells for arm in arms[1:])


def fixed_slots(metric: str, cells: Cells, *, in_step: bool = False) -> Iterator[Doubt]:
    """Whether an arm always stands on one side of its baseline, in all cells or in one of them.

    False alarms: under `FIXED_LEVEL` per metric, shared out among arms and cells. `in_step`: a block has one order for
    all cells, since they share boots or rounds, so that it counts once.
    """
    arms = max((len(each) - 1 for each in cells), default=0)
    level = FIXED_LEVEL / max(1, arms * (1 if len(cells) == 1 else 1 + len(cells)))
    parts = []
    for number in range(1, arms + 1):
        by_cell = [(_after(each, each[number]), each) for each in cells if len(each) > number]
        every = [after for of, _ in by_cell for after in of]
        fixed = [(of, each) for of, each in by_cell if len(set(of)) == 1 and 2.0 ** (1 - len(of)) < level]
        orders = max(len(of) for of, _ in by_cell) if in_step and by_cell else len(every)
        if len(set(every)) == 1 and 2.0 ** (1 - orders) < level:
            parts.append(_side(by_cell[0][1], number, after=every[0], count=len(every)))
        elif fixed:
            of, each = fixed[0]
            where = f" in {len(fixed)} of {len(by_cell)} cells"
            parts.append(_side(each, number, after=of[0], count=len(of)) + (where if len(by_cell) > 1 else ""))
    if parts:
        yield Doubt(
            code="fixed_slots",
            message="; ".join(parts),
            advice="if they ran in this order, every difference contains the drift within a block: randomise the "
            "order, or name the column of times",
            metric=metric,
        )


def _side(arms: Sequence[ArmValues], number: int, *, after: bool, count: int) -> str:
    return f"{arms[number].arm} runs {'after' if after else 'before'} {arms[0].arm} in all {count} blocks"


def _after(arms: Sequence[ArmValues], arm: ArmValues) -> list[bool]:
    """Of each block that has all arms: whether the arm stood behind the baseline."""
    return [of[arm.arm] > of[arms[0].arm] for of in _positions(arms).values()]


def dependent_blocks(metric: str, cells: Cells, *, in_step: bool = False) -> Iterator[Doubt]:
    """Whether differences of neighbouring blocks are alike, over all cells together. False alarms: `DEPENDENT_LEVEL`.

    The lag-1 autocorrelation of the blocks' differences, each arm's by its own spread, against orders of blocks at
    random: the blocks of a cell move together, since its arms share a baseline. `in_step`: those of all cells do, since
    they share boots or trials.
    """
    differences = _in_step(cells) if in_step else [_differences(arms, list(_positions(arms))) for arms in cells]
    differences = [each for each in differences if each.size]
    if not differences:
        return
    random = np.random.default_rng(0)
    statistic = sum(float(_neighbours(each)) for each in differences)
    others = np.sum([_neighbours(_reordered(each, random)) for each in differences], axis=0)
    p = (1 + int((others >= statistic - _ROUNDING).sum())) / (1 + RESAMPLES)
    if p < DEPENDENT_LEVEL:
        share = statistic / sum(each.size for each in differences)
        yield Doubt(
            code="dependent_blocks",
            message=f"differences of neighbouring blocks are alike: their autocorrelation is {share:.2f} (p = {p:.2g})",
            advice="p values and intervals treat blocks as independent and overstate the evidence: leave more time "
            "between blocks, find out what changes over several of them, or add blocks",
            metric=metric,
        )


def dependent_rows(metric: str, arms: Sequence[ArmValues], *, unit: str = "row") -> Iterator[Doubt]:
    """Whether neighbouring rows of an arm are alike, over all arms and cells together. False alarms: `ROWS_LEVEL`.

    The products of neighbours' ranks, which no outlier carries, against orders of the same rows at random. Where their
    moments over all orders (Wald and Wolfowitz 1943) and the normal distribution find nothing, or rows are many, those
    are enough.
    """
    scores = [each for arm in arms if (each := _scores(arm.values)) is not None]
    if not scores:
        return
    statistic, count = sum(float(each[:-1] @ each[1:]) for each in scores), sum(each.size for each in scores)
    moments = [_over_orders(each) for each in scores]
    away = (statistic - sum(mean for mean, _ in moments)) / math.sqrt(sum(variance for _, variance in moments))
    p = float(special.ndtr(-away))
    if p < ROWS_LEVEL and count <= MOST_ROWS_PERMUTED:
        p = _share_of_orders(scores, statistic=statistic)
    if p < ROWS_LEVEL:
        groups = f"{len(scores)} groups" if len(scores) > 1 else "one group"
        yield Doubt(
            code="dependent_rows",
            message=f"neighbouring {unit}s of an arm are alike: the autocorrelation of their ranks is "
            f"{statistic / count:.2f} (p = {p:.2g}, {count} {unit}s in {groups}), as in samples of one run",
            advice="p values and intervals treat each of them as a trial and greatly overstate the evidence: name the "
            "column that tells runs apart with `--cluster`, conditions with `--by`, trials side by side with `--block`",
            metric=metric,
        )


def _scores(values: Values) -> Values | None:
    """Ranks, ties at their mean, centred and of unit variance; None of too few values, or where all are equal."""
    if len(values) < SMALLEST_ROWS or np.ptp(values) == 0:
        return None
    ranked = ranks.ranked(values)
    return np.asarray((ranked - ranked.mean()) / ranked.std())


def _share_of_orders(scores: Sequence[Values], *, statistic: float) -> float:
    """How often random orders have neighbours as alike as seen: few values that differ are nowhere near normal."""
    random, sums = np.random.default_rng(0), np.zeros(RESAMPLES)
    for each in scores:
        orders = random.permuted(np.tile(each, (RESAMPLES, 1)), axis=1)
        sums += np.einsum("ij,ij->i", orders[:, :-1], orders[:, 1:])
    return (1 + int((sums >= statistic - _ROUNDING * abs(statistic)).sum())) / (1 + RESAMPLES)


def _over_orders(scores: Values) -> tuple[float, float]:
    """Mean and variance of the sum of neighbours' products over all orders of centred scores of unit variance."""
    n, fourth = scores.size, float((scores**4).sum())
    variance = (n * n - fourth) / n + (n * n - 2 * fourth) / (n * (n - 1)) - 1
    return -1.0, variance


def _positions(arms: Sequence[ArmValues]) -> dict[int, dict[str, int]]:
    """Positions by arm, by block that has all arms, blocks in time order."""
    every: dict[int, dict[str, int]] = {}
    for arm in arms:
        for block, position in zip(arm.blocks, arm.positions, strict=True):
            every.setdefault(block, {})[arm.arm] = position
    whole = {block: of for block, of in every.items() if len(of) == len(arms)}
    return dict(sorted(whole.items(), key=lambda each: min(each[1].values())))


def _in_step(cells: Cells) -> list[Values]:
    """Differences of several cells over the blocks that they have in common, as those of one: shape (rows, blocks)."""
    chosen, common = most_in_common([list(_positions(arms)) for arms in cells], fewest=SMALLEST_N_TO_DEPEND)
    varied = [each for index in chosen if (each := _differences(cells[index], common)).size]
    return [np.concatenate(varied)] if varied else []


def most_in_common(blocks: Sequence[Sequence[int]], *, fewest: int) -> tuple[list[int], list[int]]:
    """Which of several sequences of blocks to take together, by index, and what they have in common: most in all.

    Those of few blocks, which a rule has stopped, are left out where more is known without them. Nothing is taken where
    not even one has `fewest`.
    """
    longest = sorted(range(len(blocks)), key=lambda index: len(blocks[index]), reverse=True)
    common: list[list[int]] = []
    for index in longest:
        also = set(blocks[index])
        common.append([block for block in (common[-1] if common else blocks[index]) if block in also])
    sizes = [count * len(each) if len(each) >= fewest else 0 for count, each in enumerate(common, start=1)]
    if not any(sizes):
        return [], []
    most = int(np.argmax(sizes))
    return longest[: most + 1], common[most]


def _differences(arms: Sequence[ArmValues], blocks: Sequence[int]) -> Values:
    """Each arm less the baseline by block, centred, of unit variance: shape (arms - 1, blocks).

    On logarithms where all values are positive. Empty where there is too little of it.
    """
    if not SMALLEST_N_TO_DEPEND <= len(blocks) <= LARGEST_N:
        return np.empty((0, 0))
    values = [arm.at(blocks) for arm in arms]
    in_logs = all(arm.positive for arm in arms)
    # No unit is left in the end: one is chosen in which every square is a number.
    baseline, *others = [np.log(each) for each in values] if in_logs else t_tests.scaled(*values)[0]
    rows = [row - row.mean() for row in (other - baseline for other in others)]
    varied = [row / row.std() for row in rows if row.std() > _ROUNDING * np.abs(row).max(initial=1.0)]
    return np.array(varied)


def _neighbours(rows: Values) -> Values:
    """Sum of products of neighbours, over the first and the last axis."""
    return np.asarray((rows[..., :-1] * rows[..., 1:]).sum(axis=(0, -1)))


def _reordered(rows: Values, random: np.random.Generator) -> Values:
    """Blocks in `RESAMPLES` random orders, the same for all arms: shape (arms, resamples, blocks)."""
    orders = random.permuted(np.tile(np.arange(rows.shape[-1]), (RESAMPLES, 1)), axis=1)
    return np.asarray(rows[:, orders])
