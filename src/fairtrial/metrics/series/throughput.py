"""A trial's throughput as a series: what the metrics of stability and steadiness are computed from.

Intervals as recorded may be as short as 100 ms. Merged, they lose nothing: counts are added, and a remainder at the end
of the window that is too short for a rate of its own belongs to the interval before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fairtrial.metrics.series import timeline
from fairtrial.record.models import Window

Values = npt.NDArray[np.float64]

REMAINDER: Final = 0.5  # of an interval: a shorter one has a rate that is mostly noise
ROUNDING_S: Final = 1e-3  # intervals begin some microseconds late


@dataclass(frozen=True)
class Throughput:
    """Transactions of all types per second in consecutive intervals of the measured window.

    Attributes:
        starts_s: of the intervals, seconds since the window began, shape (n,).
        widths_s: their lengths, shape (n,).
        per_s: committed, and rolled back by the workload's rule, per second, shape (n,).
    """

    starts_s: Values
    widths_s: Values
    per_s: Values

    @property
    def n(self) -> int:
        """Intervals."""
        return len(self.per_s)

    @property
    def length_s(self) -> float:
        """Of all intervals together."""
        return float(self.widths_s.sum())


def read(directory: Path, *, window: Window) -> Throughput:
    """The measured window's intervals as recorded; none without a timeline.

    Raises:
        RecordError: the timeline is damaged.
    """
    return course(directory, window=window)[1]


def course(directory: Path, *, window: Window) -> tuple[Throughput, Throughput]:
    """All intervals as recorded, ramp-up included, and those of the measured window; none without a timeline.

    Raises:
        RecordError: the timeline is damaged.
    """
    frame = timeline.ended(directory)
    starts_ns = frame["time_ns"].to_numpy()
    widths_s = timeline.widths_s(starts_ns, window)
    starts_s = (starts_ns - window.start_ns) / timeline.NANOSECONDS_PER_SECOND
    with np.errstate(divide="ignore", invalid="ignore"):  # of two intervals that begin at once, the first has no rate
        per_s = frame["done"].to_numpy() / widths_s
    within = frame["measured"].fill_null(False).to_numpy()  # noqa: FBT003 - polars has no keyword for it
    return (
        Throughput(starts_s=starts_s, widths_s=widths_s, per_s=per_s),
        Throughput(starts_s=starts_s[within], widths_s=widths_s[within], per_s=per_s[within]),
    )


def merged(series: Throughput, *, interval_s: float) -> Throughput:
    """The series in intervals of about `interval_s`; as it is where it is no finer."""
    if series.n < 2 or float(np.median(series.widths_s)) > interval_s * REMAINDER:  # noqa: PLR2004 - one has no other
        return _without_remainder(series)
    since = series.starts_s - series.starts_s[0]
    group = np.floor((since + ROUNDING_S) / interval_s).astype(np.int64)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return _without_remainder(_joined(series, first))


def _without_remainder(series: Throughput) -> Throughput:
    if series.n < 2 or series.widths_s[-1] >= REMAINDER * float(np.median(series.widths_s)):  # noqa: PLR2004 - the same
        return series
    return _joined(series, np.arange(series.n - 1))


def _joined(series: Throughput, first: npt.NDArray[np.int64]) -> Throughput:
    """Intervals added up from each of these indices to the next."""
    widths = np.add.reduceat(series.widths_s, first)
    with np.errstate(invalid="ignore"):  # without a rate there is no count
        counts = np.add.reduceat(series.per_s * series.widths_s, first)
    return Throughput(starts_s=series.starts_s[first], widths_s=widths, per_s=counts / widths)
