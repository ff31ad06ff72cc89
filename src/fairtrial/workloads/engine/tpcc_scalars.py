"""TPC-C's scalars from `result.json`: throughput, how many transactions failed and why, what a transaction cost.

A transaction rolled back by the workload's own rule (clause 2.4.1.4) counts as throughput, as HammerDB's TPM counts
it; NOPM counts committed new orders only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairtrial.metrics import drive
from fairtrial.metrics.drive import FILE
from fairtrial.record.models import Window
from fairtrial.workloads.engine import arrival_scalars as arrivals
from fairtrial.workloads.engine import goodput
from fairtrial.workloads.engine import search_scalars as search

__all__ = ["DEFINITIONS", "FILE", "TYPES", "compute"]

TYPES: Final = ("new_order", "payment", "order_status", "delivery", "stock_level")
SECONDS_PER_MINUTE: Final = 60


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
    minutes = drive.seconds(directory, window) / SECONDS_PER_MINUTE
    new_orders = result.transactions.get("new_order")
    common = (
        drive.compute(directory, result, window=window)
        | arrivals.compute(directory, result, window=window)
        | search.compute(directory, result)
    )
    return common | {
        "throughput_tpm": result.done / minutes,
        "goodput_tpm": goodput.committed(directory, result, objective_s) / minutes,
        "throughput_nopm": (new_orders.committed if new_orders else 0) / minutes,
    }


DEFINITIONS: Final = {
    each.name: each
    for each in (
        goodput.goodput("goodput_tpm", unit="transactions/min", period="minute"),
        drive.definition(
            "throughput_tpm",
            "throughput",
            unit="transactions/min",
            better="higher",
            source="transactions of all types that committed or rolled back by the workload's rule, per minute",
        ),
        drive.definition(
            "throughput_nopm",
            "new-order throughput",
            unit="new orders/min",
            better="higher",
            source="new orders that committed, per minute of the window",
        ),
    )
} | dict(drive.DEFINITIONS)
