"""What every drive of the native load engine has in common: `result.json`, and the scalars that no workload shapes.

A transaction counts in the window if it ended there. One rolled back by the workload's own rule did its work and counts
as done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, Field

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.metrics import per_transaction
from fairtrial.metrics.series import stability, steadiness
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

FILE: Final = "result.json"
NANOSECONDS_PER_SECOND: Final = 1e9
LARGEST: Final = 1 << 62

Count = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]  # sums of them are floats


class TransactionOutcomes(BaseModel):
    """How transactions of one type ended inside the window; the last two are 0 in records of older engines."""

    committed: Count
    rolled_back: Count
    failed: Count
    retried: Count
    statements: Count = 0
    saturated: Count = 0

    @property
    def done(self) -> int:
        """Committed, or rolled back by the workload's own rule."""
        return self.committed + self.rolled_back


class ArrivalCounts(BaseModel):
    """What became of the transactions that should have begun; the last two are missing in records of older engines.

    Attributes:
        under_way: begun, and not ended when the window was over.
        overdue: of a search's probe: neither ended nor given up then, and older than the objective's limit.
    """

    offered: Count
    waiting: Count
    waiting_most: Count
    timed_out: Count | None = None
    under_way: Count | None = None
    overdue: Count | None = None


class Quantiles(BaseModel):
    """Percentiles, nanoseconds."""

    p50_ns: Count
    p95_ns: Count
    p99_ns: Count
    p999_ns: Count
    max_ns: Count


class SearchProbe(BaseModel):
    """One window of a search, with files of its own below `directory`."""

    directory: str
    rate_per_s: float
    window: Window
    offered: Count
    done: Count
    latency: Quantiles | None = None
    client_busy_share: float | None = None
    met: bool


class SearchObjective(BaseModel):
    """The objective of a search: the percentile of latency must not exceed the limit."""

    percentile: str
    limit_s: float


class SearchResult(BaseModel):
    """A search for the highest rate that meets an objective."""

    asked: SearchObjective
    met_per_s: float | None = None
    missed_per_s: float | None = None
    complete: bool
    probes: list[SearchProbe]


class ErrorCount(BaseModel):
    """Errors of one kind inside the window."""

    kind: str
    count: Count


class ClientLoop(BaseModel):
    """How busy one thread of the client was, over the whole drive."""

    busy_s: float
    idle_s: float
    longest_turn_s: float

    @property
    def busy_share(self) -> float:
        """0 if it never ran."""
        whole = self.busy_s + self.idle_s
        return self.busy_s / whole if whole else 0.0


class DriveResult(BaseModel):
    """The part of `result.json` that scalars come from; its owner is the `Driven` type of the protocol crate."""

    window: Window
    transactions: dict[str, TransactionOutcomes]
    arrivals: ArrivalCounts | None = None
    search: SearchResult | None = None
    errors: list[ErrorCount]
    loops: list[ClientLoop] = []

    @property
    def done(self) -> int:
        """Transactions of all types."""
        return sum(outcome.done for outcome in self.transactions.values())

    @property
    def failed(self) -> int:
        """Transactions of all types that were given up after they had begun."""
        return sum(outcome.failed for outcome in self.transactions.values())


def read(directory: Path) -> DriveResult:
    """A trial's `result.json`.

    Raises:
        RecordError: missing, cut or changed.
    """
    return foreign.of_trial(directory / FILE, DriveResult)


def seconds(directory: Path, window: Window) -> float:
    """Length of the measured window.

    Raises:
        RecordError: it has none.
    """
    length = (window.end_ns - window.start_ns) / NANOSECONDS_PER_SECOND
    if length <= 0:
        raise RecordError(
            f"{directory}: the measured window has no length", hint="the trial ended before it measured; run it again"
        )
    return length


def compute(directory: Path, driven: DriveResult, *, window: Window) -> dict[str, float]:
    """The scalars that every workload of the engine has; those per transaction take telemetry, too: see `DEFINITIONS`.

    Raises:
        RecordError: the timeline is damaged.
    """
    done = driven.done
    failed = sum(outcome.failed for outcome in driven.transactions.values())
    loops = {
        "client_busy_share": max((loop.busy_share for loop in driven.loops), default=0.0),
        "client_longest_turn_s": max((loop.longest_turn_s for loop in driven.loops), default=0.0),
    }
    return (
        stability.compute(directory, window=window)
        | steadiness.compute(directory, window=window)
        | (loops if driven.loops else {})
        | {
            "transactions": float(done),
            "errors": float(sum(error.count for error in driven.errors)),
            "retries": float(sum(outcome.retried for outcome in driven.transactions.values())),
            "deadlocks": float(sum(error.count for error in driven.errors if error.kind == "deadlock")),
            "failed_share": failed / (done + failed) if done + failed else 0.0,
            "saturated_latencies": float(sum(outcome.saturated for outcome in driven.transactions.values())),
        }
    )


def definition(name: str, label: str, *, unit: str, better: Better = "lower", source: str) -> MetricDefinition:
    """A metric from `result.json`; rates are wall-clock quantities, everything else is a count."""
    wall_clock = name.startswith(("throughput", "goodput", "client_")) or name.endswith("_per_s")
    kind: MetricKind = "wall_clock" if wall_clock else "count"
    return MetricDefinition(name=name, label=label, unit=unit, better=better, kind=kind, source=f"{FILE}: {source}")


DEFINITIONS: Final = (
    per_transaction.DEFINITIONS
    | stability.DEFINITIONS
    | steadiness.DEFINITIONS
    | {
        each.name: each
        for each in (
            definition(
                "transactions",
                "transactions",
                unit="transactions",
                better="higher",
                source="transactions of all types that committed or rolled back by the workload's rule",
            ),
            definition("errors", "errors", unit="errors", source="errors of every kind, retried ones included"),
            definition(
                "retries", "retries", unit="retries", source="attempts repeated after the system rolled one back"
            ),
            definition(
                "client_busy_share",
                "client's busiest thread",
                unit="share of time",
                source="loops: time on a processor or ready for one, of the busiest thread in the window; not SQLite",
            ),
            definition(
                "client_longest_turn_s",
                "client's longest turn",
                unit="s",
                source="loops: longest time in which a thread did not look for answers, whole drive; not of SQLite",
            ),
            definition("deadlocks", "deadlocks", unit="deadlocks", source="errors the system called a deadlock"),
            definition(
                "failed_share",
                "failed transactions",
                unit="share",
                source="transactions given up, as a share of all that ended in the window",
            ),
            definition(
                "saturated_latencies",
                "latencies beyond the histogram",
                unit="transactions",
                source="transactions that took longer than an hour, which histograms keep as an hour",
            ),
        )
    }
)
