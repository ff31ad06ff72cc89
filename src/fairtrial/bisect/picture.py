"""A bisection's figure: how probable it is that the change lies right before each version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import altair as alt

from fairtrial.bisect.models import BisectResult
from fairtrial.bisect.wording import headline
from fairtrial.report.figures.svg import SvgWriter
from fairtrial.report.figures.thinning import Rows
from fairtrial.report.figures.verdicts import Drawing, Figure

NAME: Final = "posterior"
HEIGHT: Final = 260
MOST_LABELS: Final = 16  # of versions; of more, every second, third, …
CHANGED, MEASURED, LEFT_OUT = "change lies here", "measured, by blocks", "left out"
COLOURS: Final = {CHANGED: "#c45a00", MEASURED: "#4c78a8", LEFT_OUT: "#8a8f8e"}
WIDEST_BAR: Final = 24


def figure(result: BisectResult) -> Figure:
    """The figure, as a Vega-Lite specification."""
    drawing = Drawing()
    names = [version.name for version in result.versions]
    every = 1 + (len(names) - 1) // MOST_LABELS
    bars: Rows = []
    marks: Rows = []
    for number, version in enumerate(result.versions):
        bars.append({"x": number, "share": version.probability or 0.0, "what": CHANGED})
        if version.gap:
            marks.append({"x": number, "share": -0.06, "what": LEFT_OUT, "blocks": 1})
        elif version.blocks:
            marks.append({"x": number, "share": -0.06, "what": MEASURED, "blocks": version.blocks})
    labels = json.dumps({number: names[number] for number in range(0, len(names), every)})
    x = alt.X(
        "x:Q",
        title=result.bisection.over,
        scale=alt.Scale(nice=False, domain=[-0.5, len(names) - 0.5]),
        axis=alt.Axis(
            values=list(range(0, len(names), every)), labelExpr=f"({labels})[datum.value]", grid=False, labelAngle=-40
        ),
    )
    y = alt.Y(
        "share:Q",
        title="probability that the change lies here",
        scale=alt.Scale(domain=[-0.1, 1.0], nice=False),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1.0]),
    )
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", title=None, symbolType="circle"),
    )
    wide = max(2, min(WIDEST_BAR, 500 // len(names)))
    layers = [
        alt.Chart(drawing.rows(bars)).mark_bar(size=wide).encode(x=x, y=y, color=colour),
        alt.Chart(drawing.rows(marks))
        .mark_point(filled=True, opacity=0.9)
        .encode(x=x, y=y, color=colour, size=alt.Size("blocks:Q", legend=None, scale=alt.Scale(range=[20, 220]))),
    ]
    note = "Only the confirmation is a claim; the search proposes."
    spec = drawing.finished(alt.layer(*layers), height=HEIGHT)
    return Figure(name=NAME, title=headline(result), note=note, spec=spec)


def write(result: BisectResult, directory: Path) -> Path | None:
    """Draws figures/posterior.svg below a directory, in place of an earlier one; None if no version was searched."""
    target = directory / "figures"
    shutil.rmtree(target, ignore_errors=True)
    if all(version.probability is None for version in result.versions):
        return None
    with SvgWriter(target) as drawn:
        drawn.draw(figure(result))
    return target / f"{NAME}.svg"
