"""A tuning's figure: every block of the search, the best so far, the fresh blocks, and what the confirmation says."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import altair as alt

from fairtrial.report import numbers
from fairtrial.report.figures.svg import SvgWriter
from fairtrial.report.figures.thinning import Rows
from fairtrial.report.figures.verdicts import Drawing, Figure
from fairtrial.tune.result import Confirmed, MeasuredAgain, TuneResult
from fairtrial.tune.searching import arm

NAME: Final = "tune"
HEIGHT: Final = 300
DEFAULT, SEARCH, BEST, AGAIN, CLAIM = "#888888", "#7a8b99", "#c45a00", "#4c78a8", "#2a7a3f"


def figure(result: TuneResult) -> Figure:
    """The figure, as a Vega-Lite specification."""
    drawing = Drawing()
    higher = result.metric.better == "higher"
    points: Rows = []
    steps: Rows = []
    best: float | None = None
    for each in result.proposals:
        if each.ratio is None:
            continue
        points.append({"x": each.number, "ratio": each.ratio, "what": each.state})
        if each.state == "measured" and (best is None or (each.ratio > best) == higher):
            best = each.ratio
        if best is not None:
            steps.append({"x": each.number, "ratio": best})
    last = len(result.proposals)
    x = alt.X("x:Q", title="proposal", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False, padding=12))
    y = alt.Y("ratio:Q", title=f"{result.metric.label}: ratio to the default", scale=alt.Scale(zero=False, padding=12))
    searched = alt.Chart(drawing.rows(points)).mark_point(filled=True, size=45, color=SEARCH, opacity=0.75)
    so_far = alt.Chart(drawing.rows(steps)).mark_line(interpolate="step-after", color=BEST, strokeWidth=2)
    layers = [
        _rule(drawing, 1.0, DEFAULT),
        searched.encode(x=x, y=y),
        so_far.encode(x=x, y=y),
        *_intervals(drawing, [(last + 1 + index, each) for index, each in enumerate(result.again)], AGAIN),
    ]
    if (claim := result.confirmed) is not None:
        at = last + len(result.again) + 2
        layers += _intervals(drawing, [(at, claim)], CLAIM)
    note = (
        "Grey: one block of each proposal. Orange: the best so far. Blue: the best few in fresh blocks. Green: the "
        "confirmation, which alone is a claim."
    )
    chart = alt.layer(*layers)
    return Figure(name=NAME, title=_title(result), note=note, spec=drawing.finished(chart, height=HEIGHT))


def _title(result: TuneResult) -> str:
    claim = result.confirmed
    promised = "" if result.flattery is None else f"best block {numbers.change(result.flattery.promised)}"
    found = "nothing confirmed" if claim is None else f"confirmed {numbers.change(claim.ratio or 1.0)}, {claim.verdict}"
    return f"{result.study}: {', '.join(part for part in (promised, found) if part)}"


def _rule(drawing: Drawing, at: float, colour: str) -> alt.Chart:
    rule = alt.Chart(drawing.rows([{"ratio": at}])).mark_rule(color=colour, strokeDash=[4, 3])
    chart: alt.Chart = rule.encode(y=alt.Y("ratio:Q"))
    return chart


def _intervals(
    drawing: Drawing, found: Sequence[tuple[int, MeasuredAgain | Confirmed]], colour: str
) -> list[alt.Chart]:
    rows: Rows = [
        {"x": x, "ratio": each.ratio, "low": each.low, "high": each.high, "label": arm(each.number)}
        for x, each in found
        if each.ratio is not None
    ]
    x = alt.X("x:Q")
    bars = alt.Chart(drawing.rows([row for row in rows if row["low"] is not None]))
    return [
        bars.mark_rule(color=colour, strokeWidth=2).encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        alt.Chart(drawing.rows(rows)).mark_point(filled=True, size=80, color=colour).encode(x=x, y=alt.Y("ratio:Q")),
        alt.Chart(drawing.rows(rows))
        .mark_text(align="left", dx=7, fontSize=10, color=colour)
        .encode(x=x, y=alt.Y("ratio:Q"), text=alt.Text("label:N")),
    ]


def write(result: TuneResult, directory: Path) -> None:
    """Draws figures/tune.svg below a directory, in place of an earlier one."""
    target = directory / "figures"
    shutil.rmtree(target, ignore_errors=True)
    with SvgWriter(target) as drawn:
        drawn.draw(figure(result))
