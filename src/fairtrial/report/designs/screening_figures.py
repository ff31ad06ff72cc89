"""Figures of a screening: effects with intervals, strongest first, and the half-normal plot of their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import altair as alt
from scipy import special

from fairtrial.analyse.designs.screening_models import ScreenedMetric
from fairtrial.analyse.models import Analysis
from fairtrial.report import numbers
from fairtrial.report.figures.thinning import Row, rounded
from fairtrial.report.figures.verdicts import Drawing, Figure

STANDING: Final = "#d9622b"
OTHERS: Final = "#7f8c99"
ROW_HEIGHT: Final = 24
PADDING: Final = 70


def figures(analysis: Analysis) -> Iterator[Figure]:
    """Of every metric that has effects; nothing without a screening."""
    if analysis.screening is None:
        return
    for each in analysis.screening.metrics:
        yield effects(analysis, each)
        if analysis.roles[each.metric] == "primary":
            yield half_normal(analysis, each)


def effects(analysis: Analysis, each: ScreenedMetric) -> Figure:
    """Ratios with their interval alone (thick) and for all options together (thin)."""
    definition, drawing = analysis.metrics[each.metric], Drawing()
    rows: list[Row] = [
        {
            "label": f"{effect.option}: {effect.high} / {effect.low}",
            "ratio": rounded(effect.ratio),
            "colour": STANDING if effect.stands_out else OTHERS,
            "printed": numbers.change(effect.ratio),
            **_ends(("low", "high"), effect.interval, effect.ratio),
            **_ends(("lowest", "highest"), effect.simultaneous, effect.ratio),
        }
        for effect in each.effects
    ]
    axis = alt.Axis(labelLimit=300, ticks=False)
    y = alt.Y("label:N", sort=[str(row["label"]) for row in rows], title=None, axis=axis)
    x = alt.X("ratio:Q", scale=alt.Scale(type="log", nice=False, padding=24), title="ratio, high over low level")
    colour = alt.Color("colour:N", scale=None)
    base = alt.Chart(drawing.rows(rows)).encode(y=y, color=colour)
    chart = alt.layer(
        alt.Chart(drawing.rows([{"one": 1}])).mark_rule(strokeDash=[3, 3], color="#888888").encode(x=alt.X("one:Q")),
        base.mark_rule(strokeWidth=1).encode(x=alt.X("lowest:Q"), x2=alt.X2("highest:Q")),
        base.mark_rule(strokeWidth=3.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        base.mark_point(size=60, filled=True, opacity=1).encode(x=x),
        base.mark_text(dy=-9, fontSize=10).encode(x=x, text=alt.Text("printed:N")),
    )
    share = numbers.percent(analysis.confidence)
    return Figure(
        name=f"effects-{each.metric}",
        title=f"{definition.label} ({definition.better} is better): effect of each option, averaged over the others",
        note=f"Thick: {share} interval of one option. Thin: of all options together; it leaves out 1 where an option "
        "stands out. None of it is a claim.",
        spec=drawing.finished(chart, height=ROW_HEIGHT * len(rows) + PADDING),
    )


def _ends(names: tuple[str, str], interval: tuple[float, float] | None, ratio: float) -> Row:
    return {name: rounded(end) for name, end in zip(names, interval or (ratio, ratio), strict=True)}


def half_normal(analysis: Analysis, each: ScreenedMetric) -> Figure:
    """Sizes of effects against what the sizes of so many normal values are expected to be."""
    definition, drawing, count = analysis.metrics[each.metric], Drawing(), len(each.effects)
    rows: list[Row] = [
        {
            "expected": rounded(float(special.ndtri(0.5 + 0.5 * (count - place - 0.5) / count))),
            "size": rounded(100 * abs(effect.effect)),
            "colour": STANDING if effect.stands_out else OTHERS,
            "option": effect.option,
        }
        for place, effect in enumerate(each.effects)
    ]
    base = alt.Chart(drawing.rows(rows)).encode(
        x=alt.X("expected:Q", title="expected of so many normal values, in standard deviations"),
        y=alt.Y("size:Q", title="size of the effect, 100 × |log ratio|"),
        color=alt.Color("colour:N", scale=None),
    )
    named = rows[: min(count, 6)]
    names = alt.Chart(drawing.rows(named)).encode(
        x=alt.X("expected:Q"), y=alt.Y("size:Q"), text=alt.Text("option:N"), color=alt.Color("colour:N", scale=None)
    )
    layers = [
        base.mark_point(size=70, filled=True, opacity=1),
        names.mark_text(align="right", dx=-9, fontSize=11),
    ]
    if each.simultaneous_margin is not None:
        largest = alt.Chart(drawing.rows([{"limit": rounded(100 * each.simultaneous_margin)}]))
        layers.append(largest.mark_rule(strokeDash=[3, 3], color="#888888").encode(y=alt.Y("limit:Q")))
    return Figure(
        name=f"half-normal-{each.metric}",
        title=f"{definition.label}: half-normal plot of the effects",
        note="Options that do nothing lie on a line through the origin. Dashed: what the largest of so many such "
        f"reaches at {numbers.percent(analysis.confidence)}.",
        spec=drawing.finished(alt.layer(*layers)),
    )
