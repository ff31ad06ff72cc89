"""Latency scalars from a trial's HdrHistogram log: counts are merged, percentiles are never averaged.

Percentiles follow HdrHistogram: the highest value equivalent, at the log's resolution (3 significant digits), to the
observation whose rank is the percentile's share of the count, rounded half up. Source of the format: HdrHistogram's
histogram log, version 1.3 (`Tag=` lines), V2 encoding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fairtrial.errors import RecordError
from fairtrial.metrics.latency import histogram_log
from fairtrial.metrics.latency.percentiles import COUNT, PERCENTILES, RESOLUTION
from fairtrial.study.catalogue import MetricDefinition

FILE: Final = "latency.hlog"
NANOSECONDS_PER_SECOND: Final = 1e9

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
        return float(self.percentiles_ns(np.array([percent]))[0]) if self.n else math.nan

    def percentiles_ns(self, percents: npt.NDArray[np.float64]) -> Counts:
        """`percentile_ns` of each of these, of a distribution that is not empty."""
        ranks = np.clip((percents * self.n / 100 + 0.5).astype(np.int64), 1, self.n)
        return self.highest_ns[np.searchsorted(np.cumsum(self.counts), ranks)]


def merged(distributions: Iterable[Distribution]) -> Distribution:
    """One distribution of all observations."""
    parts = list(distributions)
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Distribution(lowest_ns=empty, highest_ns=empty, counts=empty)
    lowest = np.concatenate([part.lowest_ns for part in parts])
    highest = np.concatenate([part.highest_ns for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.lexsort((highest, lowest))  # logs of different resolution have classes that begin alike
    lowest, highest = lowest[order], highest[order]
    first = np.flatnonzero((np.diff(lowest, prepend=-1) != 0) | (np.diff(highest, prepend=-1) != 0))
    totals = np.add.reduceat(counts[order], first) if len(first) else counts
    return Distribution(lowest_ns=lowest[first], highest_ns=highest[first], counts=totals)


def read(directory: Path, *, file: str = FILE) -> dict[str, Distribution]:
    """Distributions of a trial's measured window by transaction type (`all` for untagged lines); empty without a log.

    Raises:
        RecordError: a line cannot be decoded.
    """
    path = directory / file
    try:
        status = path.stat()
    except FileNotFoundError:
        return {}
    try:
        return dict(_decoded(path, (status.st_ino, status.st_size, status.st_mtime_ns)))
    except ValueError as error:
        raise RecordError(f"{path} cannot be decoded: {error}", hint="restore the trial from a copy") from error


@lru_cache(maxsize=2)
def _decoded(path: Path, _version: tuple[int, int, int]) -> Mapping[str, Distribution]:
    """Decoded once: scalars, sums and the comparison of files each ask for a trial's log as it is committed."""
    logged = histogram_log.counts(path)
    return {
        tag or "all": merged(_distribution(counts, shape) for shape, counts in shapes.items())
        for tag, shapes in logged.items()
    }


def by_second(directory: Path, *, zero_ns: int) -> dict[int, Distribution]:
    """Distributions of all types by second since `zero_ns`, of the measured window only; empty without a log.

    Raises:
        RecordError: a line cannot be decoded.
    """
    path = directory / FILE
    if not path.exists():
        return {}
    try:
        seconds = histogram_log.by_second(path, zero_s=zero_ns / NANOSECONDS_PER_SECOND)
    except ValueError as error:
        raise RecordError(f"{path} cannot be decoded: {error}", hint="restore the trial from a copy") from error
    return {
        second: merged(_distribution(counts, shape) for shape, counts in shapes.items())
        for second, shapes in seconds.items()
    }


def compute(directory: Path, *, by_type: bool = True) -> dict[str, float]:
    """Latency scalars over all types and, if wanted, per type; empty without a log or without observations."""
    distributions = read(directory)
    values = scalars(merged(distributions.values()))
    for kind, distribution in distributions.items():
        if by_type and kind != "all":
            values |= scalars(distribution, prefix=f"{kind}_")
    return values


def scalars(distribution: Distribution, *, prefix: str = "") -> dict[str, float]:
    """Percentiles, maximum, mean and count of a distribution, by metric name; empty if it is."""
    if not distribution.n:
        return {}
    values = {name: distribution.percentile_ns(percent) for name, percent in PERCENTILES.items()}
    values |= {"max": distribution.max_ns, "mean": distribution.mean_ns}
    named = {f"{prefix}latency_ns_{name}": value for name, value in values.items()}
    return named | {f"{prefix}{COUNT}": float(distribution.n)}


def _distribution(counted: histogram_log.Counted, shape: histogram_log.Shape) -> Distribution:
    index, counts = counted
    lowest, highest = histogram_log.bounds(index, shape)
    return Distribution(lowest_ns=lowest, highest_ns=highest, counts=counts)


def definitions(types: Iterable[str] = (), *, exact: Mapping[str, str] | None = None) -> Mapping[str, MetricDefinition]:
    """Definitions of the scalars over all transactions and over those of each of these types.

    Args:
        types: of transactions.
        exact: the sources of scalars that are no histogram's because a program tells them itself, by metric name.
    """
    statistics = {"p50": "median", "p95": "p95", "p99": "p99", "p999": "p99.9", "max": "maximum", "mean": "mean"}
    defined = {}
    for kind in ("", *types):
        for statistic, words in statistics.items():
            name = f"{kind}_latency_ns_{statistic}".removeprefix("_")
            label = " ".join([words, *([kind.replace("_", "-")] if kind else []), "latency"])
            defined[name] = MetricDefinition(
                name=name,
                label=label,
                unit="ns",
                better="lower",
                kind="wall_clock",
                resolution=0.0 if statistic == "mean" else RESOLUTION,
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
    for name, source in (exact or {}).items():
        defined[name] = defined[name].model_copy(update={"resolution": 0.0, "source": source})
    return defined
