"""Counts of telemetry per transaction: what a transaction cost, whatever the time it took.

Counts stay evidence where clocks are not, as under emulation, and a faster arm, which does more in a timed window, is
not blamed for that. But it comes further in a timed window, where caches are warmer and data are more: counts of equal
work need ramp-up and window that end with a number of transactions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairtrial.metrics import telemetry
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition

COUNTS: Final = (
    "refaults",
    "major_faults",
    "server_major_faults",
    "swapped_in_pages",
    "swapped_out_pages",
    "pages_scanned_direct",
    "pages_reclaimed",
    "disk_read_bytes",
    "disk_written_bytes",
    "context_switches",
    "row_lock_waits",
    "buffer_pool_reads",
    "log_written_bytes",
    "server_data_read_bytes",
    "server_data_written_bytes",
)


def name_of(count: str) -> str:
    """`refaults` → `refaults_per_transaction`."""
    return f"{count}_per_transaction"


def compute(directory: Path, *, window: Window, transactions: int) -> dict[str, float]:
    """The counts that the trial's telemetry allows, each over `transactions`; empty without transactions.

    Raises:
        RecordError: a file is damaged.
    """
    if not transactions:
        return {}
    counted = telemetry.compute(directory, window=window, facts={})  # counts need no facts of the place
    return {name_of(name): counted[name] / transactions for name in COUNTS if name in counted}


def _definition(count: str) -> MetricDefinition:
    counted = telemetry.DEFINITIONS[count]
    return MetricDefinition(
        name=name_of(count),
        label=f"{counted.label} per transaction",
        unit=f"{counted.unit}/transaction",
        better=counted.better,
        kind="count",
        source=f"{counted.source}; over the transactions of the window",
    )


DEFINITIONS: Final = {name_of(count): _definition(count) for count in COUNTS}
