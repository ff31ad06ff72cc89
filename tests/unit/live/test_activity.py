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


def sampled_cpu(at_s: float, *, user: int) -> FeedLine:
    values = {"user": user, "system": 0, "idle": int(100 * at_s) - user}
    return said(at_s, TelemetryProgress(source="cpu", time_ns=int(at_s * SECOND_NS), values=values))


def test_a_series_that_was_0_at_first_begins_with_those_zeros() -> None:
    load = Activity("all.b01.a", None)
    load.hear(sampled_cpu(second, user=max(0, second - 3)) for second in range(7))
    assert list(load.charts["cpu-user"].course.values) == pytest.approx([0, 0, 0, 1, 1])


def test_a_clock_that_is_set_back_does_not_turn_a_course_around() -> None:
    load = Activity("all.b01.a", None)
    load.hear(said(at_s, RateProgress(per_s=1.0, errors=0)) for at_s in (100.0, 101.0, 41.0, 42.0, 41.9))
    assert list(load.charts["throughput"].course.seconds) == [0.0, 1.0, 1.0, 2.0, 2.0]


def test_what_is_settled_does_not_change() -> None:
    load = Activity("all.b01.a", None)
    known: dict[str, list[tuple[float, float]]] = {}
    settled_s = 0
    for tick in range(60):
        at_s = 100 + tick / 4
        load.hear([sampled_cpu(at_s, user=tick) if tick % 3 else said(at_s, RateProgress(per_s=tick, errors=0))])
        for name, chart in load.charts.items():
            points = list(zip(chart.course.seconds, chart.course.values, strict=True))
            if name in known:
                assert [p for p in points if p[0] < settled_s] == [p for p in known[name] if p[0] < settled_s]
            known[name] = points
        assert settled_s <= load.settled_s
        settled_s = load.settled_s
    assert settled_s > 13
