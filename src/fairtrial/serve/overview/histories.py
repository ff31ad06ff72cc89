"""A study's runs as series: levels that changed, alarms, what is acknowledged. Knows no HTML, and decides nothing.

`fairtrial.history` finds everything that is told here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from fairtrial.errors import FairtrialError
from fairtrial.history import Alarm, History, HistoryOptions, KnownChange, LevelChange, SeriesResult, examine
from fairtrial.history import series as across_runs
from fairtrial.history import text as words
from fairtrial.history.gating import departure_in_words
from fairtrial.record import acknowledgements
from fairtrial.report import numbers

MOST_RUNS: Final = 200  # the newest: no more points are looked at
WIDTH: Final = 960.0
HEIGHT: Final = 240.0
LEFT: Final = 84.0  # for the labels of the axis
MARGIN: Final = 14.0
TICKS: Final = 5
STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
ROOM: Final = 0.08  # of the range, above and below


@dataclass(frozen=True)
class Tick:
    """A line across with its label."""

    y: float
    label: str


@dataclass(frozen=True)
class Point:
    """One run: where it is drawn and what its row of the table says. `mark`: what is said of it, if anything."""

    x: float
    y: float
    run: str
    time: str
    value: str
    error: str
    trials: int
    mark: str
    kind: str


@dataclass(frozen=True)
class Level:
    """What held from one point to another."""

    left: float
    right: float
    y: float
    label: str


@dataclass(frozen=True)
class Happening:
    """A change or an alarm.

    Attributes:
        details: one sentence each.
        known: why it is no news; empty if nobody said so.
        entry: what to add to acknowledged.yaml to say so.
    """

    kind: str
    run: str
    sentence: str
    details: tuple[str, ...]
    known: str
    entry: str


@dataclass(frozen=True)
class SeriesView:
    """One series: its chart, its table, and what happened in it. All in units of a box of `width` × `height`."""

    title: str
    state: str
    unit: str
    ticks: tuple[Tick, ...]
    levels: tuple[Level, ...]
    steps: tuple[float, ...]
    points: tuple[Point, ...]
    happenings: tuple[Happening, ...]
    doubts: tuple[str, ...]
    left_out: int
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT


@dataclass(frozen=True)
class StudyHistory:
    """All that the page says.

    Attributes:
        metric: shown; empty for all primary ones.
        metrics: others that could be shown.
        left_out: runs without a point, with the reason.
    """

    metric: str
    metrics: tuple[str, ...]
    views: tuple[SeriesView, ...]
    left_out: dict[str, str]
    sureness: str
    problem: str = ""


def study_history(directories: Sequence[Path], *, metric: str, acknowledged: Sequence[Path]) -> StudyHistory:
    """Looks at the series of some runs of one study, by the levels that `fairtrial history` has.

    Raises:
        FairtrialError: none of the runs can be read.
    """
    readable, damaged = _readable(directories)
    runs = across_runs.read(readable)
    known, problem = _known(acknowledged)
    every = list(dict.fromkeys(each.metric for each in runs.series))
    chosen = [each for each in runs.series if (each.metric == metric if metric else each.role == "primary")]
    history = examine(chosen, options=HistoryOptions(known=known), left_out={**damaged, **runs.left_out})
    return StudyHistory(
        metric=metric,
        metrics=tuple(every),
        views=tuple(_view(each) for each in history.series),
        left_out=history.left_out,
        sureness=_sureness(history),
        problem=problem,
    )


def _readable(directories: Sequence[Path]) -> tuple[list[Path], dict[str, str]]:
    """Runs that can be read, and why the others cannot: one damaged run must not hide the rest."""
    try:
        across_runs.read(directories)
    except FairtrialError:
        pass
    else:
        return list(directories), {}
    readable, damaged = [], {}
    for each in directories:
        try:
            across_runs.read([each])
        except FairtrialError as error:
            damaged[each.name] = str(error)
        else:
            readable.append(each)
    return readable, damaged


def _known(files: Sequence[Path]) -> tuple[tuple[KnownChange, ...], str]:
    try:
        entries = [each for file in files if file.is_file() for each in acknowledgements.read(file)]
    except FairtrialError as error:
        return (), f"acknowledgements are not used: {error}"
    return tuple(KnownChange(**each.model_dump()) for each in entries), ""


def _sureness(history: History) -> str:
    return (
        f"Probability of a change in a series without one: {numbers.percent(history.alpha)}; of any false alarm on "
        f"newest runs, over all series of this page: {numbers.percent(history.alarm_alpha)}."
    )


def _view(of: SeriesResult) -> SeriesView:
    scale = numbers.scale(of.unit, of.values)
    low, high = _range(of)
    count = len(of.values)

    def x(index: float) -> float:
        return round(LEFT + MARGIN + (WIDTH - LEFT - 2 * MARGIN) * (index + 0.5) / count, 1)

    def y(value: float) -> float:
        return round(HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN), 1)

    bounds = [0, *(change.index for change in of.changes), count]
    held = [change.after for change in of.changes]
    held.insert(0, of.changes[0].before if held else median(of.values))
    levels = [
        Level(x(start - 0.4), x(end - 0.6), y(value), f"median {words.shown(of, value)}")
        for (start, end), value in zip(pairwise(bounds), held, strict=True)
    ]
    marks = _marks(of)
    points = tuple(
        Point(
            x=x(index),
            y=y(value),
            run=of.runs[index],
            time=of.times[index],
            value=scale.value(value),
            error=_error(of, index, scale),
            trials=of.ns[index],
            mark=marks.get(index, ("", ""))[1],
            kind=marks.get(index, ("", ""))[0],
        )
        for index, value in enumerate(of.values)
    )
    return SeriesView(
        title=f"{of.series}: {of.metric}",
        state=words.state(of),
        unit=scale.unit,
        ticks=tuple(_ticks(low, high, scale=scale, y=y)),
        levels=tuple(levels) if of.noise is not None or of.constant else (),
        steps=tuple(x(change.index - 0.5) for change in of.changes),
        points=points,
        happenings=tuple(_happenings(of)),
        doubts=of.doubts,
        left_out=of.left_out,
    )


def _range(of: SeriesResult) -> tuple[float, float]:
    low, high = min(of.values), max(of.values)
    room = (high - low) * ROOM or abs(high) * ROOM or 1.0
    return low - room, high + room


def _ticks(low: float, high: float, *, scale: numbers.Scale, y: Callable[[float], float]) -> Iterator[Tick]:
    """Round numbers of the printed unit inside the range."""
    rough = (high - low) / scale.divisor / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in STEPS if power * each >= rough)
    decimals = max(0, -math.floor(math.log10(step)) + (step / power == 2.5))  # noqa: PLR2004 - the one of `STEPS`
    for number in range(math.ceil(low / scale.divisor / step), math.floor(high / scale.divisor / step) + 1):
        yield Tick(y(number * step * scale.divisor), f"{number * step:,.{decimals}f}")


def _error(of: SeriesResult, index: int, scale: numbers.Scale) -> str:
    error = of.standard_errors[index]
    if error is None:
        return numbers.ABSENT
    return f"{100 * error:.2g} %" if of.relative else scale.value(error)


def _marks(of: SeriesResult) -> dict[int, tuple[str, str]]:
    """Kind and words by point."""
    marks = {each.index: ("spike", "spike") for each in of.spikes}
    marks |= {each.index: ("change", f"change, {each.direction}{_aside(each)}") for each in of.changes}
    if of.alarm is not None and of.alarm.raised:
        marks[len(of.values) - 1] = ("alarm", f"alarm, {of.alarm.direction}{_aside(of.alarm)}")
    return marks


def _aside(of: LevelChange | Alarm) -> str:
    return ", acknowledged" if of.known else ""


def _happenings(of: SeriesResult) -> Iterator[Happening]:
    """The newest first."""
    if of.alarm is not None and of.alarm.raised:
        departure = departure_in_words(of)
        said = f"left its constant: {departure}" if departure else words.alarm_in_words(of, of.alarm)
        yield _happening(
            of, of.alarm, kind="alarm", sentence=said, details=("One point may be a change or a spike: run again.",)
        )
    for change in reversed(of.changes):
        details = [
            words.levels_in_words(of, change),
            *(
                f"differs: {name}: {before or 'nothing'} → {after or 'nothing'}"
                for name, (before, after) in list(change.differing.items())[: words.FACTS_SHOWN]
            ),
        ]
        if len(change.differing) > words.FACTS_SHOWN:
            details.append(f"and {len(change.differing) - words.FACTS_SHOWN} more facts differ")
        yield _happening(of, change, kind="change", sentence=words.change_in_words(of, change), details=tuple(details))


def _happening(
    of: SeriesResult, what: LevelChange | Alarm, *, kind: str, sentence: str, details: tuple[str, ...]
) -> Happening:
    entry = {"run": what.run, "series": of.series, "metric": of.metric, "because": "…"}
    return Happening(
        kind=kind,
        run=what.run,
        sentence=sentence,
        details=details,
        known="" if what.known is None else what.known.because,
        entry=f"- {json.dumps(entry, ensure_ascii=False)}",
    )
