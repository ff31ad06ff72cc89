"""TPC-C's scalars from `result.json`: throughput, how many transactions failed and why, what a transaction cost.

A transaction counts in the window if it ended there. One rolled back by the workload's own rule (clause 2.4.1.4) did
its work and counts as throughput, as HammerDB's TPM counts it; NOPM counts committed new orders only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from fairtrial.errors import RecordError
from fairtrial.metrics import per_transaction
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

FILE: Final = "result.json"
NANOSECONDS_PER_MINUTE: Final = 60e9


class Outcomes(BaseModel):
    """How transactions of one type ended inside the window."""

    committed: int
    rolled_back: int
    failed: int
    retried: int


class ErrorCount(BaseModel):
    """Errors of one kind inside the window."""

    kind: str
    count: int


class Driven(BaseModel):
    """The part of `result.json` that scalars come from; its owner is the `Driven` type of the protocol crate."""

    window: Window
    transactions: dict[str, Outcomes]
    errors: list[ErrorCount]


def read(directory: Path) -> Driven:
    """A trial's `result.json`.

    Raises:
        RecordError: missing, cut or changed.
    """
    path = directory / FILE
    try:
        return Driven.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError) as error:
        raise RecordError(
            f"{path} cannot be read: {error}", hint="restore the trial from a copy, or run it again"
        ) from error


def compute(directory: Path, *, window: Window) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `DEFINITIONS`.

    Raises:
        RecordError: `result.json` is damaged, or the window has no length.
    """
    driven = read(directory)
    minutes = (window.end_ns - window.start_ns) / NANOSECONDS_PER_MINUTE
    if minutes <= 0:
        raise RecordError(
            f"{directory}: the measured window has no length", hint="the trial ended before it measured; run it again"
        )
    outcomes = driven.transactions.values()
    done = sum(outcome.committed + outcome.rolled_back for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    new_orders = driven.transactions.get("new_order")
    return per_transaction.compute(directory, window=window, transactions=done) | {
        "throughput_tpm": done / minutes,
        "throughput_nopm": (new_orders.committed if new_orders else 0) / minutes,
        "transactions": float(done),
        "errors": float(sum(error.count for error in driven.errors)),
        "retries": float(sum(outcome.retried for outcome in outcomes)),
        "deadlocks": float(sum(error.count for error in driven.errors if error.kind == "deadlock")),
        "failed_share": failed / (done + failed) if done + failed else 0.0,
    }


def _definition(name: str, label: str, *, unit: str, better: Better = "lower", source: str) -> MetricDefinition:
    kind: MetricKind = "wall_clock" if name.startswith("throughput") else "count"
    return MetricDefinition(name=name, label=label, unit=unit, better=better, kind=kind, source=f"{FILE}: {source}")


DEFINITIONS: Final = per_transaction.DEFINITIONS | {
    definition.name: definition
    for definition in (
        _definition(
            "throughput_tpm",
            "throughput",
            unit="transactions/min",
            better="higher",
            source="transactions of all types that committed or rolled back by the workload's rule, per minute",
        ),
        _definition(
            "throughput_nopm",
            "new-order throughput",
            unit="new orders/min",
            better="higher",
            source="new orders that committed, per minute of the window",
        ),
        _definition(
            "transactions",
            "transactions",
            unit="transactions",
            better="higher",
            source="transactions of all types that committed or rolled back by the workload's rule",
        ),
        _definition("errors", "errors", unit="errors", source="errors of every kind, retried ones included"),
        _definition("retries", "retries", unit="retries", source="attempts repeated after the system rolled one back"),
        _definition("deadlocks", "deadlocks", unit="deadlocks", source="errors the system called a deadlock"),
        _definition(
            "failed_share",
            "failed transactions",
            unit="share",
            source="transactions given up, as a share of all that ended in the window",
        ),
    )
}
