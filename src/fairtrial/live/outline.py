"""Where a run stands, computed as it is followed: its state, its plan as a grid, what its rule says of a cell."""

from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass
from typing import Final, Literal

from fairtrial.live import words
from fairtrial.live.followed import FollowedRun, State
from fairtrial.live.slots import Slot
from fairtrial.record.live import Note
from fairtrial.record.models import CellLook
from fairtrial.report.tables import cell_label
from fairtrial.words import STOP_REASONS, counted, duration

MOST_BLOCKS: Final = 500  # of a cell: a table of tens of thousands is drawn by no browser in a second
BLOCKS_AHEAD: Final = 20  # of the last that was begun
AHEAD: Final = ("planned", "stopped")  # of trials that nobody has begun
MARKS: Final = {"planned": "·", "running": "◐", "valid": "●", "invalid": "✕", "void": "○", "stopped": "–"}


@dataclass(frozen=True)
class Now:
    """Where the run is.

    Attributes:
        state: of the run; `paused` where it waits between trials.
        sentence: what is going on, or what to do.
        done, total: trials.
        left: time left, in words; empty unless the run goes on.
        where: of the running trial, in words; empty if none runs.
        began, phase_began: UTC.
    """

    state: State | Literal["paused"]
    sentence: str
    done: int
    total: int
    left: str
    where: str = ""
    number: int | None = None
    phase: str = ""
    began: str = ""
    phase_began: str = ""
    doing: str = ""
    rate: str = ""
    errors: int = 0


def now(run: FollowedRun) -> Now:
    """The head of the page."""
    done = len(run.slots.finished)
    left = "" if run.left_s is None else f"{duration(run.left_s)} left"
    trial = None if run.live is None or run.paused else run.live.trial
    # Of a farm it is the last one that was run here.
    planned = None if trial is None or trial.id in run.slots.finished else run.slots.planned.get(trial.id)
    if trial is None or planned is None:
        kept = (slot.fate not in ("stopped", "void") or slot.trial.id in run.slots.finished for slot in run.fates)
        return Now("paused" if run.paused else run.state, _sentence(run), done, sum(kept), left)
    load = run.activity
    return Now(
        state=run.state,
        sentence=_sentence(run),
        done=done,
        total=trial.total,
        left=left,
        where=f"{words.stage(planned)}, block {planned.block}: {planned.cell} · {planned.arm}",
        number=run.slots.number(planned.id),
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
        case "running" if run.paused and run.slots.out:
            trials = counted(len(run.slots.out), "trial")
            return f"The run hands out no more blocks. Hosts finish {trials}, with settings in effect."
        case "running" if run.paused:
            return "The run waits between trials. Settings are undone; the place stays open and locked."
        case "running":
            out = len(run.slots.out)
            hosts = f" Hosts are running {counted(out, 'trial')}." if out else ""
            return f"No verdict yet: estimates below are looks.{hosts}"
        case "interrupted":
            why = "" if run.interruption is None else f" ({run.interruption.reason})"
            return f"The run was interrupted{why}. Resume it with: {resuming(run)}"
        case _:
            return "The run has not begun."


def resuming(run: FollowedRun) -> str:
    """The command that goes on with a run: without its farm, this machine would run what is left."""
    farm = " and the --places or --farm that it had" if run.slots.leased else ""
    return f"fairtrial run {run.directory} --resume{farm}"


@dataclass(frozen=True)
class Row:
    """One arm of a cell, block by block; None where a block has no trial of it."""

    arm: str
    slots: tuple[Slot | None, ...]


@dataclass(frozen=True)
class Grid:
    """A cell's part of the plan: of a long run, the blocks about the one that was begun last."""

    label: str
    blocks: tuple[int, ...]
    rows: tuple[Row, ...]


def grids(run: FollowedRun) -> list[tuple[str, Grid]]:
    """By cell name, those with planned trials, one for each trial of a boot; of diagnostic trials, without a name."""
    parts: dict[tuple[bool, str, int], dict[str, dict[int, Slot]]] = defaultdict(lambda: defaultdict(dict))
    for slot in run.fates:
        trial = slot.trial
        parts[trial.diagnostic, trial.cell, trial.repeat][trial.arm][trial.block] = slot
    levels = {cell.name: cell.levels for cell in run.plan.cells}
    return [
        ("" if diagnostic else cell, _grid(_label(levels.get(cell, {}), diagnostic=diagnostic, repeat=repeat), arms))
        for (diagnostic, cell, repeat), arms in parts.items()
    ]


def _label(levels: dict[str, str], *, diagnostic: bool, repeat: int) -> str:
    words = ["diagnostic trials"] if diagnostic else []
    if levels or not diagnostic:
        words.append(cell_label(levels))
    if repeat > 1:
        words.append(f"trial {repeat} of each boot")
    return ", ".join(words)


def _grid(label: str, arms: dict[str, dict[int, Slot]]) -> Grid:
    every = sorted({block for slots in arms.values() for block in slots})
    begun = {block for slots in arms.values() for block, slot in slots.items() if slot.fate not in AHEAD}
    end = max(MOST_BLOCKS, bisect.bisect_right(every, max(begun, default=0)) + BLOCKS_AHEAD)
    blocks = tuple(every[:end][-MOST_BLOCKS:])
    rows = tuple(Row(arm, tuple(slots.get(block) for block in blocks)) for arm, slots in arms.items())
    some = f", blocks {blocks[0]} to {blocks[-1]} of {len(every):,}" if len(blocks) < len(every) else ""
    return Grid(label + some, blocks, rows)


def rule(run: FollowedRun, cell: str) -> str:
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


def events(run: FollowedRun, *, most: int) -> list[Note]:
    """What was worth a line, newest first: what the journal says, and of notes those that say something else."""
    told = [Note(time=line.time, text=text) for line in run.journal if (text := words.journalled(line))]
    known = {note.text for note in told}
    notes = () if run.live is None else run.live.notes
    noted = [note for note in notes if note.text not in known]
    return sorted([*told, *noted], key=lambda note: note.time, reverse=True)[:most]
