"""What a running trial says, line by line, becomes the charts that its files give later."""

from __future__ import annotations

import polars as pl
import pytest

from fairtrial.live.activity import Activity
from fairtrial.live.finished import sampled
from fairtrial.protocol.generated import MeasuringProgress, RateProgress
from fairtrial.protocol.progress import ProgressLine, TelemetryProgress
from fairtrial.record.live import FeedLine

SECOND_NS = 1_000_000_000


def said(at_s: float, line: ProgressLine) -> FeedLine:
    return FeedLine(trial="all.b01.a", at_s=at_s, said=line)


def test_rates_and_percentiles_are_told_in_their_units() -> None:
    load = Activity("all.b01.a", None)
    load.hear(
        [
            said(100.0, RateProgress(per_s=50.0, errors=0, p95_ns=2_000_000, p99_ns=9_000_000)),
            said(100.5, MeasuringProgress(time_ns=1)),
            said(101.0, RateProgress(per_s=60.0, errors=3)),
        ]
    )
    assert (load.rate, load.errors, load.doing, load.marks) == ("60/s", 3, "measuring", {"measuring": 0.5})
    assert list(load.charts["throughput"].course.values) == [50.0, 60.0]
    assert list(load.charts["p95"].course.values) == [2.0]
    assert list(load.charts["p99"].course.values) == [9.0]


def test_telemetry_is_what_the_files_of_the_trial_say() -> None:
    rows = [
        {"time_ns": second * SECOND_NS, "user": 40 * second, "system": 10 * second**2, "idle": 50 * second}
        for second in range(6)
    ]
    load = Activity("all.b01.a", None)
    load.hear(
        said(100.0 + second, TelemetryProgress(source="cpu", time_ns=row.pop("time_ns"), values=row))
        for second, row in ((row["time_ns"] // SECOND_NS, dict(row)) for row in rows)
    )
    later = sampled(pl.DataFrame(rows), "cpu", zero_ns=0)
    for name in ("cpu-user", "cpu-system"):
        now = load.charts[name].course
        assert list(now.values) == pytest.approx(list(later[name].course.values)[: len(now)])
        assert len(now) == 4  # the last second is not over
    assert "cpu-steal" not in load.charts  # zero throughout says nothing


def test_disks_are_added_up_without_their_partitions() -> None:
    load = Activity("all.b01.a", None)
    lines = [
        TelemetryProgress(
            source="disks",
            time_ns=second * SECOND_NS,
            values={"vda.sectors_read": 2048 * second, "vda1.sectors_read": 2048 * second, "vdb.sectors_read": 0},
        )
        for second in range(4)
    ]
    load.hear(said(50.0 + second, line) for second, line in enumerate(lines))
    assert list(load.charts["disk-read"].course.values) == pytest.approx([1.0, 1.0])  # MiB/s, of vda alone
