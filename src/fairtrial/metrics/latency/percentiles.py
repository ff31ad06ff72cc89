"""Percentiles of latency by name, and how many observations stand behind one. Reads no files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LATENCY: Final = "latency_ns_"  # in the names of a latency's metrics, after that of a type
PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
EXCEEDANCES_WANTED: Final = 100  # fewer observations beyond a percentile make it a guess
COUNT: Final = "latency_count"
DECIMALS: Final = 6  # of observations: 0.1 % of 100,000 are 100, not 99.99999999999433
RESOLUTION: Final = 1 / 1024  # widest class of a histogram of 3 significant digits, from 1 µs on, as a share


def exceedances(metric: str, scalars: Mapping[str, float]) -> float | None:
    """How many of a trial's observations lie beyond a percentile; None if `metric` is no latency percentile.

    Fewer than `EXCEEDANCES_WANTED` make the percentile a statement about single observations.
    """
    prefix, separator, percentile = metric.partition(LATENCY)
    n = scalars.get(f"{prefix}{COUNT}")
    if not separator or percentile not in PERCENTILES or n is None:
        return None
    return round(n * (100 - PERCENTILES[percentile]) / 100, DECIMALS)
