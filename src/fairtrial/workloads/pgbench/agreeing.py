"""Whether a trial's files are what pgbench reported and logged: its own report, and every transaction, read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairtrial import foreign
from fairtrial.metrics import drive, latency
from fairtrial.workloads import agreement
from fairtrial.workloads.agreement import FigurePair
from fairtrial.workloads.pgbench import output
from fairtrial.workloads.pgbench.output import ROUNDED_MS
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.pgbench.transactions import FILE, PgbenchResult, ScriptOutcomes, Sums, TransactionHistograms
from fairtrial.workloads.tool import OUTPUT

LATENESS: Final = "lateness.hlog"
ROUNDED: Final = ROUNDED_MS * (1 + 1e-6)  # sums are of whole numbers, their quotient is of floating point


def contradictions(directory: Path, parameters: PgbenchParameters) -> list[str]:
    """Where files disagree with what pgbench printed or with its transactions, a sentence each.

    Where in time the window lies only the transactions say; a trial that kept none has its length alone to be checked.
    """
    report = output.report((directory / OUTPUT).read_text(encoding="utf-8"))
    own = foreign.of_trial(directory / drive.FILE, PgbenchResult)
    sentences = list(agreement.differing(reported(report, own), OUTPUT))
    if not (directory / FILE).exists():
        return sentences
    counted = TransactionHistograms.of(directory / FILE, parameters, window=own.window)
    logs = {latency.FILE: counted.latency_log()}
    if parameters.is_open:
        logs[LATENESS] = counted.lateness_log()
    expected = agreement.ExpectedFiles(FILE, counted.result().figures(), logs, timeline=counted.timeline())
    return [*sentences, *expected.contradictions(directory, agreement.stored(directory))]


def reported(report: output.PgbenchReport, own: PgbenchResult) -> Iterator[FigurePair]:
    """The figures of `result.json` that pgbench prints, too."""
    length_us = (own.window.end_ns - own.window.start_ns) / 1000
    yield FigurePair("window of {}", length_us / 1e6, report.whole_us / 1e6, form="{:g} s")
    yield FigurePair("connecting_ms is {}", own.connecting_ms, report.connecting_ms, form="{:.12g}")
    each = own.transactions.values()
    names = ("committed", "rolled_back", "failed", "retried", "skipped")
    sums = {name: sum(getattr(script, name) for script in each) for name in names}
    yield from _counts("all", report.whole, ScriptOutcomes(**sums, latency_us=own.latency_us))
    yield FigurePair("{} above the latency limit", own.late or 0, report.late)
    exact = report.scripts if report.threads == 1 else []
    for (kind, outcomes), script in zip(own.transactions.items(), exact, strict=False):
        yield from _counts(kind, script, outcomes)
    if report.lag is not None:
        lag = own.lag_us or Sums()
        yield _time("mean schedule lag", lag.mean, report.lag.mean_ms)
        yield _time("largest schedule lag", lag.max, report.lag.max_ms)


def _counts(kind: str, report: output.PgbenchCounts, own: ScriptOutcomes) -> Iterator[FigurePair]:
    yield FigurePair(f"{{}} committed of {kind}", own.committed, report.processed)
    yield FigurePair(f"{{}} failed of {kind}", own.failed, report.serialization + report.deadlock)
    yield FigurePair(f"{{}} retried of {kind}", own.retried, report.retries)
    yield FigurePair(f"{{}} skipped of {kind}", own.skipped, report.skipped)
    if report.latency is not None and own.latency_us.n:
        yield _time(f"mean latency of {kind}", own.latency_us.mean, report.latency.mean_ms)
        yield _time(f"deviation of latency of {kind}", own.latency_us.deviation, report.latency.deviation_ms)


def _time(what: str, own_us: float, printed_ms: float) -> FigurePair:
    return FigurePair(f"{what} is {{}}", own_us / 1000, printed_ms, tolerance=ROUNDED, form="{:.4f} ms")
