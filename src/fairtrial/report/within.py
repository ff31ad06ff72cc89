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
    "Steady, drifting and unsteady: trials by their course through the measurement window, all of which counts in any "
    "case. The other columns are medians over trials: drift of throughput through the window, seconds until the level "
    "no longer differs from the last, autocorrelation of neighbouring intervals, and the number of independent "
    "intervals that give an equally precise mean. report.json has the figures of every trial."
)


def rows(analysis: Analysis) -> list[list[str]]:
    """A row per cell and arm that has judged trials."""
    by_arm: dict[tuple[str, str], list[Steadiness]] = {}
    for each in analysis.steadiness:
        by_arm.setdefault((each.cell, each.arm), []).append(each)
    labels = {cell.cell: cell_label(cell.levels) for cell in analysis.cells}
    return [[labels.get(cell, cell), arm, *_figures(trials)] for (cell, arm), trials in by_arm.items()]


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
