"""Counts of telemetry per transaction: what a transaction cost, whatever the time it took.

Counts stay evidence where clocks are not, as under emulation, and a faster arm, which does more in a timed window, is
not blamed for that. But it comes further in a timed window, where caches are warmer and data are more: counts of equal
work need ramp-up and window that end with a number of transactions. The same holds for the server's processor time and
the drive's retries, which other files give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairtrial.metrics import telemetry
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.service_counters import ERROR_SUFFIX

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
RETRIES: Final = "retries_per_transaction"
PROCESSOR_TIME: Final = "server_cpu_ms_per_transaction"
MILLISECONDS_PER_SECOND: Final = 1000.0
_OVER: Final = "over the transactions of the window"


def name_of(count: str) -> str:
    """`refaults` → `refaults_per_transaction`."""
    return f"{count}_per_transaction"


def joined(common: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    """All scalars of a trial, with those per transaction that its telemetry allows; none without transactions.

    Args:
        common: of its telemetry.
        own: of its workload, with `transactions` and `retries` where it tells them.
    """
    scalars, done = {**common, **own}, own.get("transactions")
    if not done:
        return scalars
    each_of = {name: (name_of(name), 1.0) for name in COUNTS}
    each_of["server_cpu_s"] = (PROCESSOR_TIME, MILLISECONDS_PER_SECOND)
    scalars |= {
        f"{target}{suffix}": common[f"{name}{suffix}"] * scale / done
        for suffix in ("", ERROR_SUFFIX)
        for name, (target, scale) in each_of.items()
        if f"{name}{suffix}" in common
    }
    if "retries" in own:
        scalars[RETRIES] = own["retries"] / done
    return scalars


def _definition(count: str) -> MetricDefinition:
    counted = telemetry.DEFINITIONS[count]
    return MetricDefinition(
        name=name_of(count),
        label=f"{counted.label} per transaction",
        unit=f"{counted.unit}/transaction",
        better=counted.better,
        kind="count",
        source=f"{counted.source}; {_OVER}",
    )


_TIME: Final = telemetry.DEFINITIONS["server_cpu_s"]
DEFINITIONS: Final = {name_of(count): _definition(count) for count in COUNTS} | {
    each.name: each
    for each in (
        MetricDefinition(
            name=PROCESSOR_TIME,
            label=f"{_TIME.label} per transaction",
            unit="ms/transaction",
            better="lower",
            kind="wall_clock",
            source=f"{_TIME.source}; {_OVER}",
        ),
        MetricDefinition(
            name=RETRIES,
            label="retries per transaction",
            unit="retries/transaction",
            better="lower",
            kind="count",
            source=f"result.json: as `retries`; {_OVER}",
        ),
    )
}
