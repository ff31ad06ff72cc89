"""Scalars of an open loop: how late transactions began, and how many waited. A closed loop has none of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from fairtrial.metrics import drive, latency
from fairtrial.metrics.latency import percentiles
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition

FILE: Final = "lateness.hlog"
CHANCE_SDS: Final = 4.0
STATISTICS: Final = {"p50": "median", "p99": "p99", "max": "maximum"}


def compute(directory: Path, result: drive.DriveResult, *, window: Window) -> dict[str, float]:
    """Scalars of one trial; empty if its users began when they liked.

    Raises:
        RecordError: `lateness.hlog` cannot be decoded.
    """
    arrived = result.arrivals
    if arrived is None:
        return {}
    late = latency.scalars(latency.merged(latency.read(directory, file=FILE).values()))
    return (
        {f"lateness_ns_{name}": late[f"latency_ns_{name}"] for name in STATISTICS if late}
        | {
            "offered_per_s": arrived.offered / drive.seconds(directory, window),
            "queue_length_max": float(arrived.waiting_most),
            "queue_length_end": float(arrived.waiting),
        }
        | _unfinished(arrived)
        | _timed_out(arrived)
    )


def _unfinished(arrived: drive.ArrivalCounts) -> dict[str, float]:
    """Nothing where the engine did not count them; a queue may be older than the window, and longer than all it had."""
    if arrived.under_way is None or not arrived.offered:
        return {}
    return {"unfinished_share": min(1.0, (arrived.waiting + arrived.under_way) / arrived.offered)}


def least_unfinished(ended: int, *, due: float) -> dict[str, float]:
    """Of a tool that says at what rate transactions are due, at random instants, and not how many: the least share.

    By chance fewer may have been due: four standard deviations are left out.
    """
    return {"unfinished_share": max(0.0, 1 - (ended + CHANCE_SDS * math.sqrt(due)) / due)}


def _timed_out(arrived: drive.ArrivalCounts) -> dict[str, float]:
    """Nothing where all wait, however long."""
    if arrived.timed_out is None or not arrived.offered:
        return {}
    return {"timed_out_share": arrived.timed_out / arrived.offered}


def _lateness(statistic: str, words: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"lateness_ns_{statistic}",
        label=f"{words} lateness",
        unit="ns",
        better="lower",
        kind="wall_clock",
        resolution=percentiles.RESOLUTION,
        source=f"{FILE}: how much later than they should transactions began that ended in the window",
    )


DEFINITIONS: Final = {
    each.name: each
    for each in (
        *(_lateness(statistic, words) for statistic, words in STATISTICS.items()),
        drive.definition(
            "offered_per_s",
            "offered load",
            unit="transactions/s",
            better="higher",
            source="transactions that should have begun inside the window, per second",
        ),
        drive.definition(
            "queue_length_max",
            "longest queue",
            unit="transactions",
            source="most that should have begun and waited for a user, at the end of any interval of the window",
        ),
        drive.definition(
            "queue_length_end",
            "queue at the end",
            unit="transactions",
            source="should have begun and still waited for a user when the window was over",
        ),
        drive.definition(
            "unfinished_share",
            "unfinished transactions",
            unit="share",
            source="waited for a user or were in progress when the window was over, as a share of those that should "
            "have begun inside it, at most 1; they have no latency",
        ),
    )
}

TIMED_OUT: Final = {
    "timed_out_share": drive.definition(
        "timed_out_share",
        "timed-out transactions",
        unit="share",
        source="given up because they had waited longer than `queue_timeout`, as a share of those that should have "
        "begun; latency and lateness are of the others",
    )
}
