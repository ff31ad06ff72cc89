"""The OLTP family's scalars from `result.json`: transactions and statements per second, and what every drive has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairtrial.metrics import drive
from fairtrial.record.models import Window
from fairtrial.workloads.engine import arrival_scalars as arrivals
from fairtrial.workloads.engine import goodput
from fairtrial.workloads.engine import search_scalars as search


def compute(directory: Path, *, window: Window, objective_s: float | None = None) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `DEFINITIONS`.

    Args:
        directory: the trial's.
        window: the measured one.
        objective_s: latency within which a committed transaction counts as goodput; None: every one does.

    Raises:
        RecordError: `result.json` is damaged, or the window has no length.
    """
    result = drive.read(directory)
    seconds = drive.seconds(directory, window)
    statements = sum(outcome.statements for outcome in result.transactions.values())
    common = (
        drive.compute(directory, result, window=window)
        | arrivals.compute(directory, result, window=window)
        | search.compute(directory, result)
    )
    return common | {
        "throughput_tps": result.done / seconds,
        "goodput_tps": goodput.committed(directory, result, objective_s) / seconds,
        "statements_per_s": statements / seconds,
    }


DEFINITIONS: Final = {
    each.name: each
    for each in (
        goodput.goodput("goodput_tps", unit="transactions/s", period="second"),
        drive.definition(
            "throughput_tps",
            "throughput",
            unit="transactions/s",
            better="higher",
            source="transactions that committed or rolled back by the workload's rule, per second of the window",
        ),
        drive.definition(
            "statements_per_s",
            "statements",
            unit="statements/s",
            better="higher",
            source="statements of the transactions that ended in the window, BEGIN, COMMIT and repeated attempts "
            "included, per second",
        ),
    )
} | dict(drive.DEFINITIONS)
