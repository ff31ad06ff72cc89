"""pgbench's scalars: `result.json`, made from its log and its report, and what every timeline and telemetry give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fairtrial import foreign
from fairtrial.metrics import drive, latency
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads import tool_scalars
from fairtrial.workloads.engine import arrival_scalars as arrivals
from fairtrial.workloads.pgbench.transactions import NANOSECONDS_PER_US, PgbenchResult


def compute(directory: Path, *, window: Window, types: Sequence[str], rate: float | None = None) -> dict[str, float]:
    """Scalars of one trial, by metric name, with those types of transactions, due at a rate; see `definitions`."""
    result = foreign.of_trial(directory / drive.FILE, PgbenchResult)
    seconds = drive.seconds(directory, window)
    given_up = {each.kind: float(each.count) for each in result.errors}
    exact_us = {"max": result.latency_us.max, "mean": result.latency_us.mean} if result.latency_us.n else {}
    return (
        tool_scalars.compute(directory, result, window=window)
        | latency.compute(directory, by_type=len(types) > 1)
        | {f"latency_ns_{name}": float(value * NANOSECONDS_PER_US) for name, value in exact_us.items()}
        | {
            "throughput_tps": result.done / seconds,
            "serialization_failures": given_up.get("serialization", 0.0),
            "deadlock_failures": given_up.get("deadlock", 0.0),
            "connecting_s": result.connecting_ms / 1000,
        }
        | (_arrived(directory, result, seconds=seconds, rate=rate) if result.lag_us is not None else {})
        | ({"over_limit_share": result.late / result.done} if result.late is not None and result.done else {})
    )


def _arrived(directory: Path, result: PgbenchResult, *, seconds: float, rate: float | None) -> dict[str, float]:
    late = latency.scalars(latency.merged(latency.read(directory, file=arrivals.FILE).values()))
    logged = sum(own.committed + own.failed + own.skipped for own in result.transactions.values())
    unfinished = {} if rate is None else arrivals.least_unfinished(logged, due=rate * seconds)
    return (
        unfinished
        | {f"lateness_ns_{name}": late[f"latency_ns_{name}"] for name in arrivals.STATISTICS if late}
        | {
            "arrived_per_s": logged / seconds,
            "skipped": float(result.skipped),
            "skipped_share": result.skipped / logged if logged else 0.0,
        }
    )


def definitions(types: Sequence[str], *, is_open: bool, has_limit: bool) -> Mapping[str, MetricDefinition]:
    """Every metric of such a drive."""
    own = (*_OWN, *(OPEN if is_open else ()), *(LIMITED if has_limit else ()))
    return tool_scalars.definitions(own, latencies=latency.definitions(types if len(types) > 1 else (), exact=_EXACT))


_EXACT: Final = {
    "latency_ns_max": f"{drive.FILE}: the longest that pgbench logged, in whole microseconds",
    "latency_ns_mean": f"{drive.FILE}: sum of all latencies that pgbench logged, by their number",
}
_OWN: Final = (
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
    tool_scalars.client_cpu("pgbench's process, its start and end included"),
)
OPEN: Final = (
    *(
        each.model_copy(update={"source": f"{arrivals.FILE}: pgbench's schedule lag of transactions that ended well"})
        for name, each in arrivals.DEFINITIONS.items()
        if name.startswith("lateness_")
    ),
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
        "skipped_share", "share of skipped transactions", unit="share", source="skipped, as a share of all in the log"
    ),
    drive.definition(
        "unfinished_share",
        "unfinished transactions",
        unit="share",
        source="due at `rate` and not logged, less what chance explains, as a share of those due; they have no latency",
    ),
)
LIMITED: Final = (
    drive.definition(
        "over_limit_share",
        "share above the latency limit",
        unit="share",
        source="latencies above `latency_limit`, as a share of transactions that ended well",
    ),
)
