"""Trials of one boot as one value: where arms boot once in a round, the boot is the unit, and what it repeats is not.

What a boot changes (where memory came to lie, which processors were faster) is in all its trials. Counted one by one,
they would promise a precision that the next boot does not keep: a split-plot design, whose whole plot is the boot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final

from fairtrial.analyse.models import Analysis, CellResult, Comparison
from fairtrial.record.models import Plan, TrialRecord

BETWEEN_BLOCKS: Final = "between_blocks"
UNIT: Final = "the boot is the unit: trials of one boot are averaged first, and nothing in it counts as a repetition"


def averaged(trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """One trial per cell, arm and block, in the order of the firsts: each scalar is the mean of those that have it."""
    return [each[0] if len(each) == 1 else _mean(each) for each in parts(trials).values()]


def parts(trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """The trials of each cell, arm and block, by the id of the first one, which stands for them in `averaged`."""
    blocks: dict[tuple[str, str, int], list[TrialRecord]] = {}
    for trial in trials:
        blocks.setdefault((trial.trial.cell, trial.trial.arm, trial.trial.block), []).append(trial)
    return {each[0].trial.id: each for each in blocks.values()}


def _mean(trials: Sequence[TrialRecord]) -> TrialRecord:
    names = dict.fromkeys(name for trial in trials for name in trial.scalars)
    finite = {
        name: [value for trial in trials if math.isfinite(value := trial.scalars.get(name, math.nan))] for name in names
    }
    return trials[0].model_copy(update={"scalars": {name: fmean(each) for name, each in finite.items() if each}})


def by_boot(analysis: Analysis, plan: Plan) -> Analysis:
    """The same analysis; of a plan whose arms boot once in a round, every comparison says what its unit is."""
    if plan.design.reboot != BETWEEN_BLOCKS:
        return analysis
    return analysis.model_copy(update={"cells": tuple(_said(cell) for cell in analysis.cells)})


def _said(cell: CellResult) -> CellResult:
    comparisons = {metric: tuple(map(_of_boots, each)) for metric, each in cell.comparisons.items()}
    return cell.model_copy(update={"comparisons": comparisons})


def _of_boots(comparison: Comparison) -> Comparison:
    return comparison.model_copy(update={"assumptions": (*comparison.assumptions[:1], UNIT)})
