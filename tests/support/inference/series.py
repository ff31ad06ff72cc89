"""Series of one point per run."""

import math
from collections.abc import Sequence

import numpy as np

from fairtrial.history.series import Series, SeriesPoint
from fairtrial.study.catalogue import Better


def series(
    values: Sequence[float], *, better: Better | None = "higher", margin: float = 0.0, name: str = "s", **facts: str
) -> Series:
    """Runs r00, r01, …; `facts` are the last run's."""
    last = len(values) - 1
    points = tuple(
        SeriesPoint(run=f"r{i:02d}", time=f"{i:02d}", estimate=float(value), facts=facts if i == last else {})
        for i, value in enumerate(values)
    )
    return Series(name=name, metric="tpm", unit="tpm", better=better, points=points, margin=margin)


def noisy(length: int, *, seed: int, spread: float = 0.01) -> np.ndarray:
    """Around 1000, logarithms normal."""
    return 1000 * np.exp(spread * np.random.default_rng(seed).standard_normal(length))


def stepped(length: int, *, at: int, ratio: float, seed: int) -> np.ndarray:
    """The same with another level from `at` on."""
    values = noisy(length, seed=seed)
    values[at:] *= math.exp(math.log(ratio))
    return values
