"""sysbench's scalars: `result.json`, made from its report, and what every drive's timeline and telemetry give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairtrial.metrics import drive, latency
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition

NANOSECONDS_PER_MS: Final = 1e6
# Of the engine's own: sysbench tells neither kinds of errors nor transactions given up, and its loops are its own.
UNKNOWN: Final = ("client_busy_share", "client_longest_turn_s", "deadlocks", "failed_share", "saturated_latencies")


def compute(directory: Path, *, window: Window) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `definitions`.

    Raises:
        RecordError: a file is damaged, or the window has no length.
    """
    driven = drive.read(directory)
    seconds = drive.seconds(directory, window)
    told = json.loads((directory / drive.FILE).read_bytes())
    client = told["client"]
    own_ms = told["latency_ms"]
    exact_ms = {"max": own_ms["max"], "mean": own_ms["sum"] / driven.done} if driven.done else {}
    common = drive.compute(directory, driven, window=window)
    return (
        {name: value for name, value in common.items() if name not in UNKNOWN}
        | latency.compute(directory, by_type=False)
        | {f"latency_ns_{name}": value * NANOSECONDS_PER_MS for name, value in exact_ms.items()}
        | {
            "throughput_tps": driven.done / seconds,
            "statements_per_s": sum(each.statements for each in driven.transactions.values()) / seconds,
            "reconnects": float(sum(each.count for each in driven.errors if each.kind == "connection")),
            "client_cpu_s": client["user_s"] + client["system_s"],
        }
    )


def definitions(*, resolution: float) -> Mapping[str, MetricDefinition]:
    """Every metric; `resolution`: of latency percentiles, the width of sysbench's bins."""
    common = {name: each for name, each in drive.DEFINITIONS.items() if name not in UNKNOWN}
    latencies = {
        name: each.model_copy(update={"resolution": resolution}) if name.startswith("latency_ns_p") else each
        for name, each in latency.definitions(exact=_EXACT).items()
    }
    return {**common, **latencies, **_OWN}


_EXACT: Final = {
    "latency_ns_max": f"{drive.FILE}: sysbench's own maximum, which it prints in hundredths of a millisecond",
    "latency_ns_mean": f"{drive.FILE}: sysbench's own sum of latencies over its events",
}
_OWN: Final = {
    each.name: each
    for each in (
        drive.definition(
            "throughput_tps",
            "throughput",
            unit="transactions/s",
            better="higher",
            source="sysbench's events, per second of its own total time",
        ),
        drive.definition(
            "statements_per_s",
            "statements",
            unit="statements/s",
            better="higher",
            source="sysbench's queries: reads, writes and others, repeated attempts included, per second",
        ),
        drive.definition(
            "errors", "errors", unit="errors", source="errors that sysbench ignored, and its reconnections"
        ),
        drive.definition(
            "retries", "retries", unit="retries", source="errors that sysbench ignored, and tried the event again"
        ),
        drive.definition("reconnects", "reconnections", unit="reconnections", source="sysbench's reconnections"),
        drive.definition(
            "client_cpu_s",
            "client's processor time",
            unit="s",
            source="the kernel's accounting of sysbench's process, its start and end included",
        ),
    )
}
