"""Goodput: the part of the throughput that is of use to whoever waits for it.

Throughput counts every transaction that ran to its end, one that the workload's own rule rolls back (clause 2.4.1.4)
included. Goodput counts those that committed and, where the study names an objective, not later than that after their
intended start. Failed transactions are in neither.
"""

from __future__ import annotations

from pathlib import Path

from fairtrial.metrics import latency
from fairtrial.metrics.drive import NANOSECONDS_PER_SECOND, DriveResult, definition
from fairtrial.study.catalogue import MetricDefinition


def committed(directory: Path, result: DriveResult, objective_s: float | None) -> float:
    """Transactions of the window that committed in time.

    Latencies do not tell a commit from a rollback by rule, so the latter (1 % of TPC-C's new orders) are taken out in
    proportion, type by type. In time is what lies in a histogram class below the objective or around it: the
    resolution is 3 significant digits.

    Raises:
        RecordError: the histogram log cannot be decoded.
    """
    if objective_s is None:
        return float(sum(outcome.committed for outcome in result.transactions.values()))
    objective_ns = objective_s * NANOSECONDS_PER_SECOND
    total = 0.0
    for kind, distribution in latency.read(directory).items():
        outcome = result.transactions.get(kind)
        if outcome is not None and distribution.n:
            in_time = int(distribution.counts[distribution.lowest_ns <= objective_ns].sum())
            total += outcome.committed * in_time / distribution.n
    return total


def goodput(name: str, *, unit: str, period: str) -> MetricDefinition:
    """The definition of a workload's goodput."""
    return definition(
        name,
        "goodput",
        unit=unit,
        better="higher",
        source=f"transactions that committed, within the study's `objective` (latency.hlog) if any, per {period}",
    )
