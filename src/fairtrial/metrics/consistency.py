"""Whether a drive's three files tell the same story.

The load engine counts every transaction of the window three times: in `result.json`, in the timeline's measured
intervals and, unless it failed, in the latency log, all from the same slots. So the counts are equal, not close.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fairtrial.metrics import drive, latency
from fairtrial.metrics.latency import merged_latency
from fairtrial.metrics.series import timeline


def contradictions(directory: Path) -> list[str]:
    """Where `timeline.parquet` and `latency.hlog` disagree with `result.json`, a sentence each; empty if nowhere.

    A file that is not there contradicts nothing: whether it should be is the journal's to say.

    Raises:
        RecordError: a file is cut or damaged.
    """
    return [*of_timeline(directory), *_latencies(directory, drive.read(directory).transactions)]


def of_timeline(directory: Path) -> Iterator[str]:
    """Where `timeline.parquet` alone disagrees: for loads that time only some of what they count.

    Raises:
        RecordError: a file is cut or damaged.
    """
    transactions = drive.read(directory).transactions
    if (directory / timeline.STREAM).exists():
        yield f"{timeline.STREAM}: no interval can be read from it"
    measured = timeline.read(directory).filter("measured")
    for column in measured.columns:
        kind, outcome = next(
            (
                (column.removesuffix(f"_{outcome}"), outcome)
                for outcome in timeline.OUTCOMES
                if column.endswith(outcome)
            ),
            ("", ""),
        )
        if outcome:
            total = int(measured[column].sum())
            said = getattr(transactions[kind], outcome) if kind in transactions else 0
            if total != said:
                yield f"{timeline.FILE}: {column} adds up to {total} over the window, {drive.FILE} says {said}"


def _latencies(directory: Path, transactions: dict[str, drive.TransactionOutcomes]) -> Iterator[str]:
    if not (directory / latency.FILE).exists():
        return
    recorded = {kind: distribution.n for kind, distribution in merged_latency.read(directory).items()}
    for kind in dict.fromkeys([*transactions, *recorded]):
        outcomes = transactions.get(kind)
        done = outcomes.committed + outcomes.rolled_back if outcomes else 0
        if recorded.get(kind, 0) != done:
            yield f"{latency.FILE}: {recorded.get(kind, 0)} latencies of {kind}, {drive.FILE} says {done} transactions"
