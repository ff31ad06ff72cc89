"""Whether cells are what their names say: a row per expectation and arm, in the same words for text and page."""

from __future__ import annotations

from typing import Final

from fairtrial.analyse.models import Analysis, ArmMean, ExpectationResult
from fairtrial.report import numbers

HEADER: Final = ("cell", "metric", "expected", "arm", "mean", "n", "outcome")
LEFT: Final = 4
NOTE: Final = (
    "Means over valid trials. Only the first arm, the baseline, decides: the other arms may change the condition "
    "itself."
)


def rows(analysis: Analysis) -> list[list[str]]:
    """A row for each arm of every expectation, baseline first."""
    results = dict.fromkeys(result for cell in analysis.cells for result in cell.expectations)
    return [_row(result, index, each) for result in results for index, each in enumerate(result.by_arm)]


def _row(result: ExpectationResult, index: int, each: ArmMean) -> list[str]:
    mean = numbers.ABSENT if each.mean is None else f"{each.mean:.6g}"
    if index == 0:
        outcome = "met" if result.met else "NOT MET: no verdict"
    else:
        outcome = numbers.ABSENT if each.mean is None else "inside" if each.inside else "OUTSIDE"
    return [result.cell, result.metric, result.text, each.arm, mean, str(each.n), outcome]
