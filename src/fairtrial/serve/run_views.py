"""What the parts of a run's page say, computed from the run as it is followed. Knows no HTML."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.analyse.boots import averaged
from fairtrial.live import outline
from fairtrial.live.followed import FollowedRun
from fairtrial.live.looks import LOOK_NOTE, CellLooks, are_always_valid
from fairtrial.live.slots import Slot
from fairtrial.record.models import Cell, TrialRecord
from fairtrial.report import numbers
from fairtrial.report.tables import cell_label
from fairtrial.serve import drawings
from fairtrial.serve.drawings import Drawing


@dataclass(frozen=True)
class CellView:
    """One comparison of a cell, as far as it has come.

    Attributes:
        table: per block: block, a value per arm, ratio, the ratio so far, its interval; of a long run the last blocks.
        blocks_left_out: of it, in words.
    """

    label: str
    metric: str
    arm: str
    better: str
    blocks: str
    ratio: str
    interval: str
    rule: str
    header: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    blocks_left_out: str
    dots: Drawing
    looks: Drawing | None
    note: str


def cells(run: FollowedRun, looks: Sequence[CellLooks]) -> dict[str, list[CellView]]:
    """Comparisons on primary metrics, by cell."""
    slots = {slot.trial.id: slot for slot in run.fates if not slot.trial.diagnostic}
    shown: dict[str, list[tuple[Slot, TrialRecord]]] = defaultdict(list)
    for name, trial in run.trials.items():
        if name in slots:
            shown[slots[name].trial.cell].append((slots[name], trial))
    found = {(each.cell, each.metric, each.arm): each for each in looks}
    baseline, *others = run.plan.factors[run.plan.arm]
    return {
        cell.name: [
            _cell(
                run,
                cell,
                shown[cell.name],
                looks=found.get((cell.name, metric, arm)),
                compared=(metric, baseline, arm),
            )
            for metric in run.plan.metrics.primary
            for arm in others
        ]
        for cell in run.plan.cells
    }


def _cell(
    run: FollowedRun,
    cell: Cell,
    shown: Sequence[tuple[Slot, TrialRecord]],
    *,
    looks: CellLooks | None,
    compared: tuple[str, str, str],
) -> CellView:
    """One comparison: metric, baseline and arm."""
    metric, *arms = compared
    definition = run.plan.metrics.definitions[metric]
    own = [(slot, trial) for slot, trial in shown if slot.trial.arm in arms]
    values = [(slot, trial.scalars.get(metric, math.nan)) for slot, trial in own]
    scale = numbers.scale(definition.unit, [value for _, value in values])
    label = cell_label(cell.levels) or "all trials"
    last = looks.looks[-1] if looks and looks.looks else None
    without = (numbers.ABSENT, (looks.without if looks else "") or numbers.ABSENT)
    ratio, interval = numbers.ratio_and_interval(last.ratio, last.low, last.high) if last else without
    table = _table([t for slot, t in own if slot.fate == "valid"], looks, metric=metric, arms=arms, scale=scale)
    return CellView(
        label=label,
        metric=f"{definition.label}, {scale.unit}".removesuffix(", "),
        arm=f"{arms[1]} / {arms[0]}",
        better=definition.better,
        blocks=str(last.blocks if last else 0),
        ratio=ratio,
        interval=interval,
        rule=outline.rule(run, cell.name),
        header=("block", *arms, "ratio", "ratio so far", "interval so far"),
        table=table[-outline.MOST_BLOCKS :],
        blocks_left_out=f", the last {outline.MOST_BLOCKS} blocks" if len(table) > outline.MOST_BLOCKS else "",
        dots=drawings.trials(f"{definition.label} of every trial, {label}", values, arms=arms, scale=scale),
        looks=drawings.looks(looks, label=f"{arms[1]} / {arms[0]} after every block, {label}")
        if last and looks
        else None,
        note=LOOK_NOTE[are_always_valid(run.plan)],
    )


def _table(
    used: Sequence[TrialRecord], found: CellLooks | None, *, metric: str, arms: Sequence[str], scale: numbers.Scale
) -> tuple[tuple[str, ...], ...]:
    if found is None or not found.looks:
        return ()
    blocks: dict[int, dict[str, float]] = defaultdict(dict)
    for trial in averaged(used):
        if metric in trial.scalars:
            blocks[trial.trial.block][trial.trial.arm] = trial.scalars[metric]
    whole = [(block, values) for block, values in blocks.items() if all(arm in values for arm in arms)]
    return tuple(
        (
            str(block),
            *(scale.value(values[arm]) for arm in arms),
            numbers.ratio(ratio),
            *numbers.ratio_and_interval(look.ratio, look.low, look.high),
        )
        for (block, values), ratio, look in zip(whole, found.ratios, found.looks, strict=True)
    )
