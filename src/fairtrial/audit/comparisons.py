"""The comparisons behind a publication's tables: as it made them, and with the baseline's own uncertainty.

One path for every publication; what differs is in its description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.families import holm
from fairtrial.analyse.inference.sensitivity import share
from fairtrial.analyse.inference.t_tests import TTest, Values
from fairtrial.audit.models import Levels, TableDescription
from fairtrial.audit.reading import Dataset

CONFIDENCE: Final = 0.95  # of every publication here
PERCENT: Final = 100


@dataclass(frozen=True)
class ArmComparison:
    """One level against the contrast's first level, other factors at `at`, trials taken as independent.

    Attributes:
        units: Welch on the values, second minus first.
        logs: Welch on their logarithms: the ratio with the uncertainty of both means; on the values where one is not
            positive (`all_positive`), and `ratio_percent` says nothing then.
    """

    metric: str
    contrast: str
    at: Levels
    first: str
    second: str
    values: tuple[Values, Values]
    units: TTest
    logs: TTest

    @property
    def means(self) -> tuple[float, float]:
        """Of first and second."""
        return means_of(self.values)

    @property
    def all_positive(self) -> bool:
        """Whether every value is, so that `logs` is on logarithms."""
        return all(bool((each > 0).all()) for each in self.values)

    @property
    def percent(self) -> tuple[float, float]:
        """The publications' interval."""
        return percent_of(self.units, self.means[0])

    @property
    def ratio_percent(self) -> tuple[float, float]:
        """Interval of the ratio of geometric means, as a change in percent; infinite where no number holds an end."""
        low, high = (share(end) for end in (self.logs.low, self.logs.high))
        return math.inf if low is None else PERCENT * low, math.inf if high is None else PERCENT * high

    @property
    def significant(self) -> bool:
        """By the publications' rule."""
        return is_significant(self.units)

    @property
    def pair_percent(self) -> list[float]:
        """Change in percent by trial number: trials of equal number side by side."""
        return [PERCENT * (b - a) / a for a, b in zip(*(each.tolist() for each in self.values), strict=False)]


def means_of(values: tuple[Values, Values]) -> tuple[float, float]:
    """Of first and second."""
    return float(np.mean(values[0])), float(np.mean(values[1]))


def percent_of(test: TTest, mean: float) -> tuple[float, float]:
    """The interval of a difference in percent of the first mean, as if that were known exactly; infinite if it is 0."""
    if mean == 0:
        return -math.inf, math.inf
    ends = PERCENT * test.low / mean, PERCENT * test.high / mean
    return min(ends), max(ends)


def is_significant(test: TTest) -> bool:
    """By the publications' rule: the interval of the difference leaves out 0."""
    return test.low > 0 or test.high < 0


def place(levels: Levels) -> str:
    """Levels in words: `overcommitting, 600`."""
    return ", ".join(levels.values())


def compared(dataset: Dataset, *, metric: str, contrast: str) -> list[ArmComparison]:
    """Every later level of a contrast against its first, for each combination of the other factors.

    Without those that no test can be made of: an arm has fewer than two values there, or none has any spread.
    """
    first, *others = dataset.levels(contrast)
    comparisons = [
        compared_at(dataset, metric=metric, contrast=contrast, at=at, levels=(first, second))
        for at in dataset.combinations(without=contrast)
        for second in others
    ]
    return [each for each in comparisons if each is not None]


def compared_at(
    dataset: Dataset, *, metric: str, contrast: str, at: Levels, levels: tuple[str, str]
) -> ArmComparison | None:
    """One comparison; None where no test can be made."""
    first, second = (dataset.values(metric, {**at, contrast: level}) for level in levels)
    units = t_tests.welch(first, second, confidence=CONFIDENCE)
    positive = min(first.min(initial=math.inf), second.min(initial=math.inf)) > 0
    logs = t_tests.welch(np.log(first), np.log(second), confidence=CONFIDENCE) if positive else units
    if units is None or logs is None:
        return None
    return ArmComparison(
        metric=metric,
        contrast=contrast,
        at=at,
        first=levels[0],
        second=levels[1],
        values=(first, second),
        units=units,
        logs=logs,
    )


@dataclass(frozen=True)
class Table:
    """One table of a publication, recomputed.

    Attributes:
        p_adjusted: of each comparison's ratio, Holm over the table.
    """

    description: TableDescription
    comparisons: tuple[ArmComparison, ...]
    p_adjusted: tuple[float, ...]


def tables(dataset: Dataset) -> list[Table]:
    """Every table: those of the publication, then the direction it does not print."""
    result = []
    for table in dataset.description.tables:
        comparisons = compared(dataset, metric=table.metric, contrast=table.contrast)
        adjusted = holm([each.logs.p for each in comparisons]).tolist()
        result.append(Table(description=table, comparisons=tuple(comparisons), p_adjusted=tuple(adjusted)))
    return result
