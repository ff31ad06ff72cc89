"""The comparisons behind a publication's tables: as it made them, and with the baseline's own uncertainty.

One path for every publication; what differs is in its description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse import t_tests
from fairtrial.analyse.judging import holm
from fairtrial.analyse.publications.models import Levels, TableDescription
from fairtrial.analyse.publications.reading import Dataset
from fairtrial.analyse.t_tests import TTest, Values

CONFIDENCE: Final = 0.95  # of every publication here
PERCENT: Final = 100


@dataclass(frozen=True)
class Compared:
    """One level against the contrast's first level, other factors at `at`, trials taken as independent.

    Attributes:
        units: Welch on the values, second minus first.
        logs: Welch on their logarithms: the ratio with the uncertainty of both means.
        p_adjusted: Holm over the comparisons of one table.
    """

    metric: str
    contrast: str
    at: Levels
    first: str
    second: str
    values: tuple[Values, Values]
    units: TTest
    logs: TTest
    p_adjusted: float

    @property
    def means(self) -> tuple[float, float]:
        """Of first and second."""
        return float(np.mean(self.values[0])), float(np.mean(self.values[1]))

    @property
    def percent(self) -> tuple[float, float]:
        """The publications' interval: the difference in percent of the first mean, as if that were known exactly."""
        return PERCENT * self.units.low / self.means[0], PERCENT * self.units.high / self.means[0]

    @property
    def ratio_percent(self) -> tuple[float, float]:
        """Interval of the ratio of geometric means, as a change in percent."""
        return PERCENT * math.expm1(self.logs.low), PERCENT * math.expm1(self.logs.high)

    @property
    def significant(self) -> bool:
        """By the publications' rule: the interval of the difference leaves out 0."""
        return self.units.low > 0 or self.units.high < 0

    @property
    def pair_percent(self) -> list[float]:
        """Change in percent by trial number: trials of equal number side by side."""
        return [PERCENT * (b - a) / a for a, b in zip(*(each.tolist() for each in self.values), strict=True)]


def compared(dataset: Dataset, *, metric: str, contrast: str) -> list[Compared]:
    """Every later level of a contrast against its first, for each combination of the other factors."""
    first, *others = dataset.levels(contrast)
    found = []
    for at in dataset.combinations(without=contrast):
        for second in others:
            values = tuple(dataset.values(metric, {**at, contrast: level}) for level in (first, second))
            units = t_tests.welch(values[0], values[1], confidence=CONFIDENCE)
            logs = t_tests.welch(np.log(values[0]), np.log(values[1]), confidence=CONFIDENCE)
            if units is None or logs is None:
                raise ValueError(f"{dataset.name}: {metric} has no spread at {at}")
            found.append((at, second, (values[0], values[1]), units, logs))
    adjusted = holm([logs.p for *_, logs in found])
    return [
        Compared(
            metric=metric,
            contrast=contrast,
            at=at,
            first=first,
            second=second,
            values=values,
            units=units,
            logs=logs,
            p_adjusted=p,
        )
        for (at, second, values, units, logs), p in zip(found, adjusted, strict=True)
    ]


def tables(dataset: Dataset) -> list[tuple[TableDescription, list[Compared]]]:
    """Every table with its comparisons: those of the publication, then the direction it does not print."""
    return [
        (table, compared(dataset, metric=table.metric, contrast=table.contrast)) for table in dataset.description.tables
    ]
