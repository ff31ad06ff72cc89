"""Rates of telemetry; frames of whole records are shown in `tests/unit/report/test_api.py`."""

from __future__ import annotations

import polars as pl
import pytest

from fairtrial.metrics import frames
from fairtrial.record.models import Window

WINDOW = Window(start_ns=10_000_000_000, end_ns=12_000_000_000)


def test_counters_become_rates_over_the_time_between_samples() -> None:
    raw = pl.DataFrame(
        {
            "time_ns": [9_000_000_000, 11_500_000_000, 11_000_000_000],  # out of order on purpose
            "pgfault": pl.Series([100, 350, 300], dtype=pl.UInt64),
            "nr_free_pages": pl.Series([5, 3, 4], dtype=pl.UInt64),
        }
    )
    frame = frames.telemetry_rates(raw, source="vmstat", window=WINDOW)
    assert frame["second"].to_list() == [-1.0, 1.0, 1.5]
    assert frame["pgfault_per_s"].to_list() == [None, 100.0, 100.0]
    assert frame["nr_free_pages"].to_list() == [5, 4, 3]
    assert "nr_free_pages_per_s" not in frame.columns


def test_a_counter_that_steps_back_gives_a_negative_rate_not_an_overflow() -> None:
    raw = pl.DataFrame({"time_ns": [0, 1_000_000_000], "iowait": pl.Series([10, 9], dtype=pl.UInt64)})
    assert frames.telemetry_rates(raw, source="cpu", window=WINDOW)["iowait_per_s"].to_list() == [None, -1.0]


@pytest.mark.parametrize(
    ("source", "column", "counter"),
    [
        ("cpu", "user", True),
        ("memory", "MemAvailable", False),
        ("vmstat", "nr_dirty", False),
        ("vmstat", "pgscan_direct", True),
        ("disks", "vda.sectors_read", True),
        ("disks", "vda.in_flight", False),
        ("pressure", "io.some.total_us", True),
        ("process-server", "user_ticks", True),
        ("process-server", "resident_bytes", False),
        ("process-server", "read_bytes", True),
    ],
)
def test_levels_have_no_rate(source: str, column: str, *, counter: bool) -> None:
    assert frames.counts(source, column) is counter


def test_a_factor_called_like_a_column_keeps_both() -> None:
    assert frames.factor_column("users") == "users"
    assert frames.factor_column("block") == "factor_block"
