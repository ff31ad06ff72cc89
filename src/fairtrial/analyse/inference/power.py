"""How many blocks a study needs, from a pilot's spread: noncentral t at the level that its family leaves. Pure.

Source: power of the paired t test on log ratios, as R's `power.t.test(type = "one.sample", strict = TRUE)`; of a study
in `order: sequential`, which Welch's test analyses, as that of `type = "two.sample"`. The pilot's deviation is itself
uncertain, so its upper bound is planned with (Browne 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.inference import comparing, sensitivity, t_tests
from fairtrial.analyse.measured import measured
from fairtrial.analyse.noise import profile as noise
from fairtrial.analyse.noise.models import NoiseProfile
from fairtrial.analyse.selection import ContrastCell, select
from fairtrial.record.models import Plan, TrialRecord

FEWEST_BLOCKS: Final = 3  # of a pilot and of a plan; with two the t distribution's tails make every plan absurd
MOST_BLOCKS: Final = 10_000  # what a study file may ask for
TABLE: Final = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40)
SMALLEST_LEVEL: Final = 1e-12  # of smaller ones 1 - level has no digits left; no number of blocks is planned for them


@dataclass(frozen=True)
class Pilot:
    """The spread of one metric's log ratios in one cell: of paired trials, or of two trials if arms are not paired.

    Attributes:
        df: degrees of freedom of `sd`; of arms that are not paired those of one: what varies by block is in both.
        upper: one-sided upper bound of the true deviation at `noise.PILOT_CONFIDENCE`.
    """

    cell: str
    metric: str
    sd: float
    df: int

    @property
    def upper(self) -> float:
        """See the class."""
        return noise.upper_deviation(self.sd, df=self.df)


def is_paired(plan: Plan) -> bool:
    """Whether a study's arms are compared block by block: trials of a block are close in time."""
    return plan.design.order != "sequential"


def of_run(
    plan: Plan, trials: Sequence[TrialRecord], *, voided: Iterable[tuple[str, int]] = (), paired: bool = True
) -> tuple[Pilot, ...]:
    """Of each cell and primary metric of a run: of its noisiest arm against the baseline. `voided` as in `select`."""
    cells = select(plan, trials, contrast=None, voided=voided).cells
    pilots = (_noisiest(cell, metric, paired=paired) for cell in cells for metric in plan.metrics.primary)
    return tuple(pilot for pilot in pilots if pilot is not None)


def _noisiest(cell: ContrastCell, metric: str, *, paired: bool) -> Pilot | None:
    baseline, *others = [measured(trials, metric=metric, arm=level) for level, trials in cell.groups.items()]
    spreads = []
    for arm in others:
        used = comparing.arm_pair(baseline, arm, paired=paired)
        n = min(len(used.baseline), len(used.arm))
        if n < FEWEST_BLOCKS or not (baseline.positive and arm.positive):
            continue
        arms = [np.log(used.arm / used.baseline)] if paired else [np.log(used.baseline), np.log(used.arm)]
        spreads.append((math.hypot(*(float(np.std(each, ddof=1)) for each in arms)), n - 1))
    sd, df = max(spreads, default=(0.0, 0))
    return Pilot(cell=cell.name, metric=metric, sd=sd, df=df) if sd > 0 else None


def of_profile(profile: NoiseProfile, plan: Plan) -> tuple[Pilot, ...]:
    """Of each cell and primary metric of an A/A run that the plan has as well."""
    cells = {cell.name for cell in plan.cells}
    return tuple(
        Pilot(cell=each.cell, metric=each.metric, sd=sd, df=each.blocks - 1)
        for each in profile.metrics
        for sd in [each.pair_sd if is_paired(plan) else math.sqrt(2) * math.hypot(each.trial_sd, each.block_sd)]
        if each.metric in plan.metrics.primary and each.cell in cells and sd > 0
    )


def level(plan: Plan) -> float:
    """The level of the hardest step of the primary family's adjustment, which a plan must be made for."""
    return (1 - plan.design.confidence) / family(plan)


def family(plan: Plan) -> int:
    """Primary comparisons that are judged together."""
    return len(plan.cells) * (len(plan.factors[plan.arm]) - 1) * len(plan.metrics.primary)


def detectable(sd: float, *, blocks: int, alpha: float, paired: bool = True) -> float | None:
    """The smallest change of a ratio, upwards, found with power 0.8; None beyond any number.

    `sd` is a `Pilot`'s, of arms `paired` or not.
    """
    if alpha < SMALLEST_LEVEL:
        return None
    return sensitivity.share(sensitivity.shift(_df(blocks, paired=paired), alpha=alpha) * sd / math.sqrt(blocks))


def power(sd: float, *, effect: float, blocks: int, alpha: float, paired: bool = True) -> float:
    """Probability that a change of `effect` (0.03 is 3 %) is found; the others as in `detectable`."""
    if alpha < SMALLEST_LEVEL:
        return 0.0
    df = _df(blocks, paired=paired)
    shift = abs(math.log1p(effect)) / sd * math.sqrt(blocks)
    return sensitivity.power(df, critical=-t_tests.quantile(alpha / 2, df), noncentrality=shift)


def _df(blocks: int, *, paired: bool) -> int:
    """Of arms that are not paired Welch's, as if they scatter alike."""
    return (1 if paired else 2) * (blocks - 1)


def blocks_needed(
    sd: float,
    *,
    effect: float,
    alpha: float | Callable[[int], float],
    fewest: int = FEWEST_BLOCKS,
    paired: bool = True,
) -> int | None:
    """The fewest blocks, `fewest` or more, that find a change of `effect` with power 0.8; None if `MOST_BLOCKS` do not.

    `alpha` may depend on how many blocks are planned.
    """

    def found(blocks: int) -> bool:
        level = alpha(blocks) if callable(alpha) else alpha
        return power(sd, effect=effect, blocks=blocks, alpha=level, paired=paired) >= sensitivity.POWER

    few, many = fewest, fewest
    while not found(many):
        if many >= MOST_BLOCKS:
            return None
        few, many = many + 1, min(2 * many, MOST_BLOCKS)
    while few < many:  # power rises with blocks
        middle = (few + many) // 2
        if found(middle):
            many = middle
        else:
            few = middle + 1
    return few


def hardest(pilots: Sequence[Pilot]) -> Pilot:
    """The one with the largest upper bound: a plan that is enough for it is enough for all."""
    return max(pilots, key=lambda pilot: pilot.upper)
