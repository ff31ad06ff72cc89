"""A tuning's figure: every block of the search, the best so far, the fresh blocks, and what the confirmation says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import altair as alt

from fairtrial.report import numbers
from fairtrial.report.figures.svg import SvgWriter
from fairtrial.report.figures.thinning import Row, Rows
from fairtrial.report.figures.verdicts import Drawing, Figure
from fairtrial.tune.result import Confirmed, MeasuredAgain, TuneResult
from fairtrial.tune.searching import arm

NAME: Final = "tune"
HEIGHT: Final = 320
MOST_TICKS: Final = 12
SEARCH, BREACH, BEST, AGAIN, CLAIM = "one block", "infeasible", "best so far", "again", "confirmation"
COLOURS: Final = {SEARCH: "#7a8b99", BREACH: "#d8b4a0", BEST: "#c45a00", AGAIN: "#4c78a8", CLAIM: "#2a7a3f"}
RULE: Final = "#888888"


def figure(result: TuneResult) -> Figure:
    """The figure, as a Vega-Lite specification."""
    drawing = Drawing()
    last = len(result.proposals)
    tried = [each for each in result.proposals if each.ratio is not None]
    points: Rows = [
        {"x": each.number, "ratio": each.ratio, "what": SEARCH if each.state == "measured" else BREACH, "label": ""}
        for each in tried
    ]
    points += [_point(last + 1 + index, each, AGAIN) for index, each in enumerate(result.again)]
    claim = result.confirmed
    end = last + len(result.again) + 2
    bars: Rows = []
    if claim is not None and claim.ratio is not None:
        points.append(_point(end, claim, CLAIM))
        if claim.low is not None and claim.high is not None:
            bars = [{"x": end, "low": claim.low, "high": claim.high, "what": CLAIM}]
    ticks = list(range(1, last + 1, 1 + last // MOST_TICKS))
    x = alt.X(
        "x:Q",
        title="proposal",
        axis=alt.Axis(values=ticks, grid=False),
        scale=alt.Scale(nice=False, domain=[0.5, end + 1]),
    )
    title = f"{result.metric.label}: ratio to the default"
    y = alt.Y("ratio:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=16), axis=alt.Axis(format="~g"))
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", title=None, symbolType="circle", symbolOpacity=1),
    )
    layers = [
        alt.Chart(drawing.rows([{"ratio": 1.0}])).mark_rule(color=RULE, strokeDash=[4, 3]).encode(y=y),
        alt.Chart(drawing.rows(_best_so_far(result)))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=colour),
        alt.Chart(drawing.rows(bars))
        .mark_rule(strokeWidth=2)
        .encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(drawing.rows(points)).mark_point(filled=True, size=60, opacity=0.9).encode(x=x, y=y, color=colour),
        alt.Chart(drawing.rows(points))
        .mark_text(align="left", dx=8, fontSize=10)
        .encode(x=x, y=y, text=alt.Text("label:N"), color=colour),
    ]
    note = "Only the confirmation is a claim; everything before it is of proposals that were chosen for being high."
    return Figure(name=NAME, title=_title(result), note=note, spec=drawing.finished(alt.layer(*layers), height=HEIGHT))


def _point(x: int, of: MeasuredAgain | Confirmed, what: str) -> Row:
    return {"x": x, "ratio": of.ratio, "what": what, "label": arm(of.number)}


def _best_so_far(result: TuneResult) -> Rows:
    better = max if result.metric.better == "higher" else min
    best: list[float] = []
    rows: Rows = []
    for each in result.proposals:
        if each.ratio is not None and each.state == "measured":
            best = [better([*best, each.ratio])]
        if best:
            rows.append({"x": each.number, "ratio": best[0], "what": BEST})
    return rows


def _title(result: TuneResult) -> str:
    claim = result.confirmed
    promised = "" if result.flattery is None else f"best block {numbers.change(result.flattery.promised)}"
    found = "nothing confirmed"
    if claim is not None:
        size = "without a ratio" if claim.ratio is None else numbers.change(claim.ratio)
        breach = " but breaches a guardrail" if claim.verdict == "faster" and not claim.is_claim else ""
        found = f"confirmation {size}, {claim.verdict}{breach}"
    return f"{result.study}: {', '.join(part for part in (promised, found) if part)}"


def write(result: TuneResult, directory: Path) -> None:
    """Draws figures/tune.svg below a directory, in place of an earlier one."""
    target = directory / "figures"
    shutil.rmtree(target, ignore_errors=True)
    with SvgWriter(target) as drawn:
        drawn.draw(figure(result))
