"""A run's page: its parts rendered when they change, for as many browsers as look."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import jinja2

from fairtrial.errors import FairtrialError
from fairtrial.live.course import width_s
from fairtrial.live.followed import FollowedRun
from fairtrial.record.live import Note
from fairtrial.record.models import BlockAdded, BlockVoided, JournalLine, LookTaken, TrialFinished
from fairtrial.report.concerns import Concern, concerns, doubts, kinds
from fairtrial.serve import run_views
from fairtrial.serve.fragments import Fragments
from fairtrial.words import STOP_REASONS, counted

TAIL_BYTES: Final = 8192
TAIL_LINES: Final = 40
MOST_EVENTS: Final = 200
ANALYSED_SHARE: Final = 0.002  # of the time: looking for doubts must not become one
CELLS_OPEN: Final = 4
OF_PARTS: Final = ("unfinished", "missing")  # said of every run that goes on, as the head of the page does
ELSEWHERE: Final = "Logs are shown here while a trial runs on this machine; elsewhere they arrive when it ends."


@dataclass
class RunPage:
    """The parts of one run's page.

    Attributes:
        run: followed.
        parts: as they were rendered last.
        analysed_at, analysed_s: when doubts were looked for last, and how long that took.
    """

    run: FollowedRun
    templates: jinja2.Environment
    parts: Fragments = field(default_factory=Fragments)
    found: tuple[Concern, ...] | None = None
    analysed_at: float = 0.0
    analysed_s: float = 0.0
    stale: bool = True
    state: str = ""

    def __post_init__(self) -> None:
        self.macros = self.templates.get_template("parts.html.jinja").module

    def refresh(self) -> None:
        """Takes in what is new.

        Raises:
            FairtrialError: the record is damaged.
        """
        grown = self.run.refresh()
        state = self.run.state
        self._put("now", "now", run_views.now(self.run), self.run)
        self._put("logs", "logs", self._tails(), ELSEWHERE)
        if grown or state != self.state or not self.parts.version:
            self._journalled()
            self.stale = True
        self.state = state

    def _put(self, name: str, macro: str, *arguments: object) -> None:
        self.parts.put(name, str(getattr(self.macros, macro)(*arguments)))

    def _journalled(self) -> None:
        looks = self.run.looks()
        views = {cell.name: run_views.cells(self.run, cell, looks) for cell in self.run.plan.cells}
        self._put("cells", "cells", [view for each in views.values() for view in each], None)
        for number, (_cell, grid) in enumerate(run_views.grids(self.run)):
            self._put(f"grid-{number}", "grid", f"grid-{number}", grid, run_views.MARKS)
        for number, each in enumerate(views.values()):
            if each:
                is_open = number < CELLS_OPEN
                self._put(f"cell-{number}", "cell", f"cell-{number}", each, is_open)
        self._put("events", "events", self._events())
        self._put("doubts", "doubts", self.found)

    def wants_analysis(self) -> bool:
        """Whether doubts may have changed, and looking for them costs little beside the time since the last."""
        return self.stale and time.monotonic() - self.analysed_at >= self.analysed_s / ANALYSED_SHARE

    def analyse(self) -> None:
        """Looks for doubts; slow, for a thread of its own."""
        began = time.monotonic()
        self.stale = False
        try:
            analysis = self.run.analysis()
        except FairtrialError as error:
            self.found = (Concern(code="not analysed", message=str(error), advice=error.hint or "", spots=()),)
        else:
            self.found = kinds(
                concerns(each for each in doubts(analysis) if self.run.state != "running" or each.code not in OF_PARTS)
            )
        self.analysed_at = time.monotonic()
        self.analysed_s = self.analysed_at - began

    def show_doubts(self) -> None:
        """Puts what `analyse` found on the page."""
        self._put("doubts", "doubts", self.found)

    def _events(self) -> list[Note]:
        told = [Note(time=line.time, text=text) for line in self.run.journal if (text := _text(line))]
        notes = self.run.live.notes if self.run.live is not None else ()
        return sorted([*told, *notes], key=lambda note: note.time, reverse=True)[:MOST_EVENTS]

    def _tails(self) -> list[tuple[str, str]]:
        directory = None if self.run.live is None else self.run.live.logs
        if directory is None:
            return []
        return [(path.name, text) for path in sorted(Path(directory).glob("*.log")) if (text := tail(path))]

    def charts(self, *, seen: Mapping[str, int] | None = None) -> dict[str, object] | None:
        """The running trial's numbers over time, from what a browser has on; None if it has all."""
        load = self.run.activity
        if load is None:
            return None
        width = width_s(load.length_s)
        fresh = seen is None or seen.get("width") != width
        first = 0 if fresh or seen is None else seen.get("stretches", 0)
        charts = {}
        for name, chart in load.charts.items():
            stretches = chart.course.stretches(width_s=width, first=first)
            charts[name] = {
                "title": chart.title,
                "low": [each.low for each in stretches],
                "median": [each.median for each in stretches],
                "high": [each.high for each in stretches],
            }
        return {"trial": load.trial, "width": width, "first": first, "marks": load.marks, "charts": charts}

    def page(self, name: str, *, since: str, assets: Mapping[str, str]) -> str:
        """The whole page."""
        return self.templates.get_template("run.html.jinja").render(
            name=name,
            since=since,
            plan=self.run.plan,
            parts=self.parts,
            marks=run_views.MARKS,
            grids=[each for each in self.parts.parts if each.startswith("grid-")],
            cells=[each for each in self.parts.parts if each.startswith("cell-")],
            assets=assets,
            scripts=("uPlot.iife.min.js", "idiomorph.min.js", "page.js"),
            trial=None,
            selected="",
        )


def tail(path: Path) -> str:
    """The last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
    except OSError:
        return ""
    return "\n".join(data.decode(errors="replace").splitlines()[-TAIL_LINES:])


def _text(line: JournalLine) -> str:
    """One journal line in words; empty for what the plan shows as well."""
    match line.entry:
        case TrialFinished(valid=False):
            return f"{line.entry.trial} is invalid: {line.entry.invalid_reason}"
        case BlockVoided():
            return f"block {line.entry.block} of {line.entry.cell} is void: {line.entry.reason}"
        case BlockAdded():
            return f"block {line.entry.block} of {line.entry.cell} replaces block {line.entry.replaces}"
        case LookTaken():
            stops = [
                f"{each.cell} stops after {counted(each.blocks, 'block')}: {STOP_REASONS[each.reason]}"
                for each in line.entry.cells
                if each.decision == "stop"
            ]
            return "; ".join([f"look after round {line.entry.round}: {line.entry.decision}", *stops])
        case _:
            return "" if line.entry.event.startswith(("trial_", "place_")) else line.entry.event.replace("_", " ")


def as_json(value: object) -> str:
    """Compact JSON; a line of an event stream must not contain line ends, and JSON has none."""
    return json.dumps(value, separators=(",", ":"))
