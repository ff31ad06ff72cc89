"""The noise floor: by how much a configuration differs from itself, where it was measured in several stretches.

A claimed difference that is not above it may be what passed between two stretches, not the effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.audit.claims.models import Claim
from fairtrial.audit.models import Levels
from fairtrial.audit.reading import Dataset
from fairtrial.audit.stretches import recognise

CONFIDENCE: Final = 0.95
PERCENT: Final = 100
NOTE: Final = "the difference of {size} is not above the noise floor of {floor} ({where})"


@dataclass(frozen=True)
class RepeatedConfiguration:
    """A configuration in several stretches, on one metric.

    Attributes:
        levels: of every factor, in words.
        by: what tells the stretches apart.
        counts, means: of each stretch, in the order of time.
        percent: largest difference between the means of two stretches, later minus earlier, in percent of the earlier.
        low, high: its interval, Welch; None where the values have no spread. With more than two stretches it is wider,
            for every pair at once (Bonferroni).
        p: how often chance within stretches gives a difference as large: Welch, times the number of pairs.
    """

    metric: str
    levels: str
    by: str
    counts: tuple[int, ...]
    means: tuple[float, ...]
    percent: float
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class _Floor:
    """How large a difference is there where nothing differs, as a share, and where it was seen."""

    share: float
    where: str


class Floors:
    """The noise floors of one publication's data: what configurations that were measured again say."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, stretches = dataset, recognise(dataset)
        self._of_row = stretches.of_row if stretches else ()
        factors = list(dataset.description.factors)
        configurations = stretches.configurations if stretches else ()
        self._levels: list[Levels] = [dict(zip(factors, each, strict=True)) for each in configurations]
        every = (
            _repeated(metric, levels, by=stretches.by, values=self._values(metric, levels))
            for metric in dataset.description.metrics
            for levels in self._levels
            if stretches
        )
        self.repeated: tuple[RepeatedConfiguration, ...] = tuple(each for each in every if each is not None)

    def note(self, claim: Claim, *, at: Levels, levels: tuple[str, str], size: float) -> str:
        """What a claimed difference, as a share, carries if it is not above the floor beside it; else nothing.

        The floor is that of the two levels at `at` if one of them was measured again there, else the largest on the
        metric. Arms that share their stretches share what passed between them: there the floor is the change of their
        ratio.
        """
        here = self._floor(claim, at=at, levels=levels)
        floor = here or self._floor(claim, at={}, levels=self._dataset.levels(claim.contrast))
        if floor is None or abs(size) > floor.share:
            return ""
        return NOTE.format(size=percent(PERCENT * abs(size)), floor=percent(PERCENT * floor.share), where=floor.where)

    def _floor(self, claim: Claim, *, at: Levels, levels: Sequence[str]) -> _Floor | None:
        floors = []
        for each in self._levels:
            level = each[claim.contrast]
            if level in levels and at.items() <= each.items():
                other = next(name for name in (*levels, *self._dataset.levels(claim.contrast)) if name != level)
                floors.append(self._of(claim.metric, each, partner={**each, claim.contrast: other}))
        return max((each for each in floors if each), key=lambda each: each.share, default=None)

    def _of(self, metric: str, levels: Levels, *, partner: Levels) -> _Floor | None:
        means = _means(self._values(metric, levels))
        where = ", ".join(levels.values())
        if partner in self._levels:
            others = _means(self._values(metric, partner))
            if means.keys() == others.keys() and all(others.values()):
                means = {stretch: mean / others[stretch] for stretch, mean in means.items()}
                where += f" over {', '.join(partner.values())}"
        apart = _largest(list(means.values()))
        return apart and _Floor(abs(apart[0]), f"{where}, measured {len(means)} times")

    def _values(self, metric: str, levels: Levels) -> dict[int, Values]:
        """Of one configuration, by stretch, in the order of time."""
        by_stretch: dict[int, list[float]] = {}
        for row, stretch in sorted(zip(range(len(self._of_row)), self._of_row, strict=True), key=lambda each: each[1]):
            values = self._dataset.rows[row]
            if all(values[factor] == level for factor, level in levels.items()):
                by_stretch.setdefault(stretch, []).append(float(values[metric]))
        return {stretch: t_tests.array(each) for stretch, each in by_stretch.items()}


def percent(value: float, *, sign: str = "") -> str:
    """To two digits: `0.29 %`, `120 %`; with a sign always if that is `+`."""
    return f"{value:{sign}.0f} %" if abs(value) >= 10 else f"{value:{sign}.2g} %"  # noqa: PLR2004 - two digits


def _means(values: Mapping[int, Values]) -> dict[int, float]:
    return {stretch: float(np.mean(each)) for stretch, each in values.items()}


def _largest(means: Sequence[float]) -> tuple[float, int, int] | None:
    """The largest relative difference of two, later minus earlier, and which; None where an earlier one is 0."""
    if not all(means[:-1]):
        return None
    last = len(means) - 1
    highest = lowest = last  # of those later than the one looked at
    apart: list[tuple[float, int, int]] = []
    for earlier in range(last - 1, -1, -1):
        apart += [
            ((means[later] - means[earlier]) / abs(means[earlier]), earlier, later)
            for later in sorted({highest, lowest}, reverse=True)
        ]
        highest = earlier if means[earlier] >= means[highest] else highest
        lowest = earlier if means[earlier] <= means[lowest] else lowest
    return max(reversed(apart), key=lambda each: abs(each[0]))


def _repeated(metric: str, levels: Levels, *, by: str, values: Mapping[int, Values]) -> RepeatedConfiguration | None:
    means = _means(values)
    apart = _largest(list(means.values()))
    if apart is None:
        return None
    share, earlier, later = apart
    pairs = math.comb(len(means), 2)
    stretches = list(values.values())
    test = t_tests.welch(stretches[earlier], stretches[later], confidence=1 - (1 - CONFIDENCE) / pairs)
    scale = PERCENT / abs(list(means.values())[earlier])
    return RepeatedConfiguration(
        metric=metric,
        levels=", ".join(levels.values()),
        by=by,
        counts=tuple(len(each) for each in stretches),
        means=tuple(means.values()),
        percent=PERCENT * share,
        low=None if test is None else test.low * scale,
        high=None if test is None else test.high * scale,
        p=None if test is None else min(1.0, test.p * pairs),
    )
