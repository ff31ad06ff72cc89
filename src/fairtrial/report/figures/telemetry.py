"""Small figures of the machine and the server during trials: each arm's mean over its trials, and their range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

import altair as alt
import numpy as np
import polars as pl

from fairtrial.analyse.models import CellResult
from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.metrics.series.timeline import NANOSECONDS_PER_SECOND
from fairtrial.metrics.telemetry.measures import MEASURES, Measure, columns_of, completed, valued
from fairtrial.metrics.telemetry.window import TIME
from fairtrial.report.figures.dips import dips, marked
from fairtrial.report.figures.thinning import Rows, rows
from fairtrial.report.figures.verdicts import Drawing, Figure, Spec, arm_colour, arm_dash
from fairtrial.report.scene import ContrastTrial, Scene

HEIGHT: Final = 120
STEPS: Final = 120  # along the time axis: more than a small figure can show


def figures(scene: Scene, cell: CellResult) -> tuple[Figure, ...]:
    """The small figures of a cell; a measure that is zero throughout is left out."""
    below = dips(scene, cell).shown
    drawn = []
    for source in dict.fromkeys(each.source for each in MEASURES):
        frame = _sampled(scene, cell, source)
        for measure in MEASURES:
            if measure.source == source and measure.name in frame.columns:
                points = _points(frame, measure)
                if not points.is_empty() and points["high"].max() != 0:
                    shown = rows(points, ["second", "arm", "mean", "low", "high"])
                    drawn.append(_figure(scene, measure, shown, below=below))
    return tuple(drawn)


def _sampled(scene: Scene, cell: CellResult, source: str) -> pl.DataFrame:
    """Samples of the cell's used trials: `second`, `arm`, and by its name each measure that some trial has columns for.

    Of each file only the columns that measures read are kept: of hundreds of hours all would not fit.
    """
    alike: dict[tuple[str, ...], list[tuple[ContrastTrial, pl.DataFrame]]] = {}
    for each in scene.of(cell):
        if each.trial.window is not None:
            directory = scene.record.trial_directory(each.trial.trial.id)
            raw = telemetry_files.read(directory, source, only=partial(columns_of, source))
            if raw.height:
                ordered = raw if raw[TIME].is_sorted() else raw.sort(TIME)
                alike.setdefault(tuple(raw.columns), []).append((each, ordered))
    stacked = [completed(_stacked(frames), source) for frames in alike.values()]
    known = {name for frame in stacked for name in frame.columns}
    measures = [each for each in MEASURES if each.source == source and known.intersection(each.needs)]
    return pl.concat([valued(frame, measures) for frame in stacked] or [pl.DataFrame()])


def _stacked(frames: Sequence[tuple[ContrastTrial, pl.DataFrame]]) -> pl.DataFrame:
    """Files of the same columns below each other, with `second`, `arm` and `elapsed_s`, null in a trial's first row."""
    heights = [frame.height for _, frame in frames]
    trial = np.repeat(np.arange(len(frames)), heights)
    starts_ns = np.array([each.trial.window.start_ns for each, _ in frames if each.trial.window is not None])[trial]
    follows = pl.lit(pl.Series(np.diff(trial, prepend=-1) == 0))
    return pl.concat([frame for _, frame in frames], how="vertical_relaxed").select(
        pl.all().exclude(TIME),
        second=(pl.col(TIME) - pl.lit(pl.Series(starts_ns))) / NANOSECONDS_PER_SECOND,
        arm=pl.lit(pl.Series([each.arm for each, _ in frames])[trial]),
        elapsed_s=pl.when(follows).then(pl.col(TIME).diff()) / NANOSECONDS_PER_SECOND,
    )


def _points(frame: pl.DataFrame, measure: Measure) -> pl.DataFrame:
    """Per arm and step of time: mean, least and largest over the samples of its trials."""
    measured = frame.select("second", "arm", value=measure.name).filter(pl.col("value").is_finite())
    if measured.is_empty():
        return measured
    seconds = measured["second"].to_numpy()
    width = max(1.0, math.ceil((seconds.max() - seconds.min()) / STEPS))
    return (
        measured.group_by("arm", (pl.col("second") / width).floor().alias("step"))
        .agg(mean=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max())
        .with_columns(second=(pl.col("step") + 0.5) * width)
        .sort("arm", "second")
    )


def _figure(scene: Scene, measure: Measure, points: Rows, *, below: Rows) -> Figure:
    zero = measure.source not in ("memory", "process-server")  # levels move little beside their size
    spec = _spec(tuple(scene.colours.items()), zero=zero, banded=bool(below))
    datasets = dict(zip(spec["datasets"], (points, below), strict=False))
    return Figure(name=f"telemetry-{measure.name}", title=measure.title, note="", spec={**spec, "datasets": datasets})


@lru_cache(maxsize=8)
def _spec(colours: tuple[tuple[str, str], ...], *, zero: bool, banded: bool) -> Spec:
    """The same for every measure and cell; Altair takes longer for it than a figure's rows take."""
    drawing = Drawing()
    colour = arm_colour(dict(colours), legend=False)
    base = alt.Chart(drawing.rows([])).encode(
        x=alt.X("second:Q", title=None, axis=alt.Axis(grid=False, tickCount=5)), color=colour
    )
    y = alt.Y("mean:Q", title=None, axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=zero))
    tooltip = [
        alt.Tooltip("arm:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3~f") for name in ("mean", "low", "high")),
        alt.Tooltip("second:Q"),
    ]
    chart = alt.layer(
        *marked([{}] if banded else [], drawing, colour),
        base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.6).encode(y=y, **arm_dash(dict(colours), legend=False)),
        base.mark_point(size=40, opacity=0).encode(y=y, tooltip=tooltip),
    )
    return drawing.finished(chart, height=HEIGHT)
