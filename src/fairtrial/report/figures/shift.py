"""The figure of shift curves: how much each quantile of latency differs from the baseline's, with its band."""

from __future__ import annotations

from typing import Final

import altair as alt

from fairtrial.analyse.inference.shift import SMALLEST_N
from fairtrial.analyse.models import CellResult
from fairtrial.report import numbers
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.figures.verdicts import RATIO_FORMAT, Drawing, Figure, arm_colour, arm_dash, percentiles
from fairtrial.report.scene import Scene

TICKS: Final = {1.25: "20 %", 2: "50 %", 10: "90 %", 100: "99 %", 1000: "99.9 %", 10_000: "99.99 %"}
BAND_OPACITY: Final = 0.18


def shift(scene: Scene, cell: CellResult) -> Figure | None:
    """Ratio of every quantile to the baseline's, one curve per arm."""
    own = [curve for curve in scene.curves if curve.cell == cell.cell]
    rows: Rows = [
        {
            "x": rounded(1 / (1 - point.quantile)),
            "p": f"{100 * point.quantile:.4g} %",
            "ratio": rounded(point.ratio),
            "low": rounded(point.low),
            "high": rounded(point.high),
            "arm": curve.arm,
        }
        for curve in own
        for point in curve.points
    ]
    if not rows:
        return None
    scale = alt.Scale(type="log", nice=False, padding=8)
    baseline = scene.analysis.levels[0]
    y = alt.Y("ratio:Q", scale=scale, title=f"latency, ratio to {baseline}", axis=alt.Axis(tickCount=5, format="~g"))
    drawing = Drawing()
    base = alt.Chart(drawing.rows(rows)).encode(x=percentiles(TICKS), color=arm_colour(scene.colours))
    tooltip = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("p:N", title="percentile"),
        *(_figure(name) for name in ("ratio", "low", "high")),
    ]
    area = (
        base.transform_filter("datum.low !== null")
        .mark_area(opacity=BAND_OPACITY)
        .encode(y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q"))
    )
    banded = [curve.critical is not None for curve in own]
    chart = alt.layer(
        alt.Chart(drawing.rows([{"one": 1}])).mark_rule(strokeDash=[3, 3], color="#888888").encode(y=alt.Y("one:Q")),
        *([area] if any(banded) else []),  # Vega complains of a scale over nothing
        base.mark_line(strokeWidth=2).encode(y=y, **arm_dash(scene.colours)),
        base.mark_point(size=50, opacity=0).encode(y=y, tooltip=tooltip),
    )
    band = f"The band holds for the whole curve at once, with {numbers.percent(own[0].confidence)} confidence."
    few = any(curve.n < SMALLEST_N for curve in own)
    without = f"fewer than {SMALLEST_N} blocks" if few else "all but a few blocks hardly vary, so it would be unbounded"
    note = band if all(banded) else f"No band{' for some arms' if any(banded) else ''}: {without}."
    title = f"Shift of latency against {baseline}, all types"
    return Figure(
        name="latency-shift",
        title=title,
        note=f"Ratio of each percentile of the arms' merged counts. {note}",
        spec=drawing.finished(chart),
    )


def _figure(name: str) -> alt.Tooltip:
    return alt.Tooltip(f"{name}:Q", format=RATIO_FORMAT)
