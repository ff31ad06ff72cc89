"""A run's page: its parts rendered when they change, for as many browsers as look."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypedDict

import jinja2

from fairtrial.errors import RecordError
from fairtrial.live import finished, outline
from fairtrial.live.activity import Activity, Chart, length_s
from fairtrial.live.course import width_s
from fairtrial.live.doubts import Doubts
from fairtrial.live.followed import FollowedRun
from fairtrial.report.figures.thinning import rounded
from fairtrial.report.text import summary
from fairtrial.serve import run_views, trial_view
from fairtrial.serve.fragments import Fragments
from fairtrial.serve.tails import Tails

if TYPE_CHECKING:
    from fairtrial.analyse.models import Analysis

MOST_EVENTS: Final = 200
CELLS_OPEN: Final = 4
LONG_S: Final = 0.1  # what takes longer to put together anew rests, as the doubts do: most of a long run is as it was
SHARE: Final = 0.02  # of the time
CONTRADICTIONS: Final = (LookupError, TypeError, ValueError, OSError)  # of files that are each valid
ELSEWHERE: Final = "Logs are shown here while a trial runs on this machine; elsewhere they arrive when it ends."


class ChartNews(TypedDict):
    """Numbers over time as a browser takes them: stretches of `width` seconds from number `first` on."""

    trial: str
    number: int
    width: int
    first: int
    marks: dict[str, float]
    charts: dict[str, dict[str, object]]


@dataclass
class RunPage:
    """The parts of one run's page.

    Attributes:
        run: followed.
        parts: as they were rendered last.
        verdicts: of a finished run, once they were taken.
        logs: as they were shown last; None before that.
        stale: whether the journal has grown since its parts were rendered.
    """

    run: FollowedRun
    templates: jinja2.Environment
    parts: Fragments = field(default_factory=Fragments)
    doubts: Doubts = field(init=False)
    verdicts: tuple[str, ...] = ()
    logs: list[tuple[str, str]] | None = None
    ends: Tails = field(default_factory=Tails)
    state: str = ""
    stale: bool = True
    _rests_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)  # a reader that goes leaves its thread at work

    def __post_init__(self) -> None:
        self.macros = self.templates.get_template("parts.html.jinja").module
        self.doubts = Doubts(self.run, self._analysis)

    def refresh(self) -> None:
        """Takes in what is new.

        Raises:
            FairtrialError: the record is damaged.
        """
        try:
            with self._lock:
                self._refresh()
        except CONTRADICTIONS as error:
            raise RecordError(
                f"the files of {self.run.directory} contradict each other: {error}",
                hint="restore the record from a copy: it was changed after it was written",
            ) from error

    def _refresh(self) -> None:
        grown = self.run.refresh()
        state = self.run.state
        self._put("now", "now", outline.now(self.run), self.run)
        if (shown := self._tails()) != self.logs:
            self.logs = shown
            self._put("logs", "logs", shown, ELSEWHERE)
        self.stale |= grown
        if state != self.state or (self.stale and time.monotonic() >= self._rests_until):
            began = time.monotonic()
            self._journalled()
            took_s = time.monotonic() - began
            self._rests_until = began + (took_s / SHARE if took_s > LONG_S else 0.0)
            self.stale, self.doubts.stale = False, True
        self.state = state

    def _put(self, name: str, macro: str, *arguments: object) -> None:
        self.parts.put(name, str(getattr(self.macros, macro)(*arguments)))

    def _journalled(self) -> None:
        views = run_views.cells(self.run, self.run.looks())
        self._put("cells", "cells", [view for each in views.values() for view in each])
        for number, (_cell, grid) in enumerate(outline.grids(self.run)):
            self._put(f"grid-{number}", "grid", f"grid-{number}", grid, outline.MARKS)
        for number, each in enumerate(views.values()):
            if each:
                is_open = number < CELLS_OPEN
                self._put(f"cell-{number}", "cell", f"cell-{number}", each, is_open)
        self._put("events", "events", outline.events(self.run, most=MOST_EVENTS))
        self.show_analysis()

    def _analysis(self) -> Analysis:
        if self.run.state != "finished":
            return self.run.analysis()
        found = _finished(self.run)
        self.verdicts = summary.sentences(found)
        return found

    def show_analysis(self) -> None:
        """Puts what was found on the page."""
        self._put("verdicts", "verdicts", self.verdicts)
        self._put("doubts", "doubts", self.doubts.found)

    def _tails(self) -> list[tuple[str, str]]:
        directory = self.run.logs
        return [] if directory is None else self.ends.read(directory)

    def charts(self, load: Activity, *, width: int, first: int) -> ChartNews:
        """The running trial's numbers over time: all, or those from one stretch on where `width` is theirs still."""
        now = width_s(load.length_s)
        first = first if now == width else 0
        return {
            "trial": load.trial,
            "number": self.run.slots.number(load.trial),
            "width": now,
            "first": first,
            "marks": load.marks,
            "charts": _drawn(load.charts, width=now, first=first),
        }

    def series(self, number: int) -> ChartNews | None:
        """Numbers over time of a trial that has ended; None if there is none. Slow, for a thread.

        Raises:
            RecordError: a raw file is damaged.
        """
        found = trial_view.directory(self.run, number)
        if found is None:
            return None
        charts, marks = finished.charts(*found)
        width = width_s(length_s(charts.values()))
        drawn = _drawn(charts, width=width, first=0)
        trial = found[1].trial.id
        return {"trial": trial, "number": number, "width": width, "first": 0, "marks": marks, "charts": drawn}

    def page(self, name: str, *, since: str, assets: Mapping[str, str], number: int | None = None) -> str:
        """The whole page, with one trial of it if its number is given and there is one."""
        shown = None if number is None else trial_view.view(self.run, number)
        return self.templates.get_template("run.html.jinja").render(
            name=name,
            since=since,
            plan=self.run.plan,
            parts=self.parts,
            marks=outline.MARKS,
            grids=[each for each in self.parts.parts if each.startswith("grid-")],
            cells=[each for each in self.parts.parts if each.startswith("cell-")],
            assets=assets,
            scripts=("uPlot.iife.min.js", "idiomorph.min.js", "page.js"),
            selected="" if shown is None else str(getattr(self.macros, "trial")(shown)),  # noqa: B009 - a macro
        )


def _finished(run: FollowedRun) -> Analysis:
    from fairtrial.serve import reports  # noqa: PLC0415 - what draws takes a second to load

    return reports.analysis(run.record)


def _drawn(charts: Mapping[str, Chart], *, width: int, first: int) -> dict[str, dict[str, object]]:
    drawn: dict[str, dict[str, object]] = {}
    for name, chart in charts.items():
        stretches = chart.course.stretches(width_s=width, first=first)
        drawn[name] = {
            "title": chart.title,
            "low": [rounded(each.low) for each in stretches],
            "median": [rounded(each.median) for each in stretches],
            "high": [rounded(each.high) for each in stretches],
        }
    return drawn


def as_json(value: object) -> str:
    """Compact JSON; a line of an event stream must not contain line ends, and JSON has none."""
    return json.dumps(value, separators=(",", ":"))
