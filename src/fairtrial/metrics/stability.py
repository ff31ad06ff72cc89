"""How even a trial's throughput was, as scalars: stalls, dips, what they cost, and how long they lasted.

A second is part of a dip when its throughput is below a share of the rolling median around it. That median follows what
changes slowly, which is `steadiness`'s business; a dip shorter than half of it does not move it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from fairtrial.metrics import throughput
from fairtrial.metrics.throughput import Throughput, Values
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

SECOND_S: Final = 1.0
ROLLING_INTERVALS: Final = 61  # a minute: longer than a checkpoint's or a flush's dip, shorter than a warm-up
SMALLEST_N: Final = 5  # a median of fewer intervals is one of them
DIP: Final = 0.8
DEEP_DIP: Final = 0.5
RECOVERED: Final = 0.95
FIFTH: Final = 5.0  # percent
LINE: Final = 2  # parameters of a straight line


@dataclass(frozen=True)
class Dip:
    """Consecutive seconds below `DIP` of the rolling median.

    Attributes:
        start_s, end_s: seconds since the window began.
        lowest_share: of the rolling median, at the lowest second.
        recovered_s: when throughput was at `RECOVERED` of the median again; the window's end if it never was.
    """

    start_s: float
    end_s: float
    lowest_share: float
    recovered_s: float


def compute(directory: Path, *, window: Window) -> dict[str, float]:
    """The scalars of one trial; empty without a timeline, or with one too short to have a median.

    Raises:
        RecordError: the timeline is damaged.
    """
    return scalars(seconds(directory, window=window))


def seconds(directory: Path, *, window: Window) -> Throughput:
    """Throughput by the second, or by what was recorded where that is coarser."""
    return throughput.merged(throughput.read(directory, window=window), interval_s=SECOND_S)


def scalars(series: Throughput) -> dict[str, float]:
    """See `DEFINITIONS`."""
    if series.n < SMALLEST_N:
        return {}
    median = reference(series.per_s)
    found = dips(series)
    short = np.where(series.per_s < DIP * median, median - series.per_s, 0.0)
    scalars = {
        "zero_throughput_s": float(series.widths_s[series.per_s == 0].sum()),
        "below_80_percent_s": float(series.widths_s[series.per_s < DIP * median].sum()),
        "below_50_percent_s": float(series.widths_s[series.per_s < DEEP_DIP * median].sum()),
        "longest_dip_s": max((dip.end_s - dip.start_s for dip in found), default=0.0),
        "recovery_s": max((dip.recovered_s - dip.start_s for dip in found), default=0.0),
        "lost_transactions": float((short * series.widths_s).sum()),
    }
    middle = float(np.median(series.per_s))
    if middle > 0:
        scalars["throughput_p5_share"] = float(np.percentile(series.per_s, FIFTH)) / middle
        scalars["throughput_cv"] = _detrended_cv(series.per_s)
    return scalars


def rolling_median(values: Values) -> Values:
    """Centred median of `ROLLING_INTERVALS` values, of those there are near the ends, shape (n,)."""
    rolled = pl.Series(values).rolling_median(ROLLING_INTERVALS, min_samples=1, center=True)
    return rolled.to_numpy().astype(np.float64)


def reference(values: Values) -> Values:
    """What throughput is held against: the rolling median, but where that is itself down, the window's median.

    A stall of more than half of the rolling window is its own rolling median, and would be no dip at all.
    """
    rolled, whole = rolling_median(values), float(np.median(values))
    return np.where(rolled < DEEP_DIP * whole, whole, rolled)


def dips(series: Throughput) -> list[Dip]:
    """Every dip of a series, in time order."""
    if series.n < SMALLEST_N:
        return []
    median = reference(series.per_s)
    ends = series.starts_s + series.widths_s
    low = np.concatenate([[False], series.per_s < DIP * median, [False]])
    edges = np.flatnonzero(low[1:] != low[:-1])
    found = []
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        back = np.flatnonzero(series.per_s[after:] >= RECOVERED * median[after:])
        shares = series.per_s[first:after] / median[first:after]
        found.append(
            Dip(
                start_s=float(series.starts_s[first]),
                end_s=float(ends[after - 1]),
                lowest_share=float(shares.min()),
                recovered_s=float(series.starts_s[after + back[0]]) if len(back) else float(ends[-1]),
            )
        )
    return found


def _detrended_cv(values: Values) -> float:
    """Standard deviation around the least-squares line, as a share of the mean."""
    slots = np.arange(len(values)) - (len(values) - 1) / 2
    rate = float(slots @ values) / float(slots @ slots)
    left = values - values.mean() - rate * slots
    return float(np.sqrt(left @ left / (len(values) - LINE)) / values.mean())


def _metric(name: str, label: str, unit: str, source: str, better: Better = "lower") -> MetricDefinition:  # noqa: PLR0917 - a row of the table below
    kind: MetricKind = "wall_clock"
    return MetricDefinition(
        name=name, label=label, unit=unit, better=better, kind=kind, source=f"timeline.parquet: {source}"
    )


_MEDIAN: Final = f"the rolling median over {ROLLING_INTERVALS} s"
DEFINITIONS: Final = {
    each.name: each
    for each in (
        _metric("zero_throughput_s", "time without throughput", "s", "seconds in which no transaction ended"),
        _metric("below_80_percent_s", "time below 80 % of the median", "s", f"seconds below 80 % of {_MEDIAN}"),
        _metric("below_50_percent_s", "time below 50 % of the median", "s", f"seconds below 50 % of {_MEDIAN}"),
        _metric("longest_dip_s", "longest dip", "s", f"most consecutive seconds below 80 % of {_MEDIAN}"),
        _metric("recovery_s", "longest recovery", "s", f"longest from a dip's first second until 95 % of {_MEDIAN}"),
        _metric("lost_transactions", "transactions lost in dips", "transactions", f"what dips lack to {_MEDIAN}"),
        _metric(
            "throughput_p5_share", "5 % of throughput", "share of the median", "5th percentile by second", "higher"
        ),
        _metric("throughput_cv", "unevenness of throughput", "share of the mean", "deviation from a straight line"),
    )
}
