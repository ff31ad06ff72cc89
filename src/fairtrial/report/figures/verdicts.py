"""Figures of verdicts and trials as Vega-Lite specifications, made with Altair; one function per kind of figure.

A figure takes its colours for text and lines from the page (light or dark); only arms have colours of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from fairtrial.analyse.models import CellResult, Summary
from fairtrial.report import numbers
from fairtrial.report.figures.thinning import Row as Mark
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.numbers import Scale
from fairtrial.report.scene import ContrastTrial, Scene
from fairtrial.report.tables import (
    TWO_ARMS,
    MetricTable,
    Row,
    band,
    band_note,
    cell_label,
    decided,
    estimated,
    tested,
    verdict,
)

HEIGHT: Final = 240
FOREST_ROW_HEIGHT: Final = 34
BAND_OPACITY: Final = 0.13
LEGEND_WIDTH: Final = 640  # of a figure in a file, in pixels; on a page it has as much but on a phone
LABEL_LIMIT, CHARACTER, SYMBOL = 160, 7, 28  # Vega cuts a longer label; beside it stand its symbol and a gap
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])  # of arms that share a colour
SHAPES: Final = ("circle", "square", "triangle-up", "triangle-down")  # crosses and diamonds say something else
RATIO_FORMAT: Final = ".5g"  # the digits that rows have: decimals would show nothing of a small ratio

Spec = dict[str, Any]  # Vega-Lite, as JSON


@dataclass(frozen=True)
class Figure:
    """A drawn figure.

    Attributes:
        name: stable, of letters, digits and dashes: its file's name.
        title: says what is seen.
        note: how to read it; may be empty.
        spec: Vega-Lite, width of its container.
    """

    name: str
    title: str
    note: str
    spec: Spec


@dataclass(frozen=True)
class CellFigures:
    """What is drawn of one cell."""

    label: str
    figures: tuple[Figure, ...]
    telemetry: tuple[Figure, ...]


class Drawing:
    """One figure's rows by name, and its specification around them.

    Charts refer to rows by name: Altair copies and checks inline ones, value by value, which takes a minute for the
    figures of a long run. That specifications are valid is for tests to say, not for every report. Channels are
    objects (`alt.X("ratio:Q")`): for each that is a string Altair writes all of its schema as JSON.
    """

    def __init__(self) -> None:
        self._datasets: dict[str, Rows] = {}

    def rows(self, rows: Rows) -> alt.NamedData:
        """The rows, for a chart of this figure."""
        name = f"rows{len(self._datasets)}"
        self._datasets[name] = rows
        return alt.NamedData(name=name)

    def finished(self, chart: alt.Chart | alt.LayerChart | alt.FacetChart, *, height: int = HEIGHT) -> Spec:
        """The specification of a chart as wide as its container."""
        spec: Spec = chart.to_dict(validate=False)
        size = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
        return {**spec, **size, "datasets": self._datasets}


def arm_colour(colours: Mapping[str, str], *, legend: bool = True) -> alt.Color:
    """The colour of arms, the same in every figure; layers of a figure must agree on its legend."""
    return alt.Color(
        "arm:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=_arm_legend(colours) if legend else None,
        sort=list(colours),
    )


def _arm_legend(colours: Mapping[str, str]) -> alt.Legend:
    """Circles, or what tells apart arms of one colour; in columns where one line would be cut off."""
    shared = bool(_rounds(colours))
    widths = [min(LABEL_LIMIT, CHARACTER * len(arm)) + SYMBOL for arm in colours]
    return alt.Legend(
        orient="top",
        title=None,
        columns=max(1, LEGEND_WIDTH // max(widths)) if sum(widths) > LEGEND_WIDTH else alt.Undefined,
        symbolType=alt.Undefined if shared else "circle",
        symbolOpacity=1,
        symbolStrokeWidth=3,
        symbolSize=150 if shared else 50,  # long enough for a dash
    )


def arm_dash(colours: Mapping[str, str], *, legend: bool = True) -> dict[str, alt.StrokeDash]:
    """Lines of arms that share a colour, as an encoding; nothing where every arm has a colour of its own."""
    if not (rounds := _rounds(colours)):
        return {}
    scale = alt.Scale(domain=list(colours), range=[DASHES[each % len(DASHES)] for each in rounds])
    shown = _arm_legend(colours) if legend else None
    return {"strokeDash": alt.StrokeDash("arm:N", scale=scale, legend=shown, sort=list(colours))}


def arm_shape(colours: Mapping[str, str]) -> dict[str, alt.Shape]:
    """The same of points."""
    if not (rounds := _rounds(colours)):
        return {}
    scale = alt.Scale(domain=list(colours), range=[SHAPES[each % len(SHAPES)] for each in rounds])
    return {"shape": alt.Shape("arm:N", scale=scale, legend=_arm_legend(colours), sort=list(colours))}


def _rounds(colours: Mapping[str, str]) -> list[int]:
    """How many arms before it have an arm's colour; nothing where none has."""
    all_of_them = list(colours.values())
    rounds = [all_of_them[:index].count(colour) for index, colour in enumerate(all_of_them)]
    return rounds if any(rounds) else []


def percentiles(ticks: Mapping[float, str]) -> alt.X:
    """The axis of a percentile curve over 1 / (1 - q), with these labels."""
    labels = "{" + ", ".join(f"'{tick}': '{label}'" for tick, label in ticks.items()) + "}"
    axis = alt.Axis(values=list(ticks), labelExpr=f"({labels})[datum.value]", grid=True)
    return alt.X("x:Q", scale=alt.Scale(type="log", nice=False), title="percentile", axis=axis)


def forest(scene: Scene, table: MetricTable) -> Figure:
    """Ratios with intervals over all cells, beside the margin of equivalence or of the guardrail."""
    analysis = scene.analysis
    compared = [row for row in table.rows if (rounded(row.comparison.ratio.estimate) or 0) > 0]
    rows = [_ratio(scene, table, row) for row in compared]
    y = alt.Y(
        "label:N", sort=[_label(scene, row) for row in compared], title=None, axis=alt.Axis(labelLimit=260, ticks=False)
    )
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", nice=False, padding=24),
        title=f"ratio to {analysis.levels[0]}",
        axis=alt.Axis(tickCount=6, labelBound=True, labelOverlap=True, format="~g"),
    )
    tooltip = [
        alt.Tooltip("label:N", title="cell"),
        alt.Tooltip("ratio:Q", format=RATIO_FORMAT),
        alt.Tooltip("low:Q", format=RATIO_FORMAT),
        alt.Tooltip("high:Q", format=RATIO_FORMAT),
        alt.Tooltip("confidence:N", title="interval"),
        alt.Tooltip("p:N"),
        alt.Tooltip("p_adjusted:N", title="adjusted p"),
        alt.Tooltip("verdict:N"),
    ]
    drawing = Drawing()
    base = alt.Chart(drawing.rows(rows)).encode(y=y, tooltip=tooltip)
    colour = arm_colour(scene.colours, legend=False)
    chart = alt.layer(
        *margin_band(drawing, band(analysis, table)),
        alt.Chart(drawing.rows([{"one": 1}])).mark_rule(strokeDash=[3, 3], color="#888888").encode(x=alt.X("one:Q")),
        base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colour),
        base.mark_point(size=90, filled=True, opacity=1).encode(x=x, color=colour),
        base.mark_text(dy=-11, fontSize=11).encode(x=x, text=alt.Text("printed:N")),
    )
    share = numbers.percent(analysis.confidence)
    others = {row["confidence"] for row in rows} - {share}
    aside = "".join(f" ({level} where equivalence is claimed)" for level in others)
    return Figure(
        name=f"ratio-{table.definition.name}",
        title=f"{table.definition.label} ({table.definition.better} is better)",
        note=f"Point and {share} interval{aside}; {band_note(analysis, table)}.",
        spec=drawing.finished(chart, height=FOREST_ROW_HEIGHT * max(1, len(rows)) + 10),
    )


def margin_band(drawing: Drawing, within: tuple[float, float] | None) -> list[alt.Chart]:
    """The grey band between two ratios as a layer; none without them."""
    if within is None:
        return []
    rows = drawing.rows([{"low": rounded(within[0]), "high": within[1]}])
    chart = alt.Chart(rows).mark_rect(opacity=BAND_OPACITY, color="#888888")
    return [chart.encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))]


def _ratio(scene: Scene, table: MetricTable, row: Row) -> Mark:
    compared = row.comparison
    interval, confidence = decided(compared)
    p, adjusted = tested(compared)
    return {
        "label": _label(scene, row),
        "arm": row.arm.arm,
        "ratio": rounded(compared.ratio.estimate),
        "low": rounded(interval.low),
        "high": rounded(interval.high),
        "confidence": numbers.percent(confidence),
        "verdict": verdict(compared, table.definition, margin=scene.analysis.margin),
        "p": p,
        "p_adjusted": adjusted,
        "printed": estimated(compared),
    }


def _label(scene: Scene, row: Row) -> str:
    return cell_label(row.levels) + (f" · {row.arm.arm}" if len(scene.analysis.levels) > TWO_ARMS else "")


def trials(scene: Scene, cell: CellResult, table: MetricTable) -> Figure | None:
    """Every trial as a dot, in the order they were run, and each arm's mean with its interval at the right."""
    name = table.definition.name
    shown = [placed for placed in scene.of(cell, used_only=False) if name in placed.trial.scalars]
    if not shown:
        return None
    dots = [_dot(placed, name, table.scale) for placed in shown]
    orders = sorted({placed.slot for placed in shown})
    first, last = orders[0], orders[-1]
    step = max(1.0, (last - first) / 14)
    arms = [(last + step * each, arm) for each, arm in enumerate(cell.summaries.get(name, ()), start=1) if arm.n]
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, nice=True, padding=8), title=table.scale.unit)
    x = alt.X(
        "order:Q",
        title="order of the trials in the run → means",
        scale=alt.Scale(domain=[first - 0.7, arms[-1][0] + 0.7 if arms else last + 1], nice=False),
        axis=alt.Axis(
            grid=False,
            values=orders[:: max(1, len(dots) // 12)],
            format="d",
            labelOverlap="greedy",
        ),
    )
    drawing = Drawing()
    colour = arm_colour(scene.colours)
    tooltip = [
        alt.Tooltip("trial:N"),
        alt.Tooltip("arm:N"),
        alt.Tooltip("block:Q"),
        alt.Tooltip("value:Q", title=table.scale.unit, format=","),
        alt.Tooltip("fate:N"),
    ]
    layers: list[alt.Chart] = []
    if crosses := [dot for dot in dots if not dot["used"]]:  # a layer without rows makes Vega warn of its extent
        lost = alt.Chart(drawing.rows(crosses)).mark_point(size=70, shape="cross", strokeWidth=1.5)
        layers.append(lost.encode(x=x, y=y, color=colour, tooltip=tooltip))
    if circles := [dot for dot in dots if dot["used"]]:
        counted = alt.Chart(drawing.rows(circles)).mark_point(filled=True, shape="circle", size=70, opacity=0.9)
        layers.append(counted.encode(x=x, y=y, color=colour, tooltip=tooltip, **arm_shape(scene.colours)))
    summed = drawing.rows([_mean(arm, table.scale, order=order) for order, arm in arms])
    summaries = alt.Chart(summed).encode(
        x=x, tooltip=[alt.Tooltip(field) for field in ("arm:N", "mean:N", "interval:N", "n:Q")]
    )
    chart = alt.layer(
        alt.Chart(summed).mark_rect(opacity=BAND_OPACITY).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour),
        *layers,
        summaries.mark_rule(strokeWidth=3).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour),
        summaries.mark_point(size=110, filled=True, shape="diamond", opacity=1).encode(
            y=alt.Y("value:Q"), color=colour
        ),
    )
    only_void = scene.is_of_arm and not scene.analysis.counts.late
    unused = "are trials of voided blocks" if only_void else "those that estimates leave out"
    return Figure(
        name=f"trials-{name}",
        title=f"{table.definition.label}, every trial",
        note=f"Dots are trials in time order, crosses {unused}; diamonds are means, bars and bands their intervals"
        " (descriptive).",
        spec=drawing.finished(chart),
    )


def _dot(placed: ContrastTrial, metric: str, scale: Scale) -> Mark:
    return {
        "order": placed.slot,
        "value": rounded(placed.trial.scalars[metric] / scale.divisor),
        "arm": placed.arm,
        "trial": placed.trial.trial.id,
        "block": placed.trial.trial.block,
        "fate": placed.fate,
        "used": placed.used,
    }


def _mean(arm: Summary, scale: Scale, *, order: float) -> Mark:
    return {
        "order": order,
        "arm": arm.arm,
        "value": rounded(arm.mean / scale.divisor),
        "low": rounded(arm.low / scale.divisor) if arm.low is not None else None,
        "high": rounded(arm.high / scale.divisor) if arm.high is not None else None,
        "mean": scale.value(arm.mean),
        "interval": scale.interval(arm.low, arm.high),
        "n": arm.n,
    }
