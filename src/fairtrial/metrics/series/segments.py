"""Levels of a series: where its mean changes, judged against noise whose neighbours are alike and that has outliers.

PELT on what is left of the series after an autoregression of order 1 is taken out, clipped and in units of a robust
deviation, proposes changes; a change stands if the levels differ by more than the series' own autocorrelation allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.metrics.series.autocorrelation import inflation, residual_ar1, robust_ar1
from fairtrial.metrics.series.throughput import Values

PENALTY: Final = 3.0  # times log n: below it, independent noise has changes
CONFIRMED: Final = 4.0  # times log n, as a squared standardised difference; benches/within.py shows the rates
SHORTEST_SHARE: Final = 0.1  # of the series: what is shorter is a dip, and `stability` counts it
SHORTEST: Final = 5
CLIP: Final = 3.0  # robust deviations from the rolling median: one slow second is no level
# Median of |x - y| of two standard normal values.
MEDIAN_STEP: Final = 0.9538725524


@dataclass(frozen=True)
class Segmentation:
    """A series cut into segments.

    Attributes:
        starts: index of each segment's first value, ascending, the first 0.
        means: of the values as they are, unclipped.
        differs: whether each segment's level differs from the last one's by more than noise does.
        residual_square: sum of squared deviations from the means.
    """

    starts: tuple[int, ...]
    means: tuple[float, ...]
    differs: tuple[bool, ...]
    residual_square: float


def levels(values: Values) -> Segmentation:
    """The levels of a series of at least `2 * SHORTEST` values; of a shorter one, its mean."""
    starts = (0, *proposed(values))
    n = len(values)
    sizes = np.diff([*starts, n])
    means = np.add.reduceat(values, starts) / sizes
    left = values - np.repeat(means, sizes)
    square = float(left @ left)
    k = len(starts)
    variance = square / max(n - k, 1) * inflation(residual_ar1(left, parameters=k))
    gaps = (means - means[-1]) ** 2
    limit = CONFIRMED * math.log(max(n, 2)) * variance * (1 / sizes + 1 / sizes[-1])
    return Segmentation(
        starts=starts,
        means=tuple(means.tolist()),
        differs=tuple(bool(gap > most) for gap, most in zip(gaps.tolist(), limit.tolist(), strict=True)),
        residual_square=square,
    )


def proposed(values: Values) -> tuple[int, ...]:
    """Indices at which PELT sees a new level begin."""
    n = len(values)
    shortest = max(SHORTEST, math.ceil(SHORTEST_SHARE * n))
    if n < 2 * shortest + 1:
        return ()
    whitened = whitened_values(values, shortest=shortest)
    if whitened is None:
        return ()
    import ruptures  # noqa: PLC0415 - half a second that a command's help must not wait for

    detector = ruptures.KernelCPD(kernel="linear", min_size=shortest).fit(whitened[:, np.newaxis])
    changes = detector.predict(pen=PENALTY * math.log(n))[:-1]
    return tuple(int(change) + 1 for change in changes)  # whitening took the first value


def whitened_values(values: Values, *, shortest: int) -> Values | None:
    """The series without its autoregression, clipped, in robust deviations, shape (n - 1,); None for a constant."""
    from scipy.ndimage import median_filter  # noqa: PLC0415 - see `proposed`

    left = values[1:] - robust_ar1(values) * values[:-1]
    spread = _deviation(left)
    if spread == 0:
        return None
    around = median_filter(left, size=2 * shortest + 1, mode="nearest")
    clipped = np.clip(left, around - CLIP * spread, around + CLIP * spread)
    return np.asarray(clipped / (_deviation(clipped) or spread), dtype=np.float64)


def _deviation(values: Values) -> float:
    """Of the noise, from steps between neighbours, which levels do not move; the plain one where most steps are 0."""
    return float(np.median(np.abs(np.diff(values)))) / MEDIAN_STEP or float(np.std(values))
