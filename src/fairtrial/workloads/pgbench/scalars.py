"""pgbench's scalars: `result.json`, made from its log and its report, and what every timeline and telemetry give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fairtrial.metrics import drive, latency
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads.engine import arrival_scalars as arrivals

NANOSECONDS_PER_US: Final = 1000
# Of the engine's own: pgbench tells neither what became of each attempt nor how busy its threads were.
UNKNOWN: Final = ("client_busy_share", "client_longest_turn_s", "deadlocks", "saturated_latencies")


def compute(directory: Path, *, window: Window, types: Sequence[str]) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `definitions`.

    Args:
        directory: the trial's.
        window: the measured one.
        types: of transactions, one for each script.

    Raises:
        RecordError: a file is damaged, or the window has no length.
    """
    driven = drive.read(directory)
    seconds = drive.seconds(directory, window)
    told = json.loads((directory / drive.FILE).read_bytes())
    common = drive.compute(directory, driven, window=window)
    given_up = {each.kind: float(each.count) for each in driven.errors}
    return (
        {name: value for name, value in common.items() if name not in UNKNOWN}
        | latency.compute(directory, by_type=len(types) > 1)
        | _exact(told["latency_us"])
        | {
            "throughput_tps": driven.done / seconds,
            "serialization_failures": given_up.get("serialization", 0.0),
            "deadlock_failures": given_up.get("deadlock", 0.0),
            "connecting_s": told["connecting_ms"] / 1000,
            "client_cpu_s": told["client"]["user_s"] + told["client"]["system_s"],
        }
        | _arrived(directory, told, seconds=seconds)
        | _late(told, done=driven.done)
    )


def _exact(sums: Mapping[str, Any]) -> dict[str, float]:
    if not sums["n"]:
        return {}
    exact_us = {"max": sums["max"], "mean": sums["sum"] / sums["n"]}
    return {f"latency_ns_{name}": float(value * NANOSECONDS_PER_US) for name, value in exact_us.items()}


def _arrived(directory: Path, told: Mapping[str, Any], *, seconds: float) -> dict[str, float]:
    """Nothing of a closed loop."""
    if told["lag_us"] is None:
        return {}
    late = latency.scalars(latency.merged(latency.read(directory, file=arrivals.FILE).values()))
    ended = [own["committed"] + own["failed"] + own["skipped"] for own in told["transactions"].values()]
    logged = sum(ended)
    return {f"lateness_ns_{name}": late[f"latency_ns_{name}"] for name in arrivals.STATISTICS if late} | {
        "arrived_per_s": logged / seconds,
        "skipped": float(told["skipped"]),
        "skipped_share": told["skipped"] / logged if logged else 0.0,
    }


def _late(told: Mapping[str, Any], *, done: int) -> dict[str, float]:
    """Nothing without a limit."""
    return {} if told["late"] is None or not done else {"over_limit_share": told["late"] / done}


def definitions(types: Sequence[str], *, is_open: bool, has_limit: bool) -> Mapping[str, MetricDefinition]:
    """Every metric of such a drive."""
    common = {name: each for name, each in drive.DEFINITIONS.items() if name not in UNKNOWN}
    found = {**common, **latency.definitions(types if len(types) > 1 else (), exact=_EXACT), **_OWN}
    if is_open:
        found |= OPEN
    return found | LIMITED if has_limit else found


_EXACT: Final = {
    "latency_ns_max": f"{drive.FILE}: the longest that pgbench logged, in whole microseconds",
    "latency_ns_mean": f"{drive.FILE}: sum of all latencies that pgbench logged, by their number",
}
_OWN: Final = {
    each.name: each
    for each in (
        drive.definition(
            "throughput_tps",
            "throughput",
            unit="transactions/s",
            better="higher",
            source="transactions that ended well, per second of pgbench's own time, without its first connections",
        ),
        drive.definition(
            "transactions",
            "transactions",
            unit="transactions",
            better="higher",
            source="transactions of all scripts that ended well",
        ),
        drive.definition(
            "errors", "errors", unit="errors", source="deadlocks and serialization failures, those tried again included"
        ),
        drive.definition(
            "retries", "retries", unit="retries", source="attempts after the first, of all transactions in the log"
        ),
        drive.definition(
            "serialization_failures",
            "serialization failures",
            unit="transactions",
            source="transactions given up because they could not be serialized",
        ),
        drive.definition(
            "deadlock_failures",
            "deadlock failures",
            unit="transactions",
            source="transactions given up because of a deadlock",
        ),
        MetricDefinition(
            name="connecting_s",
            label="time to connect",
            unit="s",
            better="lower",
            kind="wall_clock",
            source=f"{drive.FILE}: pgbench's own initial connection time, before the window; 0 where each transaction "
            "connects anew",
        ),
        drive.definition(
            "client_cpu_s",
            "client's processor time",
            unit="s",
            source="the kernel's accounting of pgbench's process, its start and end included",
        ),
    )
}
OPEN: Final = {
    name: each.model_copy(update={"source": f"{arrivals.FILE}: pgbench's schedule lag of transactions that ended well"})
    for name, each in arrivals.DEFINITIONS.items()
    if name.startswith("lateness_")
} | {
    each.name: each
    for each in (
        drive.definition(
            "arrived_per_s",
            "arrivals that a client took up",
            unit="transactions/s",
            better="higher",
            source="transactions that ended well, were given up or skipped, per second; what was due while every "
            "client was busy until the end is in none of pgbench's figures",
        ),
        drive.definition(
            "skipped",
            "skipped transactions",
            unit="transactions",
            source="never begun because they were later than `latency_limit`",
        ),
        drive.definition(
            "skipped_share",
            "share of skipped transactions",
            unit="share",
            source="skipped, as a share of all in the log",
        ),
    )
}
LIMITED: Final = {
    "over_limit_share": drive.definition(
        "over_limit_share",
        "share above the latency limit",
        unit="share",
        source="latencies above `latency_limit`, as a share of transactions that ended well",
    )
}
