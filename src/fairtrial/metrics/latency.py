"""Latency scalars from a trial's HdrHistogram log: counts are merged, percentiles are never averaged.

Percentiles follow HdrHistogram: the highest value equivalent, at the log's resolution (3 significant digits), to the
observation whose rank is the percentile's share of the count, rounded half up. Source of the format: HdrHistogram's
histogram log, version 1.3 (`Tag=` lines), V2 encoding.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from fairtrial.errors import RecordError
from fairtrial.study.catalogue import MetricDefinition

FILE: Final = "latency.hlog"
LOWEST_NS: Final = 1
HIGHEST_NS: Final = 3_600_000_000_000  # the reader wants a reference; an hour exceeds any transaction here
SIGNIFICANT_DIGITS: Final = 3
PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
EXCEEDANCES_WANTED: Final = 100  # fewer observations beyond a percentile make it a guess
COUNT: Final = "latency_count"
COMMENT: Final = '#"'  # first characters of lines that are comments or the column titles

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Merged histogram counts.

    Attributes:
        lowest_ns, highest_ns: bounds of each recorded value class, ascending, nanoseconds, both inclusive.
        counts: observations in each class; no class is empty.
    """

    lowest_ns: Counts
    highest_ns: Counts
    counts: Counts

    @property
    def n(self) -> int:
        """Observations."""
        return int(self.counts.sum())

    @property
    def mean_ns(self) -> float:
        """Mean of the classes' middles, weighted by their counts; NaN if empty."""
        if not self.n:
            return math.nan
        middles = self.lowest_ns + (self.highest_ns - self.lowest_ns + 1) // 2
        return float(np.average(middles.astype(np.float64), weights=self.counts))

    @property
    def max_ns(self) -> float:
        """Upper bound of the highest class; NaN if empty."""
        return float(self.highest_ns[-1]) if self.n else math.nan

    def percentile_ns(self, percent: float) -> float:
        """The value `percent` of observations do not exceed; NaN if empty."""
        if not self.n:
            return math.nan
        rank = max(1, min(self.n, int(percent * self.n / 100 + 0.5)))
        return float(self.highest_ns[np.searchsorted(np.cumsum(self.counts), rank)])


def merged(distributions: Iterable[Distribution]) -> Distribution:
    """One distribution of all observations."""
    parts = list(distributions)
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Distribution(lowest_ns=empty, highest_ns=empty, counts=empty)
    lowest = np.concatenate([part.lowest_ns for part in parts])
    highest = np.concatenate([part.highest_ns for part in parts])
    classes, inverse = np.unique(np.stack([lowest, highest]), axis=1, return_inverse=True)
    totals = np.zeros(classes.shape[1], dtype=np.int64)
    np.add.at(totals, inverse.ravel(), np.concatenate([part.counts for part in parts]))
    return Distribution(lowest_ns=classes[0], highest_ns=classes[1], counts=totals)


def read(directory: Path, *, file: str = FILE) -> dict[str, Distribution]:
    """Distributions of a trial's measured window by transaction type (`all` for untagged lines); empty without a log.

    Raises:
        RecordError: a line cannot be decoded.
    """
    path = directory / file
    if not path.exists():
        return {}
    parts: dict[str, list[Distribution]] = {}
    try:
        for histogram in _intervals(path):
            parts.setdefault(histogram.get_tag() or "all", []).append(_distribution(histogram))
    except (ValueError, TypeError, zlib.error, HdrCookieException, HdrLengthException) as error:
        raise RecordError(f"{path} cannot be decoded: {error}", hint="restore the trial from a copy") from error
    return {kind: merged(found) for kind, found in parts.items()}


def compute(directory: Path, *, by_type: bool = True) -> dict[str, float]:
    """Latency scalars over all types and, if wanted, per type; empty without a log or without observations."""
    distributions = read(directory)
    found = scalars(merged(distributions.values()))
    for kind, distribution in distributions.items():
        if by_type and kind != "all":
            found |= scalars(distribution, prefix=f"{kind}_")
    return found


def scalars(distribution: Distribution, *, prefix: str = "") -> dict[str, float]:
    """Percentiles, maximum, mean and count of a distribution, by metric name; empty if it is."""
    if not distribution.n:
        return {}
    values = {name: distribution.percentile_ns(percent) for name, percent in PERCENTILES.items()}
    values |= {"max": distribution.max_ns, "mean": distribution.mean_ns}
    found = {f"{prefix}latency_ns_{name}": value for name, value in values.items()}
    return found | {f"{prefix}{COUNT}": float(distribution.n)}


def exceedances(metric: str, scalars: Mapping[str, float]) -> float | None:
    """How many of a trial's observations lie beyond a percentile; None if `metric` is no latency percentile.

    Fewer than `EXCEEDANCES_WANTED` make the percentile a statement about single observations.
    """
    prefix, found, percentile = metric.partition("latency_ns_")
    n = scalars.get(f"{prefix}{COUNT}")
    if not found or percentile not in PERCENTILES or n is None:
        return None
    return n * (100 - PERCENTILES[percentile]) / 100


def _intervals(path: Path) -> Iterator[Any]:
    reader = HistogramLogReader(str(path), HdrHistogram(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS))
    read_lines = 0
    with contextlib.closing(reader):
        # The default range starts at the first line's time and would drop a later line of an earlier interval.
        while (histogram := reader.get_next_interval_histogram(range_start_time_sec=-math.inf)) is not None:
            read_lines += 1
            yield histogram
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] not in COMMENT]
    if read_lines != len(
        lines
    ):  # the library passes over lines it does not recognise: latencies would be lost silently
        raise ValueError(f"{len(lines) - read_lines} of {len(lines)} lines are no intervals")


def _distribution(histogram: Any) -> Distribution:
    """A decoded histogram's non-empty classes; HdrHistogram.get_value_from_index, for all indices at once."""
    counts = np.array(histogram.counts, dtype=np.int64)
    index = np.flatnonzero(counts)
    half = histogram.sub_bucket_half_count
    bucket = (index >> histogram.sub_bucket_half_count_magnitude) - 1
    sub_bucket = (index & (half - 1)) + half
    sub_bucket = np.where(bucket < 0, sub_bucket - half, sub_bucket)
    shift = np.maximum(bucket, 0) + histogram.unit_magnitude
    lowest = sub_bucket << shift
    return Distribution(lowest_ns=lowest, highest_ns=lowest + (1 << shift) - 1, counts=counts[index])


def definitions(types: Iterable[str] = ()) -> Mapping[str, MetricDefinition]:
    """Definitions of the scalars over all transactions and over those of each of these types."""
    statistics = {"p50": "median", "p95": "95 %", "p99": "99 %", "p999": "99.9 %", "max": "maximum", "mean": "mean"}
    defined = {}
    for kind in ("", *types):
        for statistic, words in statistics.items():
            name = f"{kind}_latency_ns_{statistic}".removeprefix("_")
            label = f"{kind.replace('_', '-')} latency, {words}".strip()
            defined[name] = MetricDefinition(
                name=name,
                label=label,
                unit="ns",
                better="lower",
                kind="wall_clock",
                source=f"{FILE}, merged over the measured window"
                + (f", {kind} transactions" if kind else ", all transaction types"),
            )
        name = f"{kind}_{COUNT}".removeprefix("_")
        defined[name] = MetricDefinition(
            name=name,
            label=f"{kind.replace('_', '-')} latencies observed".strip(),
            unit="transactions",
            better="higher",
            kind="count",
            source=f"{FILE}, observations in the measured window",
        )
    return defined
