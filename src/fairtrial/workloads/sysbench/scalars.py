"""sysbench's scalars: `result.json`, made from its report, and what every drive's timeline and telemetry give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairtrial import foreign
from fairtrial.metrics import drive, latency
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads import tool_scalars
from fairtrial.workloads.engine import arrival_scalars
from fairtrial.workloads.sysbench.output import NANOSECONDS_PER_MS, RESOLUTION, SysbenchResult

UNKNOWN: Final = (*tool_scalars.UNKNOWN, "failed_share")  # sysbench tells no transactions given up


def compute(directory: Path, *, window: Window, rate: float | None = None) -> dict[str, float]:
    """Scalars of one trial, whose events are due at a rate, by metric name; see `definitions`."""
    result = foreign.of_trial(directory / drive.FILE, SysbenchResult)
    seconds = drive.seconds(directory, window)
    own_ms = result.latency_ms
    exact_ms = {"max": own_ms["max"], "mean": own_ms["sum"] / result.done} if result.done else {}
    return (
        tool_scalars.compute(directory, result, window=window, unknown=UNKNOWN)
        | latency.compute(directory, by_type=False)
        | {f"latency_ns_{name}": value * NANOSECONDS_PER_MS for name, value in exact_ms.items()}
        | {
            "throughput_tps": result.done / seconds,
            "statements_per_s": sum(each.statements for each in result.transactions.values()) / seconds,
            "reconnects": float(sum(each.count for each in result.errors if each.kind == "connection")),
        }
        | ({} if rate is None else arrival_scalars.least_unfinished(result.done, due=rate * seconds))
    )


def definitions(*, is_open: bool = False) -> Mapping[str, MetricDefinition]:
    """Every metric; percentiles are as coarse as sysbench's bins."""
    latencies = {
        name: each.model_copy(update={"resolution": RESOLUTION}) if name.startswith("latency_ns_p") else each
        for name, each in latency.definitions(exact=_EXACT).items()
    }
    return tool_scalars.definitions((*_OWN, *(_OPEN if is_open else ())), latencies=latencies, unknown=UNKNOWN)


_EXACT: Final = {
    "latency_ns_max": f"{drive.FILE}: sysbench's own maximum, which it prints in hundredths of a millisecond",
    "latency_ns_mean": f"{drive.FILE}: sysbench's own sum of latencies over its events",
}
_OWN: Final = (
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
    drive.definition("errors", "errors", unit="errors", source="errors that sysbench ignored, and its reconnections"),
    drive.definition(
        "retries", "retries", unit="retries", source="errors that sysbench ignored, and tried the event again"
    ),
    drive.definition("reconnects", "reconnections", unit="reconnections", source="sysbench's reconnections"),
    tool_scalars.client_cpu("sysbench's process, its start and end included"),
)
_OPEN: Final = (
    drive.definition(
        "unfinished_share",
        "unfinished events",
        unit="share",
        source="due at the option `rate` and not among sysbench's events, less what chance explains, as a share of "
        "those due; they have no latency",
    ),
)
