"""The figure of an arm's effect by condition: ratios over levels of one factor, a line for each level of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import altair as alt

from fairtrial.analyse.models import Comparison
from fairtrial.report import numbers
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.figures.verdicts import RATIO_FORMAT, Drawing, Figure
from fairtrial.report.scene import ARM_COLOURS, Scene
from fairtrial.report.tables import TWO_ARMS, MetricTable, Row, conditions

SERIES_SHOWN: Final = 12  # lines that a figure can hold


def by_condition(scene: Scene, table: MetricTable) -> Iterator[Figure]:
    """One for each arm of a primary metric whose interactions are tested."""
    tested = {(each.metric, each.arm) for each in scene.analysis.interactions if each.f is not None}
    for arm in scene.analysis.levels[1:]:
        if (table.definition.name, arm) in tested:
            rows = [row for row in table.rows if row.arm.arm == arm and row.comparison.ratio.estimate is not None]
            yield _figure(scene, table, rows, arm=arm)


def _figure(scene: Scene, table: MetricTable, rows: Sequence[Row], *, arm: str) -> Figure:
    analysis = scene.analysis
    factor, others = _axes(rows, conditions(analysis))
    series = list(dict.fromkeys(_series(row.levels, others) for row in rows))[:SERIES_SHOWN]
    marks: Rows = [
        {"level": row.levels[factor], "series": _series(row.levels, others), **_ends(row.comparison)} for row in rows
    ]
    drawing = Drawing()
    x = alt.X("level:N", sort=None, title=factor, axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("series:N", sort=series, scale=alt.Scale(paddingOuter=1))
    y = alt.Y("ratio:Q", scale=alt.Scale(type="log", nice=False, padding=16), title=f"ratio to {analysis.levels[0]}")
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=series, range=[ARM_COLOURS[at % len(ARM_COLOURS)] for at in range(len(series))]),
        legend=alt.Legend(orient="top", title=" · ".join(others)) if others else None,
    )
    base = alt.Chart(drawing.rows(marks)).encode(x=x, xOffset=offset, color=colour)
    chart = alt.layer(
        alt.Chart(drawing.rows([{"one": 1}])).mark_rule(strokeDash=[3, 3], color="#888888").encode(y=alt.Y("one:Q")),
        base.mark_line(opacity=0.5).encode(y=y),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(size=70, filled=True, opacity=1).encode(
            y=y, tooltip=[alt.Tooltip("level:N"), alt.Tooltip("series:N"), alt.Tooltip("ratio:Q", format=RATIO_FORMAT)]
        ),
    )
    several = len(analysis.levels) > TWO_ARMS
    name = f"conditions-{table.definition.name}"
    return Figure(
        name=f"{name}-{arm}" if several else name,
        title=f"{table.definition.label} by condition" + (f", {arm}" if several else ""),
        note=f"Each cell's ratio with its {numbers.percent(analysis.confidence)} interval. Whether lines that are not"
        " parallel show a difference is for the tests to say: intervals that overlap decide nothing.",
        spec=drawing.finished(chart),
    )


def _axes(rows: Sequence[Row], factors: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The factor with most levels along the axis, the later of equals; the others make lines."""
    along = max(reversed(factors), key=lambda factor: len({row.levels[factor] for row in rows}))
    return along, tuple(factor for factor in factors if factor != along)


def _series(levels: Mapping[str, str], others: Sequence[str]) -> str:
    return " · ".join(levels[factor] for factor in others)


def _ends(comparison: Comparison) -> dict[str, float | None]:
    ratio = comparison.ratio
    return {"ratio": rounded(ratio.estimate), "low": rounded(ratio.low), "high": rounded(ratio.high)}
