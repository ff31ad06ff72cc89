"""The figure of curves over a numeric factor: every trial, the curve of each arm with its band, peaks and crossings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import altair as alt

from fairtrial.analyse.designs.curve_models import Curves
from fairtrial.report import numbers
from fairtrial.report.designs.curves import scale, title
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.figures.verdicts import Drawing, Figure, arm_colour, arm_dash
from fairtrial.report.scene import Scene

HEIGHT: Final = 320
BAND_OPACITY: Final = 0.18


def figures(scene: Scene) -> Iterator[Figure]:
    """One for each metric and combination of conditions that has curves."""
    fitted = [curve for curve in scene.analysis.curves if curve.arms]
    for index, curve in enumerate(fitted, start=1):
        several = len(fitted) > 1
        yield _figure(scene, curve, name=f"curve-{curve.metric}" + (f"-{index}" if several else ""))


def _figure(scene: Scene, curve: Curves, *, name: str) -> Figure:
    of = scale(scene.analysis, curve)
    drawing = Drawing()
    ticks = list(curve.values)
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", nice=False, padding=10),
        title=curve.over,
        axis=alt.Axis(values=ticks, format="~s", labelOverlap=True),
    )
    y = alt.Y(
        "metric:Q", scale=alt.Scale(type="log", nice=False, padding=10), title=of.unit, axis=alt.Axis(format="~s")
    )
    line: Rows = [
        {
            "arm": arm.arm,
            "value": rounded(point.value),
            "metric": rounded(point.estimate / of.divisor),
            "low": None if point.low is None else rounded(point.low / of.divisor),
            "high": None if point.high is None else rounded(point.high / of.divisor),
        }
        for arm in curve.arms
        for point in arm.line
    ]
    base = alt.Chart(drawing.rows(line)).encode(x=x, color=arm_colour(scene.colours))
    band = base.transform_filter("datum.low !== null").mark_area(opacity=BAND_OPACITY)
    banded = any(point["low"] is not None for point in line)
    tooltip = [alt.Tooltip("arm:N"), alt.Tooltip("value:Q"), alt.Tooltip("metric:Q"), alt.Tooltip("block:Q")]
    trials = alt.Chart(drawing.rows(_trials(scene, curve, of.divisor))).mark_circle(size=28, opacity=0.55)
    marks = _marks(curve, of.divisor)
    chart = alt.layer(
        *([band.encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))] if banded else []),
        base.mark_line(strokeWidth=2).encode(y=y, **arm_dash(scene.colours)),
        trials.encode(x=x, y=y, color=arm_colour(scene.colours), tooltip=tooltip),
        *_marked(drawing, marks, axes=(x, y), scene=scene),
    )
    share = numbers.percent(curve.confidence)
    peaks = " Diamonds mark peaks, bars their intervals." if marks else ""
    return Figure(
        name=name,
        title=title(scene.analysis, curve),
        note=f"Dots are trials; lines are the fitted curves, bands their pointwise {share} intervals.{peaks}",
        spec=drawing.finished(chart, height=HEIGHT),
    )


def _trials(scene: Scene, curve: Curves, divisor: float) -> Rows:
    cells = {cell.cell: cell for cell in scene.analysis.cells}
    return [
        {"arm": arm.arm, "value": rounded(value), "metric": rounded(measured / divisor), "block": block}
        for value, name in zip(curve.values, curve.cells, strict=True)
        for arm in cells[name].summaries.get(curve.metric, ())
        for block, measured in zip(arm.blocks, arm.values, strict=True)
    ]


def _marks(curve: Curves, divisor: float) -> Rows:
    """Peaks that are estimated within the values measured; intervals are drawn within them."""
    first, last = curve.values[0], curve.values[-1]
    return [
        {
            "arm": arm.arm,
            "value": rounded(peak.at.estimate),
            "metric": rounded((peak.throughput.estimate or 0) / divisor),
            "low": rounded(max(first, peak.at.low or first)),
            "high": rounded(min(last, peak.at.high or last)),
        }
        for arm in curve.arms
        if (peak := arm.peak) is not None and peak.throughput is not None
    ]


def _marked(drawing: Drawing, marks: Rows, *, axes: tuple[alt.X, alt.Y], scene: Scene) -> list[alt.Chart]:
    if not marks:
        return []
    x, y = axes
    base = alt.Chart(drawing.rows(marks)).encode(y=y, color=arm_colour(scene.colours))
    return [
        base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        base.mark_point(size=130, filled=True, shape="diamond", opacity=1).encode(x=x),
    ]
