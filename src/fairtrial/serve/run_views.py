"""What the parts of a run's page say, computed from the run as it is followed. Knows no HTML."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.live import words
from fairtrial.live.followed import FollowedRun, State
from fairtrial.live.looks import CellLooks, are_always_valid
from fairtrial.live.slots import Slot
from fairtrial.record.models import Cell, CellLook, TrialRecord
from fairtrial.report import numbers
from fairtrial.report.tables import cell_label
from fairtrial.serve import drawings
from fairtrial.serve.drawings import Drawing
from fairtrial.words import STOP_REASONS, counted, duration

MARKS: Final = {"planned": "·", "running": "◐", "valid": "●", "invalid": "✕", "void": "○", "stopped": "–"}
LOOK_NOTE: Final = {
    False: "Interval: as if the run had been planned to end after this block. A look, not a verdict: "
    "whoever stops when one pleases is wrong more often than it says.",
    True: "Interval: holds at every look together, whenever the run stops.",
}


@dataclass(frozen=True)
class Now:
    """Where the run is.

    Attributes:
        state: of the run.
        sentence: what is going on, or what to do.
        done, total: trials.
        left: time left, in words; empty unless the run goes on.
        where: of the running trial, in words; empty if none runs.
        began, phase_began: UTC.
    """

    state: State
    sentence: str
    done: int
    total: int
    left: str
    where: str = ""
    position: int | None = None
    phase: str = ""
    began: str = ""
    phase_began: str = ""
    doing: str = ""
    rate: str = ""
    errors: int = 0


def now(run: FollowedRun) -> Now:
    """The head of the page."""
    slots = run.fates
    owed = [slot for slot in slots if slot.fate not in ("stopped", "void") or slot.trial.id in run.slots.finished]
    done = sum(slot.trial.id in run.slots.finished for slot in slots)
    left = "" if run.left_s is None else f"{duration(run.left_s)} left"
    trial = None if run.live is None else run.live.trial
    planned = None if trial is None else run.slots.planned.get(trial.id)
    if trial is None or planned is None:
        return Now(run.state, _sentence(run), done, len(owed), left)
    load = run.activity
    return Now(
        state=run.state,
        sentence=_sentence(run),
        done=done,
        total=trial.total,
        left=left,
        where=f"{words.stage(planned)}, block {planned.block}: {planned.cell} · {planned.arm}",
        position=planned.position,
        phase=trial.phase,
        began=trial.began,
        phase_began=trial.phase_began,
        doing="" if load is None else load.doing,
        rate="" if load is None else load.rate,
        errors=0 if load is None else load.errors,
    )


def _sentence(run: FollowedRun) -> str:
    match run.state:
        case "finished":
            return "The run is finished."
        case "running":
            return "No verdict yet: estimates below are looks."
        case "interrupted":
            why = f" ({run.interruption})" if run.interruption else ""
            return f"The run was interrupted{why}. Resume it with: fairtrial run {run.directory} --resume"
        case _:
            return "The run has not begun."


@dataclass(frozen=True)
class Row:
    """One arm of a cell, block by block; None where a block has no trial of it."""

    arm: str
    slots: tuple[Slot | None, ...]


@dataclass(frozen=True)
class Grid:
    """A cell's part of the plan."""

    label: str
    blocks: tuple[int, ...]
    rows: tuple[Row, ...]


def grids(run: FollowedRun) -> list[tuple[str, Grid]]:
    """By cell name, those with planned trials; diagnostic trials are one grid of their own."""
    by_cell: dict[str, dict[str, dict[int, Slot]]] = defaultdict(lambda: defaultdict(dict))
    for slot in run.fates:
        by_cell["" if slot.trial.diagnostic else slot.trial.cell][slot.trial.arm][slot.trial.block] = slot
    labels = {cell.name: cell_label(cell.levels) or "all trials" for cell in run.plan.cells}
    return [(name, _grid(labels.get(name, "diagnostic trials"), arms)) for name, arms in by_cell.items()]


def _grid(label: str, arms: dict[str, dict[int, Slot]]) -> Grid:
    blocks = tuple(sorted({block for slots in arms.values() for block in slots}))
    rows = tuple(Row(arm, tuple(slots.get(block) for block in blocks)) for arm, slots in arms.items())
    return Grid(label, blocks, rows)


@dataclass(frozen=True)
class CellView:
    """One comparison of a cell, as far as it has come.

    Attributes:
        table: per block: block, a value per arm, ratio, the ratio so far, its interval.
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
    dots: Drawing
    looks: Drawing | None
    note: str


def cells(run: FollowedRun, cell: Cell, looks: Sequence[CellLooks]) -> list[CellView]:
    """Comparisons of a cell on primary metrics."""
    return [_cell(run, cell, metric, arm, looks) for metric in run.plan.metrics.primary for arm in _arms(run)[1:]]


def _arms(run: FollowedRun) -> list[str]:
    return run.plan.factors[run.plan.arm]


def _cell(run: FollowedRun, cell: Cell, metric: str, arm: str, looks: Sequence[CellLooks]) -> CellView:  # noqa: PLR0917 - which comparison of which cell
    definition = run.plan.metrics.definitions[metric]
    found = next((each for each in looks if (each.cell, each.arm, each.metric) == (cell.name, arm, metric)), None)
    used = {trial.trial.id for trial in run.used}
    arms = [_arms(run)[0], arm]
    own = [
        (trial, trial.trial.id in used)
        for trial in run.trials.values()
        if trial.trial.cell == cell.name and not trial.trial.diagnostic and trial.trial.arm in arms
    ]
    scale = numbers.scale(definition.unit, [trial.scalars.get(metric) for trial, _ in own])
    label = cell_label(cell.levels) or "all trials"
    last = found.looks[-1] if found else None
    return CellView(
        label=label,
        metric=f"{definition.label}, {scale.unit}",
        arm=f"{arm} / {arms[0]}",
        better=definition.better,
        blocks=str(last.blocks if last else 0),
        ratio=numbers.ratio(last.ratio) if last else numbers.ABSENT,
        interval=numbers.ratio_interval(last.low, last.high) if last else numbers.ABSENT,
        rule=_rule(run, cell.name),
        header=("block", *arms, "ratio", "ratio so far", "interval so far"),
        table=_table([trial for trial, is_used in own if is_used], found, metric=metric, arms=arms, scale=scale),
        dots=drawings.trials(f"{definition.label} of every trial, {label}", own, metric=metric, arms=arms, scale=scale),
        looks=drawings.looks(found, label=f"{arm} / {arms[0]} after every block, {label}") if found else None,
        note=LOOK_NOTE[are_always_valid(run.plan)],
    )


def _table(
    used: Sequence[TrialRecord], found: CellLooks | None, *, metric: str, arms: Sequence[str], scale: numbers.Scale
) -> tuple[tuple[str, ...], ...]:
    if found is None:
        return ()
    blocks: dict[int, dict[str, float]] = defaultdict(dict)
    for trial in used:
        blocks[trial.trial.block][trial.trial.arm] = trial.scalars.get(metric, math.nan)
    whole = [(block, values) for block, values in blocks.items() if min(values.get(arm, 0.0) for arm in arms) > 0]
    return tuple(
        (
            str(block),
            *(scale.value(values[arm]) for arm in arms),
            numbers.ratio(ratio),
            numbers.ratio(look.ratio),
            numbers.ratio_interval(look.low, look.high),
        )
        for (block, values), ratio, look in zip(whole, found.ratios, found.looks, strict=True)
    )


def _rule(run: FollowedRun, cell: str) -> str:
    """What the stopping rule said of a cell last."""
    if run.plan.design.stop == "fixed":
        return f"runs all {counted(run.plan.design.blocks, 'block')}"
    said: CellLook | None = next(
        (each for look in reversed(run.slots.looks) for each in look.cells if each.cell == cell), None
    )
    if said is None:
        return f"first look after {counted(run.plan.design.min_blocks or 0, 'block')}"
    if said.decision == "stop":
        return f"stopped after {counted(said.blocks, 'block')}: {STOP_REASONS[said.reason]}"
    return f"more blocks needed, at most {run.plan.design.blocks}"
