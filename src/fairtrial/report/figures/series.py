"""Figures of what happened inside trials: throughput over time, latency distributions, telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import altair as alt
import numpy as np

from fairtrial.analyse.models import CellResult
from fairtrial.errors import RecordError
from fairtrial.metrics import latency
from fairtrial.metrics.latency import Distribution
from fairtrial.record.models import TrialRecord
from fairtrial.report.figures.dips import dips, marked
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.figures.verdicts import Drawing, Figure, arm_colour, arm_dash, percentiles
from fairtrial.report.scene import Scene
from fairtrial.workloads import throughput_of

TICKS: Final[Mapping[float, str]] = {
    2: "50 %",
    10: "90 %",
    100: "99 %",
    1000: "99.9 %",
    10_000: "99.99 %",
    100_000: "99.999 %",
}
STEPS_PER_DECADE: Final = 12
FAINT: Final = 0.28


def timelines(scene: Scene, cell: CellResult) -> Figure | None:
    """Throughput of every used trial over time, ramp-up included."""
    courses = [(each, scene.courses[each.trial.trial.id]) for each in scene.of(cell) if each.trial.window is not None]
    drawn: Rows = [
        {"s": rounded(second), "v": rounded(rate), "t": each.trial.trial.id, "arm": each.arm}
        for each, course in courses
        for second, rate in zip(course.seconds, course.per_s, strict=True)
    ]
    if not drawn:
        return None
    hovered = alt.selection_point(fields=["t"], on="pointerover", nearest=True, empty=False)
    drawing, colour = Drawing(), arm_colour(scene.colours)
    base = alt.Chart(drawing.rows(drawn)).encode(
        x=alt.X(
            "s:Q", title="seconds since the start of the measurement window", axis=alt.Axis(grid=False, tickCount=10)
        ),
        y=alt.Y("v:Q", title=_unit(courses[0][0].trial), scale=alt.Scale(zero=True)),
        detail=alt.Detail("t:N"),
        color=colour,
    )
    marks = dips(scene, cell)
    chart = alt.layer(
        *marked(marks.shown, drawing, colour),
        alt.Chart(drawing.rows([{"s": 0}])).mark_rule(strokeDash=[3, 3], color="#888888").encode(x=alt.X("s:Q")),
        base.mark_line(strokeWidth=1.1).encode(
            opacity=alt.condition(hovered, alt.value(1.0), alt.value(0.55)), **arm_dash(scene.colours)
        ),
        base.mark_point(size=60, opacity=0)
        .encode(
            tooltip=[
                alt.Tooltip("t:N", title="trial"),
                alt.Tooltip("arm:N"),
                alt.Tooltip("v:Q", format=",.1f"),
                alt.Tooltip("s:Q"),
            ]
        )
        .add_params(hovered),
    )
    note = "One line per trial; the dashed line is the start of the measurement window."
    if any(course.is_thinned for _, course in courses):
        note += " Long timelines are thinned; the smallest and largest value of every stretch is kept."
    note += marks.note
    return Figure(name="timeline", title="Throughput over time", note=note, spec=drawing.finished(chart))


def _unit(trial: TrialRecord) -> str:
    """What a workload's timeline counts, which has every transaction, also where its throughput is of one kind."""
    try:
        throughput = throughput_of(trial.resolved)
    except RecordError:  # of a kind that this version does not have
        throughput = None
    if throughput is None or not throughput.unit.endswith("/s"):
        return "transactions/s"
    return throughput.unit


def latencies(scene: Scene, cell: CellResult) -> Figure | None:
    """Percentile curves of all types: merged counts per arm, and every trial faintly behind."""
    curves: Rows = []
    for arm in scene.analysis.levels:
        merged_trials = []
        for placed in scene.of(cell):
            one = scene.whole_distributions.get(placed.trial.trial.id)
            if placed.arm == arm and one is not None:
                merged_trials.append(one)
                curves += _curve(one, arm=arm, trial=placed.trial.trial.id)
        curves += _curve(latency.merged(merged_trials), arm=arm, trial="")
    if not curves:
        return None
    drawing = Drawing()
    base = alt.Chart(drawing.rows(curves)).encode(
        x=percentiles(TICKS),
        y=alt.Y("ms:Q", scale=alt.Scale(type="log", nice=False), title="latency, ms", axis=alt.Axis(tickCount=5)),
        color=arm_colour(scene.colours),
        detail=alt.Detail("t:N"),
    )
    chart = alt.layer(
        base.transform_filter("datum.t !== ''").mark_line(strokeWidth=0.8, opacity=FAINT),
        base.transform_filter("datum.t === ''").mark_line(strokeWidth=2.4).encode(**arm_dash(scene.colours)),
        base.transform_filter("datum.t === ''")
        .mark_point(size=60, opacity=0)
        .encode(
            tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("p:N", title="percentile"), alt.Tooltip("ms:Q", format=",.3f")]
        ),
    )
    note = (
        "Thick: merged counts of all used trials of an arm; thin: single trials. A curve ends where fewer than"
        " one observation lies beyond."
    )
    return Figure(name="latency", title="Latency distribution, all types", note=note, spec=drawing.finished(chart))


def _curve(distribution: Distribution, *, arm: str, trial: str) -> Rows:
    """Points of a percentile curve over 1 / (1 - q), evenly spaced on a log axis, from the median on."""
    if not distribution.n:
        return []
    last = np.log10(max(distribution.n, 4))
    beyond = 10 ** np.linspace(np.log10(2), last, max(2, int(last * STEPS_PER_DECADE)))
    percents = 100 * (1 - 1 / beyond)
    values_ms = distribution.percentiles_ns(percents) / 1e6
    return [
        {"x": rounded(x), "ms": rounded(ms), "arm": arm, "t": trial, "p": f"{percent:.4g} %"}
        for x, ms, percent in zip(beyond.tolist(), values_ms.tolist(), percents.tolist(), strict=True)
    ]
