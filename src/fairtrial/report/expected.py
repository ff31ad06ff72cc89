"""Whether cells are what their names say: a row per expectation and arm, in the same words for text and page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairtrial.analyse.models import Analysis, ExpectationResult
from fairtrial.report import numbers
from fairtrial.study.catalogue import MetricDefinition

HEADER: Final = ("cell", "metric", "expected", "arm", "mean", "n", "outcome")
LEFT: Final = 4
NOTE: Final = (
    "Means over valid trials. Only the first arm, the baseline, decides: the other arms may change the condition "
    "itself."
)


def rows(analysis: Analysis, definitions: Mapping[str, MetricDefinition]) -> list[list[str]]:
    """A row for each arm of every expectation, baseline first; means in the unit of `definitions`, by metric."""
    results = dict.fromkeys(result for cell in analysis.cells for result in cell.expectations)
    return [
        _row(result, index, mean)
        for result in results
        for index, mean in enumerate(_means(result, definitions.get(result.metric)))
    ]


def _means(result: ExpectationResult, definition: MetricDefinition | None) -> list[str]:
    if definition is None:
        return [numbers.ABSENT if each.mean is None else f"{each.mean:.6g}" for each in result.by_arm]
    scale = numbers.scale(definition.unit, [each.mean for each in result.by_arm])
    return [f"{scale.value(each.mean)} {'' if each.mean is None else scale.unit}".rstrip() for each in result.by_arm]


def _row(result: ExpectationResult, index: int, mean: str) -> list[str]:
    each = result.by_arm[index]
    if index == 0:
        outcome = "met" if result.met else "NOT MET: no verdict"
    else:
        outcome = numbers.ABSENT if each.mean is None else "inside" if each.inside else "OUTSIDE"
    return [result.cell, result.metric, result.text, each.arm, mean, str(each.n), outcome]
