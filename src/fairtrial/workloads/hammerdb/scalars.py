"""HammerDB's scalars: `result.json`, made from what it printed, and what every drive's timeline and telemetry give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairtrial import foreign
from fairtrial.metrics import drive, per_transaction
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads import tool_scalars
from fairtrial.workloads.engine import tpcc_scalars as tpcc
from fairtrial.workloads.hammerdb.output import NANOSECONDS_PER_MS, HammerdbResult

UNKNOWN: Final = (*tool_scalars.UNKNOWN, "failed_share", "retries", per_transaction.RETRIES)  # HammerDB tells none
# xtprof's statistics, and how ours are called.
STATISTICS: Final = {"p50": "median", "p95": "p95", "p99": "p99", "max": "maximum", "avg": "mean"}


def compute(directory: Path, *, window: Window) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `definitions`."""
    result = foreign.of_trial(directory / drive.FILE, HammerdbResult)
    own = {
        "throughput_nopm": float(result.nopm),
        "throughput_tpm": float(result.tpm),
        "client_counting_s": result.counting_ns / drive.NANOSECONDS_PER_SECOND,
    }
    for kind, figures in result.latency_ms.items():
        own |= {_latency(kind, name): figures[name] * NANOSECONDS_PER_MS for name in STATISTICS}
        own[f"{kind}_calls"] = figures["calls"]
    return tool_scalars.compute(directory, result, window=window, unknown=UNKNOWN) | own


def _latency(kind: str, statistic: str) -> str:
    return f"{kind}_latency_ns_{'mean' if statistic == 'avg' else statistic}"


def definitions(*, profiled: bool) -> Mapping[str, MetricDefinition]:
    """Every metric; latencies only where HammerDB was asked for its time profile."""
    return tool_scalars.definitions((*_OWN, *(_PROFILED if profiled else ())), latencies={}, unknown=UNKNOWN)


_OWN: Final = (
    drive.definition(
        "throughput_nopm",
        "new-order throughput",
        unit="new orders/min",
        better="higher",
        source="HammerDB's NOPM: growth of the sum of d_next_o_id, by the minutes it was asked for, rounded down",
    ),
    drive.definition(
        "throughput_tpm",
        "throughput",
        unit="transactions/min",
        better="higher",
        source="HammerDB's TPM: the server's commits and rollbacks, whoever asked for them, by the same minutes",
    ),
    drive.definition(
        "transactions", "transactions", unit="transactions", better="higher", source="HammerDB's TPM times its minutes"
    ),
    drive.definition(
        "errors",
        "errors",
        unit="errors",
        source="lines of users inside the window that are errors; with `raise_error` the first ends the trial",
    ),
    tool_scalars.client_cpu("HammerDB's process, from its start to its end, ramp-up included"),
    drive.definition(
        "client_counting_s",
        "HammerDB's counting",
        unit="s",
        source="what its two counts took: by at most so much its window is longer than the trial's",
    ),
)
_PROFILED: Final = tuple(
    each
    for kind in tpcc.TYPES
    for each in (
        *(
            MetricDefinition(
                name=_latency(kind, statistic),
                label=f"{words} {kind.replace('_', '-')} latency",
                unit="ns",
                better="lower",
                kind="wall_clock",
                source=f"{drive.FILE}: xtprof's over all users, ramp-up and their late end included",
            )
            for statistic, words in STATISTICS.items()
        ),
        drive.definition(
            f"{kind}_calls",
            f"{kind.replace('_', '-')} calls",
            unit="calls",
            better="higher",
            source="calls that xtprof timed, of all users, ramp-up and their late end included",
        ),
    )
)
