"""What a cell has shown after each of its blocks. A look is not a verdict, and this module computes none.

Of a design that may be looked at whenever one likes the intervals hold at every block together. Of any other each holds
by itself: as if the run had been planned to end there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.boots import averaged
from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.sequential import anytime
from fairtrial.record.models import Plan, TrialRecord

LOOK_NOTE: Final = {
    False: "Interval: as if the run had been planned to end after this block. A look is not a verdict: stopping at "
    "a favourable interval errs more often than its confidence level says.",
    True: "Interval: holds at every look together, whenever the run stops.",
}


@dataclass(frozen=True)
class Look:
    """After `blocks` complete blocks: arm over baseline, with its interval; None where one block shows no spread."""

    blocks: int
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class CellLooks:
    """One comparison of a cell, over its blocks so far.

    Attributes:
        ratios: of each block, in the order of their rounds.
        looks: after each.
        without: why there is no ratio, and then no look; empty if there is one.
    """

    cell: str
    arm: str
    metric: str
    ratios: tuple[float, ...]
    looks: tuple[Look, ...]
    without: str = ""


def are_always_valid(plan: Plan) -> bool:
    """Whether the intervals of all looks hold together."""
    return plan.design.stop == "anytime"


def cell_looks(plan: Plan, used: Sequence[TrialRecord]) -> list[CellLooks]:
    """Of every cell, arm and primary metric that has a complete block.

    Once a value is not above 0, there is no ratio of them, as in the analysis.

    Args:
        plan: the run's.
        used: valid trials of blocks that are not void, in the order they ran.
    """
    baseline, *others = plan.factors[plan.arm]
    blocks: dict[str, dict[int, dict[str, Mapping[str, float]]]] = {}
    for trial in averaged(used):
        arms = blocks.setdefault(trial.trial.cell, {}).setdefault(trial.trial.block, {})
        arms[trial.trial.arm] = trial.scalars
    return [
        found
        for cell in plan.cells
        for metric in plan.metrics.primary
        for arm in others
        if (found := _of(plan, blocks.get(cell.name, {}), (cell.name, arm, metric), baseline=baseline)) is not None
    ]


def _of(
    plan: Plan,
    blocks: Mapping[int, Mapping[str, Mapping[str, float]]],
    which: tuple[str, str, str],
    *,
    baseline: str,
) -> CellLooks | None:
    cell, arm, metric = which
    values = {
        block: (arms[arm][metric], arms[baseline][metric])
        for block, arms in blocks.items()
        if all(metric in arms.get(each, {}) for each in (baseline, arm))
    }
    if not values:
        return None
    if (block := next((block for block, pair in values.items() if not min(pair) > 0), None)) is not None:
        return CellLooks(
            cell, arm, metric, ratios=(), looks=(), without=f"block {block} has a value that is not above 0"
        )
    ratios = [treated / base for treated, base in values.values()]
    logs = np.log(np.asarray(ratios))
    looks = tuple(_look(plan, logs[: count + 1]) for count in range(len(ratios)))
    return CellLooks(cell=cell, arm=arm, metric=metric, ratios=tuple(ratios), looks=looks)


def _look(plan: Plan, logs: t_tests.Values) -> Look:
    n, mean = len(logs), float(logs.mean())
    if n < t_tests.SMALLEST_N:
        return Look(n, math.exp(mean), None, None)
    level = 1 - plan.design.confidence
    always = are_always_valid(plan)
    errors = anytime.reach(n, level=level) if always else t_tests.quantile(1 - level / 2, n - 1)
    reach = errors * float(logs.std(ddof=1)) / math.sqrt(n)
    if not abs(mean) + reach < t_tests.LARGEST_LOGARITHM:  # nor where it is infinite
        return Look(n, math.exp(mean), None, None)
    return Look(n, math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))
