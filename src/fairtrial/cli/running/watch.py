"""`fairtrial watch`: a run that goes on elsewhere, in a terminal: the state that the page shows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairtrial.cli.terminal import Console
from fairtrial.errors import PlaceError
from fairtrial.live import outline
from fairtrial.live.doubts import Doubts
from fairtrial.live.followed import FollowedRun
from fairtrial.live.looks import LOOK_NOTE, CellLooks, are_always_valid
from fairtrial.live.words import journalled, outcome, stage
from fairtrial.record.live import Note
from fairtrial.record.models import TrialFinished
from fairtrial.report import numbers
from fairtrial.report.concerns import Concern
from fairtrial.report.tables import cell_label
from fairtrial.serve.tails import tails
from fairtrial.words import counted

TICK_S: Final = 1.0
NICENESS: Final = 19  # whoever measures goes first
PATIENCE_S: Final = 3.0  # a run that is resumed has no process for a moment
NEWEST: Final = 6  # events
MOST_DOUBTS: Final = 5
LOG_LINES: Final = 4  # of each log


def watch(directory: Path) -> None:
    """Shows a run until it ends, and exits as it did.

    Raises:
        FairtrialError: not a record, or a damaged one; or the run's process ended without a word.
        typer.Exit: with the run's exit code.
        KeyboardInterrupt: the user has seen enough; the run goes on.
    """
    os.nice(NICENESS)
    console = Console(highlight=False)
    run = FollowedRun(directory)
    try:
        (_drawn if console.is_terminal else _told)(run, console)
    except KeyboardInterrupt:
        if run.process is not None:
            console.print("stopped watching; the run goes on", markup=False)
        raise
    raise typer.Exit(_exit_code(run))


def _exit_code(run: FollowedRun) -> int:
    """What `fairtrial run` ended with, as far as its record tells.

    Of a finished run that is 0, although nobody can see from here whether its report could be written.
    """
    if run.state == "finished":
        return 0
    if run.interruption is not None and run.interruption.exit_code:
        return run.interruption.exit_code
    raise PlaceError(
        f"the process of {run.directory} ended without saying why, as a killed one does: its exit code is unknown",
        hint=f"resume the run with: {outline.resuming(run)}",
    )


def _ticks(run: FollowedRun) -> Iterator[bool]:
    """Reads the run again and again until it has ended; whether its journal has grown."""
    ended_s: float | None = None
    while True:
        grown = run.refresh()
        now_s = time.monotonic()
        ended_s = None if run.process is not None else ended_s or now_s
        yield grown
        if run.state == "finished" or (ended_s is not None and now_s - ended_s >= PATIENCE_S):
            return
        time.sleep(TICK_S)


def _plain(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


# Lines, for logs and pipes.


@dataclass
class _Lines:
    """What happened, a line each; the past of a run is one line."""

    run: FollowedRun
    console: Console
    read: int = 0
    noted: set[tuple[str, str]] = field(default_factory=set)
    doubted: set[tuple[str, str]] = field(default_factory=set)

    def say(self, text: str) -> None:
        self.console.print(_plain(text), markup=False, soft_wrap=True)

    def begin(self) -> None:
        now = outline.now(self.run)
        self.read = len(self.run.journal)
        self.noted = {(note.time, note.text) for note in self._notes()}
        left = f", {now.left}" if now.left else ""
        self.say(f"{self.run.plan.study} in {self.run.directory}: {now.state}, {now.done}/{now.total} trials{left}")
        self.say(now.sentence)

    def news(self) -> None:
        said = set()
        for line in self.run.journal[self.read :]:
            text = self._trial(line.entry) if isinstance(line.entry, TrialFinished) else journalled(line)
            said.add(text)
            if text:
                self.say(text)
        self.read = len(self.run.journal)
        for note in self._notes():
            if (note.time, note.text) not in self.noted and note.text not in said:
                self.say(note.text)
            self.noted.add((note.time, note.text))

    def doubt(self, found: Sequence[Concern]) -> None:
        """Each kind once: its figures change with every trial."""
        for each in found:
            if (each.code, each.advice) not in self.doubted:
                self.say(f"doubt: {_doubt(each)} {each.advice}")
            self.doubted.add((each.code, each.advice))

    def _notes(self) -> list[Note]:
        return [] if self.run.live is None else list(self.run.live.notes)

    def _trial(self, event: TrialFinished) -> str:
        now = outline.now(self.run)
        trial = self.run.trials[event.trial]
        where = f"{stage(trial.trial)}  trial {now.done}/{now.total}  {trial.trial.cell} · {trial.trial.arm}"
        return "  ".join(part for part in (where, outcome(trial), now.left) if part)


def _told(run: FollowedRun, console: Console) -> None:
    lines: _Lines | None = None
    doubts = Doubts(run, run.analysis)
    for grown in _ticks(run):
        if lines is None:
            lines = _Lines(run, console)
            lines.begin()
        lines.news()
        if _looked(doubts, grown=grown):
            lines.doubt(doubts.found or ())


def _looked(doubts: Doubts, *, grown: bool) -> bool:
    """Looks for doubts if it is time to; a finished run's are in its report."""
    doubts.stale |= grown
    if doubts.run.state == "finished" or not doubts.is_due:
        return False
    doubts.look()
    return True


def _doubt(found: Concern) -> str:
    return f"{found.briefly}: {found.sentence}" if found.spots else found.sentence


# A picture, for terminals.


def _drawn(run: FollowedRun, console: Console) -> None:
    looks: list[CellLooks] = []
    doubts = Doubts(run, run.analysis)
    with Live(console=console, auto_refresh=False) as shown:
        for grown in _ticks(run):
            if grown:
                looks = run.looks()
            shown.update(picture(run, looks, doubts.found or ()), refresh=True)
            _looked(doubts, grown=grown)


def picture(run: FollowedRun, looks: Sequence[CellLooks], doubts: Sequence[Concern]) -> RenderableType:
    """The run now: what would be cut off on a small terminal comes last."""
    now = outline.now(run)
    head = "  ".join(part for part in (now.state, f"{now.done} of {now.total} trials", now.left) if part)
    parts: list[RenderableType] = [
        Text(_plain(f"{run.plan.study}  {run.directory.name}"), style="bold"),
        Text(head),
        Text(_plain(now.sentence), style="dim"),
    ]
    if now.where:
        errors = counted(now.errors, "error") if now.errors else ""
        since = f"{now.phase} since {_clock(now.phase_began)}" if now.phase else f"since {_clock(now.began)}"
        parts.append(Text(_plain("  ".join(each for each in (now.where, since, now.doing, now.rate, errors) if each))))
    parts += [Text(""), *_looks(run, looks), *_doubts(run, doubts), *_grid(run), Text(""), *_events(run), *_logs(run)]
    return Group(*parts)


def _doubts(run: FollowedRun, found: Sequence[Concern]) -> Iterator[Text]:
    if run.state == "finished" or not found:
        return
    yield Text("doubts so far", style="bold")
    for each in found[:MOST_DOUBTS]:
        yield Text.assemble((_plain(_doubt(each)), "yellow"), (_plain(f" {each.advice}"), "dim"))
    if len(found) > MOST_DOUBTS:
        yield Text(f"and {len(found) - MOST_DOUBTS} more", style="dim")
    yield Text("")


def _logs(run: FollowedRun) -> Iterator[Text]:
    if run.logs is None:
        return
    for name, text in tails(run.logs):
        yield Text("")
        yield Text(_plain(name), style="bold")
        for line in text.splitlines()[-LOG_LINES:]:
            yield Text(_plain(line), overflow="ellipsis", no_wrap=True)


def _clock(utc: str) -> str:
    """Of this terminal's zone."""
    return datetime.fromisoformat(utc).astimezone().strftime("%H:%M:%S")


def _events(run: FollowedRun) -> Iterator[Text]:
    yield Text("events", style="bold")
    for note in outline.events(run, most=NEWEST):
        yield Text(_plain(f"{_clock(note.time)}  {note.text}"), overflow="ellipsis", no_wrap=True)


def _looks(run: FollowedRun, looks: Sequence[CellLooks]) -> Iterator[RenderableType]:
    if run.state == "finished":
        yield Text(f"verdicts: fairtrial report {run.directory}\n")
        return
    yield Text("looks (no verdict before the end)", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("cell", "metric", "compared", "blocks", "ratio so far", "interval so far", "rule"):
        table.add_column(name, justify="right" if name in {"blocks", "ratio so far"} else "left")
    baseline = run.plan.factors[run.plan.arm][0]
    for each in looks:
        last = each.looks[-1] if each.looks else None
        cells = (
            _label(run, each.cell),
            run.plan.metrics.definitions[each.metric].label,
            f"{each.arm} / {baseline}",
            str(last.blocks if last else 0),
            *(numbers.ratio_and_interval(last.ratio, last.low, last.high) if last else (numbers.ABSENT, each.without)),
            outline.rule(run, each.cell),
        )
        table.add_row(*(Text(_plain(cell)) for cell in cells))
    if looks:
        yield table
    yield Text(f"{LOOK_NOTE[are_always_valid(run.plan)]}\n", style="dim")


def _label(run: FollowedRun, name: str) -> str:
    levels = next((cell.levels for cell in run.plan.cells if cell.name == name), {})
    return cell_label(levels) or "all trials"


def _grid(run: FollowedRun) -> Iterator[RenderableType]:
    yield Text("blocks   " + "  ".join(f"{mark} {fate}" for fate, mark in outline.MARKS.items()), style="dim")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _cell, grid in outline.grids(run):
        for number, row in enumerate(grid.rows):
            marks = " ".join(" " if slot is None else outline.MARKS[slot.fate] for slot in row.slots)
            table.add_row(Text("" if number else _plain(grid.label)), Text(_plain(row.arm)), Text(marks))
    yield table
