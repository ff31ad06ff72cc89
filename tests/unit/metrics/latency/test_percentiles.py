"""The resolution that definitions promise is that of real histograms."""

from __future__ import annotations

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.metrics import latency
from fairtrial.metrics.latency import percentiles
from fairtrial.workloads.engine import arrival_scalars as arrivals


@given(st.integers(1_024, 3_599_000_000_000))
def test_no_class_from_a_microsecond_on_is_wider_than_the_resolution(value: int) -> None:
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    highest = histogram.get_highest_equivalent_value(value)
    lowest = histogram.get_lowest_equivalent_value(value)
    assert lowest <= value <= highest
    assert (highest - lowest) / highest <= percentiles.RESOLUTION


@pytest.mark.parametrize(
    ("percentile", "n", "beyond"), [("p999", 100_000, 100), ("p99", 10_000, 100), ("p95", 2_000, 100), ("p50", 3, 1.5)]
)
def test_observations_beyond_a_percentile_are_exact(percentile: str, n: int, beyond: float) -> None:
    found = percentiles.exceedances(f"payment_latency_ns_{percentile}", {"payment_latency_count": float(n)})
    assert found == beyond


def test_percentiles_and_maxima_are_known_by_class_and_means_and_counts_are_not() -> None:
    found = {name: each.resolution for name, each in latency.definitions(["payment"]).items()}
    assert found["latency_ns_p99"] == found["payment_latency_ns_max"] == percentiles.RESOLUTION
    assert found["latency_ns_mean"] == found["payment_latency_count"] == 0
    assert arrivals.DEFINITIONS["lateness_ns_p99"].resolution == percentiles.RESOLUTION
    assert arrivals.DEFINITIONS["offered_per_s"].resolution == 0
