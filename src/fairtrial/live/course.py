"""Numbers over time for a picture that grows: a median per stretch between the least and the most, so no spike is lost.

Stretches get longer by doubling as time goes on, so that a picture of a day has no more of them than one of an hour.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

MOST_STRETCHES: Final = 600  # more than a figure has pixels for pairs of


@dataclass(frozen=True)
class Stretch:
    """What fell into one stretch of time; None where nothing did. `index` counts from 0."""

    index: int
    low: float | None
    median: float | None
    high: float | None


NOTHING: Final = (None, None, None)


@dataclass
class Course:
    """One series, a value per second or more, in the order of time.

    Attributes:
        seconds: since the trial began.
        values: one for each.
    """

    seconds: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.values)

    def add(self, second: float, value: float) -> None:
        """Takes a value in; one that is not a number is left out."""
        if math.isfinite(value):
            self.seconds.append(second)
            self.values.append(value)

    def stretches(self, *, width_s: int, first: int = 0) -> list[Stretch]:
        """From one stretch on to the last that has a value, those without one included."""
        gathered: dict[int, list[float]] = {}
        for position in range(len(self.values) - 1, -1, -1):
            index = int(self.seconds[position] // width_s)
            if index < first:
                break
            gathered.setdefault(index, []).append(self.values[position])
        return [
            Stretch(index, *_summary(gathered.get(index, ()))) for index in range(first, max(gathered, default=-1) + 1)
        ]


def _summary(values: Sequence[float]) -> tuple[float, float, float] | tuple[None, None, None]:
    return (min(values), median(values), max(values)) if values else NOTHING


def width_s(length_s: float) -> int:
    """Seconds of a stretch, a power of two: the least with which a length has no more than `MOST_STRETCHES`."""
    return 1 << max(0, math.ceil(math.log2(max(length_s, 1.0) / MOST_STRETCHES)))
