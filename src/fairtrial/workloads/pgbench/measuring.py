"""A finished life of pgbench as a trial's files: its window, and what its transactions and its report say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fairtrial.errors import PlaceError
from fairtrial.metrics import drive
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.workloads import agreement
from fairtrial.workloads.pgbench import agreeing, output
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.pgbench.transactions import FILE, NANOSECONDS_PER_US, TransactionHistograms, edges, kept
from fairtrial.workloads.tool import OUTPUT, ToolRun

CLOCKS_NS: Final = 5_000_000  # by which transactions may lie outside of their process's life


class PgbenchMeasurement(NamedTuple):
    """What one life gave.

    Attributes:
        files: of the trial, by name: content, or where it lies here.
        window: None if no transaction ended well.
        done: transactions that did.
    """

    files: Mapping[str, bytes | Path]
    window: Window | None
    done: int


def measured(
    ran: ToolRun, logs: Sequence[Path], *, parameters: PgbenchParameters, clock: wire.Reading
) -> PgbenchMeasurement:
    """Reads what pgbench printed and logged; the logs' directory gets the table of transactions.

    Args:
        ran: the life.
        logs: of its threads, here.
        parameters: of the workload.
        clock: the place's clocks just before pgbench started.

    Raises:
        PlaceError: there is no report, the log is not what it reports, or a clock was set meanwhile.
    """
    report = output.report(ran.text)
    if not report.whole.processed or not logs:
        return PgbenchMeasurement({}, None, report.whole.processed)
    table = logs[0].with_name(FILE)
    kept(logs, table, parameters=parameters, shift_us=(clock.realtime_ns - clock.monotonic_ns) // NANOSECONDS_PER_US)
    logged = edges(table)
    if logged is None:
        raise PlaceError("pgbench's log has none of the transactions that it reports", hint="see log/load.log")
    counted = TransactionHistograms.of(table, parameters, window=_window(report, logged, life=ran.life))
    result = counted.result().model_copy(update={"connecting_ms": report.connecting_ms})
    if differing := list(agreement.differing(agreeing.reported(report, result), OUTPUT)):
        raise PlaceError(
            f"pgbench's log of transactions differs from its report: {'; '.join(differing)}",
            hint="check whether the disk of the place was full",
        )
    files: dict[str, bytes | Path] = {
        drive.FILE: result.written(ran.usage),
        "latency.hlog": counted.latency_log().encode(),
        "timeline.parquet": counted.timeline(),
        FILE: table,
    }
    if parameters.is_open:
        files[agreeing.LATENESS] = counted.lateness_log().encode()
    return PgbenchMeasurement(files, result.window, report.whole.processed)


def _window(report: output.PgbenchReport, logged: Window, *, life: Window) -> Window:
    """Pgbench's own time, placed by its first transaction, or by the process's end where that is earlier.

    In a closed loop the first transaction begins with the window. In an open loop it should begin some time after, and
    the process ends as soon as the last one has: then its end says more.
    """
    if logged.start_ns < life.start_ns - CLOCKS_NS or logged.end_ns > life.end_ns + CLOCKS_NS:
        raise PlaceError(
            "pgbench logged transactions outside the life of its process: the place's clock was set during the trial",
            hint="do not let other programs set the clock while a study runs; slewing it is harmless",
        )
    whole_ns = report.whole_us * NANOSECONDS_PER_US
    start_ns = max(min(logged.start_ns, life.end_ns - whole_ns), logged.end_ns - whole_ns)
    return Window(start_ns=start_ns, end_ns=start_ns + whole_ns)
