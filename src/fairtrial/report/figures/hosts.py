"""The figure of one comparison by host: each host's ratio, the one of hosts like these, and what a further host has.

The same of layouts, where programs were linked in several orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import altair as alt

from fairtrial.analyse.hosts.models import OverHosts
from fairtrial.analyse.models import CellResult
from fairtrial.report import numbers
from fairtrial.report.figures.thinning import Row as Mark
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.figures.verdicts import RATIO_FORMAT, Drawing, Figure, arm_colour, margin_band
from fairtrial.report.hosts import shown
from fairtrial.report.scene import Scene
from fairtrial.report.tables import TWO_ARMS, MetricTable, band, band_note

ROW_HEIGHT: Final = 24
LIKE_THESE: Final = "hosts like these"
FURTHER: Final = "a further host"
ONE, MANY = "circle", "diamond"


def by_host(scene: Scene, cell: CellResult, table: MetricTable) -> Iterator[Figure]:
    """One for each arm of the cell whose blocks ran on several hosts, and one where they ran several layouts."""
    for row in table.rows:
        comparison, arm = row.comparison, row.arm.arm
        for noun, over in (("host", comparison.over_hosts), ("layout", comparison.over_layouts)):
            if row.cell == cell.cell and over is not None and over.ratio is not None:
                rows = [{**mark, "host": str(mark["host"]).replace("host", noun)} for mark in _rows(over, arm=arm)]
                yield _figure(scene, table, rows, arm=arm, noun=noun)


def _figure(scene: Scene, table: MetricTable, rows: Rows, *, arm: str, noun: str) -> Figure:
    analysis = scene.analysis
    y = alt.Y("host:N", sort=[str(each["host"]) for each in rows], title=None, axis=alt.Axis(labelLimit=260))
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", nice=False, padding=24),
        title=f"ratio to {analysis.levels[0]}",
        axis=alt.Axis(tickCount=6, labelBound=True, labelOverlap=True, format="~g"),
    )
    tooltip = [
        alt.Tooltip("host:N"),
        alt.Tooltip("blocks:N"),
        *(alt.Tooltip(f"{name}:Q", format=RATIO_FORMAT) for name in ("ratio", "low", "high")),
    ]
    drawing = Drawing()
    base = alt.Chart(drawing.rows(rows)).encode(y=y, tooltip=tooltip)
    colour = arm_colour(scene.colours, legend=False)
    shape = alt.Shape("shape:N", scale=alt.Scale(domain=[ONE, MANY], range=[ONE, MANY]), legend=None)
    chart = alt.layer(
        *margin_band(drawing, band(analysis, table)),
        alt.Chart(drawing.rows([{"one": 1}])).mark_rule(strokeDash=[3, 3], color="#888888").encode(x=alt.X("one:Q")),
        base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colour),
        base.mark_point(size=80, filled=True, opacity=1).encode(x=x, color=colour, shape=shape),
    )
    name = f"{noun}s-{table.definition.name}"
    several = len(analysis.levels) > TWO_ARMS
    share = numbers.percent(analysis.confidence)
    return Figure(
        name=f"{name}-{arm}" if several else name,
        title=f"{table.definition.label} by {noun}" + (f", {arm}" if several else ""),
        note=f"Circles: each {noun}'s ratio with its {share} interval, by the spread of blocks within all {noun}s."
        f" Diamond: {noun}s like these. Last: what a further {noun} would measure with the median of these {noun}s'"
        f" blocks; {band_note(analysis, table)}.",
        spec=drawing.finished(chart, height=ROW_HEIGHT * len(rows) + 20),
    )


def _rows(over: OverHosts, *, arm: str) -> Rows:
    rows = [
        _mark(each.host, str(each.blocks), (each.ratio, each.low, each.high), arm=arm, shape=ONE)
        for each in shown(over)
    ]
    pooled = _mark(LIKE_THESE, "", (over.ratio, over.low, over.high), arm=arm, shape=MANY)
    if over.prediction_blocks is None:
        return [*rows, pooled]
    ends = (None, over.prediction_low, over.prediction_high)
    return [*rows, pooled, _mark(FURTHER, str(over.prediction_blocks), ends, arm=arm, shape=MANY)]


def _mark(host: str, blocks: str, of: tuple[float | None, float | None, float | None], *, arm: str, shape: str) -> Mark:
    ratio, low, high = (rounded(each) for each in of)
    return {"host": host, "blocks": blocks, "ratio": ratio, "low": low, "high": high, "arm": arm, "shape": shape}
