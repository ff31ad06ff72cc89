"""How even a trial's throughput was, as scalars: stalls, dips, what they cost, and how long they lasted.

A second is part of a dip when its throughput is below a share of the rolling median around it, by more than counting
alone explains. That median follows what changes slowly, which is `steadiness`'s business; a dip shorter than half of it
does not move it. Where it is down itself, it is no measure, and the window's own level is: see `reference` and `level`.
A second without any throughput is part of a dip whatever it is held against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from fairtrial.metrics.series import throughput
from fairtrial.metrics.series.throughput import Throughput, Values
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

SECOND_S: Final = 1.0
# By the second a minute: longer than a checkpoint's or a flush's dip, shorter than a warm-up. Of longer intervals as
# many, as fewer would follow a dip.
ROLLING_INTERVALS: Final = 61
SMALLEST_N: Final = 5  # a median of fewer intervals is one of them
DIP: Final = 0.8
DEEP_DIP: Final = 0.5
RECOVERED: Final = 0.95
FIFTH: Final = 5.0  # percent
BEST: Final = 90.0  # percent: what a tenth of the window reached is no single lucky second
COLLAPSED: Final = 2.0  # a median below the best by more than this factor is the collapse and not the level
COUNTING: Final = 2.0  # standard deviations of a count: a few transactions per second vary by such factors on their own
# The same of each of hundreds of seconds: fewer than 1 in 30,000 of a steady Poisson process lie further below.
COUNTING_EACH: Final = 4.0
LINE: Final = 2  # parameters of a straight line


@dataclass(frozen=True)
class Dip:
    """Consecutive seconds below `DIP` of the rolling median.

    Attributes:
        start_s, end_s: seconds since the window began.
        lowest_share: of the rolling median, at the lowest second; 0 where there is nothing to hold it against.
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
    drops = dips(series)
    low = _below(DIP, series, median)
    short = np.where(low, median - series.per_s, 0.0)
    usual, mean = level(series.per_s), float(series.per_s.mean())
    scalars = {
        "zero_throughput_s": float(series.widths_s[series.per_s == 0].sum()),
        "below_80_percent_s": float(series.widths_s[low].sum()),
        "below_50_percent_s": float(series.widths_s[_below(DEEP_DIP, series, median)].sum()),
        "longest_dip_s": max((dip.end_s - dip.start_s for dip in drops), default=0.0),
        "recovery_s": max((dip.recovered_s - dip.start_s for dip in drops), default=0.0),
        "lost_transactions": float((short * series.widths_s).sum()),
        "throughput_p5_share": float(np.percentile(series.per_s, FIFTH)) / usual if usual > 0 else 0.0,
    }
    # A deviation of nothing from nothing is no share of anything: the share above says that there was nothing.
    return scalars | ({"throughput_cv": _detrended_cv(series.per_s)} if mean > 0 else {})


def rolling_median(values: Values) -> Values:
    """Centred median of `ROLLING_INTERVALS` values, of those there are near the ends, shape (n,)."""
    rolled = pl.Series(values).rolling_median(ROLLING_INTERVALS, min_samples=1, center=True)
    return rolled.to_numpy().astype(np.float64)


def level(values: Values) -> float:
    """The throughput that a window has where it has not collapsed: its median, unless the median is the collapse.

    A collapse of more than half of the window is its own median, and the rest would look like luck. So where a tenth of
    the window reached more than `COLLAPSED` times the median, beyond what counting alone explains, it is the median of
    what reached half of that. A collapse that leaves less than a tenth of the window cannot be told from a window that
    is slow with some quick seconds.
    """
    median, best = float(np.median(values)), float(np.percentile(values, BEST))
    most = COLLAPSED * median
    is_collapse = best > most + COUNTING * math.sqrt(max(most, 1.0))
    return float(np.median(values[values >= DEEP_DIP * best])) if is_collapse else median


def reference(values: Values) -> Values:
    """What throughput is held against: the rolling median, but where that is itself down, the window's `level`.

    A stall of more than half of the rolling window is its own rolling median, and would be no dip at all.
    """
    rolled, whole = rolling_median(values), level(values)
    return np.where(rolled < DEEP_DIP * whole, whole, rolled)


def _below(share: float, series: Throughput, median: Values) -> npt.NDArray[np.bool_]:
    """Whether each interval is low: nothing is, even where there is nothing to hold it against."""
    counted = median - COUNTING_EACH * np.sqrt(median / series.widths_s)
    low: npt.NDArray[np.bool_] = (series.per_s < np.minimum(share * median, counted)) | (series.per_s == 0)
    return low


def dips(series: Throughput) -> list[Dip]:
    """Every dip of a series, in time order."""
    if series.n < SMALLEST_N:
        return []
    median = reference(series.per_s)
    ends = series.starts_s + series.widths_s
    low = np.concatenate([[False], _below(DIP, series, median), [False]])
    back_up = (series.per_s >= RECOVERED * median) & (series.per_s > 0)
    edges = np.flatnonzero(low[1:] != low[:-1])
    drops = []
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        back = np.flatnonzero(back_up[after:])
        against = median[first:after]
        shares = np.divide(series.per_s[first:after], against, out=np.zeros_like(against), where=against > 0)
        drops.append(
            Dip(
                start_s=float(series.starts_s[first]),
                end_s=float(ends[after - 1]),
                lowest_share=float(shares.min()),
                recovered_s=float(series.starts_s[after + back[0]]) if len(back) else float(ends[-1]),
            )
        )
    return drops


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


_MEDIAN: Final = (
    f"the rolling median over {ROLLING_INTERVALS} seconds, or intervals of the timeline where these are longer (the "
    "window's level where that is down itself)"
)
_COUNTED: Final = f"{_MEDIAN} and {COUNTING_EACH:g} standard deviations of a count below it"
DEFINITIONS: Final = {
    each.name: each
    for each in (
        _metric("zero_throughput_s", "time without throughput", "s", "seconds in which no transaction ended"),
        _metric("below_80_percent_s", "time below 80 % of the median", "s", f"seconds below 80 % of {_COUNTED}"),
        _metric("below_50_percent_s", "time below 50 % of the median", "s", f"seconds below 50 % of {_COUNTED}"),
        _metric("longest_dip_s", "longest dip", "s", f"most consecutive seconds below 80 % of {_COUNTED}"),
        _metric("recovery_s", "longest recovery", "s", f"longest from a dip's first second until 95 % of {_MEDIAN}"),
        _metric("lost_transactions", "transactions lost in dips", "transactions", f"what dips lack to {_MEDIAN}"),
        _metric(
            "throughput_p5_share",
            "5 % of throughput",
            "share of the median",
            "5th percentile by second over the window's median (over the median of what was up, where it was down for "
            "more than half of it); 0 without throughput",
            "higher",
        ),
        _metric("throughput_cv", "unevenness of throughput", "share of the mean", "deviation from a straight line"),
    )
}
