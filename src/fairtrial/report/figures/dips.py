"""Dips of throughput as bands over time, the same in the chart of throughput and in those of telemetry below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import altair as alt

from fairtrial.analyse.models import CellResult
from fairtrial.metrics.series.stability import DEEP_DIP, Dip
from fairtrial.report.figures.thinning import Rows, rounded
from fairtrial.report.figures.verdicts import Drawing
from fairtrial.report.scene import Scene
from fairtrial.words import counted

MARKED: Final = 60  # per cell: more bands than that are a carpet
OPACITY: Final = 0.16


@dataclass(frozen=True)
class Dips:
    """Those of a cell's used trials: rows of the ones drawn, and how to read them."""

    shown: Rows
    note: str


def dips(scene: Scene, cell: CellResult) -> Dips:
    """The dips that cost most, in time order."""
    drops = [(each, dip) for each in scene.of(cell) for dip in scene.dips.get(each.trial.trial.id, [])]
    worst = sorted(drops, key=lambda one: _cost(one[1]), reverse=True)[:MARKED]
    shown: Rows = [
        {
            "from": rounded(dip.start_s),
            "to": rounded(dip.end_s),
            "t": each.trial.trial.id,
            "arm": each.arm,
            "lowest": f"{dip.lowest_share:.0%}",
            "recovered": rounded(dip.recovered_s),
        }
        for each, dip in sorted(worst, key=lambda one: one[1].start_s)
    ]
    if not drops:
        return Dips(shown=[], note="")
    deep = sum(dip.lowest_share < DEEP_DIP for _, dip in drops)
    which = "" if len(drops) <= MARKED else f", the {MARKED} that cost most"
    note = (
        f" Vertical bands: {counted(len(drops), 'dip')} below 80 % of the rolling median, by more than counting "
        f"explains{which}, in the colour of the trial's arm; {deep} below 50 %. Telemetry charts have the same bands."
    )
    return Dips(shown=shown, note=note)


def marked(shown: Rows, drawing: Drawing, colour: alt.Color) -> list[alt.Chart]:
    """The layer of bands; none without dips, because Vega warns of a layer without rows.

    `colour` is that of the drawing's other layers: Vega warns of legends that disagree.
    """
    if not shown:
        return []
    tooltip = [
        alt.Tooltip("t:N", title="trial"),
        alt.Tooltip("from:Q", title="dip from, s"),
        alt.Tooltip("to:Q", title="to, s"),
        alt.Tooltip("lowest:N", title="lowest, share of the median"),
        alt.Tooltip("recovered:Q", title="recovered, s"),
    ]
    bands = alt.Chart(drawing.rows(shown)).mark_rect(opacity=OPACITY)
    return [bands.encode(x=alt.X("from:Q"), x2=alt.X2("to:Q"), color=colour, tooltip=tooltip)]


def _cost(dip: Dip) -> float:
    return (1 - dip.lowest_share) * (dip.end_s - dip.start_s)
