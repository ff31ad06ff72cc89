"""Metrics of a governor of purge against frames small enough to compute by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import governor as governor_metrics
from fairtrial.record.models import Window

SECOND = 1_000_000_000
START = 5_000_000 * SECOND
WINDOW = Window(start_ns=START + SECOND, end_ns=START + 3 * SECOND)


def computed(directory: Path, columns: Mapping[str, Sequence[int | None]]) -> dict[str, float]:
    """Metrics of looks a second apart, the window from the second to the fourth."""
    times = pl.Series("time_ns", [START + second * SECOND for second in range(5)], dtype=pl.Int64)
    counters = [pl.Series(name, values, dtype=pl.UInt64) for name, values in columns.items()]
    pl.DataFrame([times, *counters]).write_parquet(directory / "telemetry-governor.parquet")
    return telemetry.compute(directory, window=WINDOW, ticks_per_s=None)


def test_what_it_did_inside_the_window_is_counted(tmp_path: Path) -> None:
    values = computed(
        tmp_path,
        {
            "decisions": [0, 1, 4, 6, 90],
            "sets": [0, 1, 4, 7, 90],
            "refused": [0, 0, 0, 1, 9],
            "missed_looks": [5, 5, 5, 8, 8],
        },
    )
    assert values == {
        "governor_decisions": 5,
        "governor_sets": 6,
        "governor_refused": 1,
        "governor_looks_missed": 3,
    }


def test_the_loop_s_period_and_cost_are_measured(tmp_path: Path) -> None:
    values = computed(
        tmp_path,
        {
            "looks": [0, 20, 38, 58, 80],
            "cpu_ns": [1_000_000, 2_000_000, 5_000_000, 9_000_000, 10_000_000],
            "answer_ns": [0, 200_000, 400_000, 200_000, 0],
        },
    )
    assert values["governor_period_s"] == pytest.approx(2 / 38)
    assert values["governor_cpu_ms_per_s"] == pytest.approx(3.5)
    assert values["governor_answer_s_mean"] == pytest.approx(0.000_3)


def test_time_is_shared_between_the_rungs(tmp_path: Path) -> None:
    values = computed(
        tmp_path,
        {
            "threads": [4, 4, 2, 2, 4],
            "held_ns": [0, 0, 0, SECOND // 2, SECOND],
            "at_1_ns": [0, 0, 0, SECOND // 2, SECOND],
            "at_2_ns": [0, 0, SECOND // 4, SECOND // 4, SECOND],
            "at_3_ns": [0, 0, 0, 0, 0],
            "at_4_ns": [0, SECOND, SECOND + 3 * SECOND // 4, SECOND + 3 * SECOND // 4, 2 * SECOND],
        },
    )
    shares = [values[f"governor_threads_{threads}_share"] for threads in range(1, 5)]
    assert shares == pytest.approx([0.25, 0.125, 0, 0.375])
    assert values["governor_held_share"] + sum(shares) == pytest.approx(1)
    assert values["governor_threads_mean"] == pytest.approx((3 + 2) / 2)
    assert "governor_threads_5_share" not in values, "this ladder has four"


def test_a_trial_without_a_governor_has_none_of_it(tmp_path: Path) -> None:
    assert telemetry.compute(tmp_path, window=WINDOW, ticks_per_s=None) == {}


def test_every_number_of_threads_has_a_share() -> None:
    names = [metric.definition.name for metric in governor_metrics.METRICS]
    assert len(names) == len(set(names))
    assert sum(name.startswith("governor_threads_") and name.endswith("_share") for name in names) == 32
