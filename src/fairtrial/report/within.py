"""Whether trials measured steady states: one row per cell and arm, in the same words for the text and the page."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from fairtrial.analyse.models import Analysis, Steadiness
from fairtrial.report import numbers
from fairtrial.report.tables import cell_label

HEADER: Final = ("cell", "arm", "steady", "drifting", "unsteady", "drift", "settled", "lag 1", "effective n")
LEFT: Final = 2
NOTE: Final = (
    "Trials by verdict on their whole measured window, which always counts whole. Then medians over trials: drift of "
    "throughput through the window, seconds until no level differs from the last, autocorrelation of neighbouring "
    "intervals, and how many independent intervals would give the mean as precisely. Every trial's figures are in "
    "report.json."
)


def rows(analysis: Analysis) -> list[list[str]]:
    """A row per cell and arm that has judged trials."""
    found: dict[tuple[str, str], list[Steadiness]] = {}
    for each in analysis.steadiness:
        found.setdefault((each.cell, each.arm), []).append(each)
    labels = {cell.cell: cell_label(cell.levels) for cell in analysis.cells}
    return [[labels.get(cell, cell), arm, *_figures(trials)] for (cell, arm), trials in found.items()]


def _figures(trials: Sequence[Steadiness]) -> list[str]:
    verdicts = [each.verdict for each in trials]
    correlations = [each.autocorrelation for each in trials if each.autocorrelation is not None]
    return [
        *(str(verdicts.count(verdict)) for verdict in ("steady", "drifting", "unsteady")),
        numbers.change(1 + median(each.drift for each in trials)),
        f"{median(each.settled_from_s for each in trials):.0f} s",
        f"{median(correlations):.2f}" if correlations else numbers.ABSENT,
        f"{median(each.effective_n for each in trials):.0f}",
    ]
