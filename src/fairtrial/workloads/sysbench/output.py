"""sysbench's output as our own files: its report, its histogram, and the interval lines of `observing.lua`.

Counts of intervals are exact, and what the whole run has beyond them is the last one, so that the timeline adds up to
the report. The histogram is of the whole window: sysbench prints no other. A bin is a 1,024th of the logarithmic scale
from a microsecond to 100 s, 1.8 % wide, and printed by its middle, in milliseconds of three decimals; it is kept as
its highest value. Source: sysbench's sb_histogram.c, sysbench.c and db_driver.c of 1.0.20.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Field

from fairtrial.errors import PlaceError
from fairtrial.metrics import latency
from fairtrial.metrics.drive import LARGEST, ErrorCount, TransactionOutcomes
from fairtrial.record.models import Window
from fairtrial.workloads import agreement, made_files
from fairtrial.workloads.made_files import HistogramLine
from fairtrial.workloads.tool import COUNT, DECIMAL, OUTPUT, WORDS

TYPE: Final = "event"  # the one type of transaction that sysbench knows
BINS: Final = 1024
LOWEST_MS, HIGHEST_MS = 0.001, 100_000.0
RESOLUTION: Final = math.exp(math.log(HIGHEST_MS / LOWEST_MS) / (BINS - 1)) - 1  # a bin's width, as a share of it
ROUNDED_MS: Final = 0.0005  # at most, by printing a bin's middle
NANOSECONDS_PER_MS: Final = 1e6
NANOSECONDS_PER_S: Final = 1e9
_MARK: Final = "fairtrial: "
_BIN: Final = re.compile(rf"^ *{DECIMAL} \|[* ]{{40}} {COUNT}$", re.MULTILINE)
_INTERVAL: Final = re.compile(rf"{_MARK}{COUNT} {DECIMAL}" + rf" {COUNT}" * 6)
_COMMENT: Final = "Latencies of sysbench's events, nanoseconds; values are upper ends of sysbench's bins"


class SysbenchCounts(NamedTuple):
    """What sysbench counts: `statements` are reads, writes and others; `errors` those it ignored and tried again."""

    events: int
    reads: int
    writes: int
    others: int
    errors: int
    reconnects: int


class SysbenchInterval(NamedTuple):
    """What happened since the interval before, or the start; its end on the place's clock, and on sysbench's own."""

    end_ns: int
    since_start_s: float
    counts: SysbenchCounts


class SysbenchReport(NamedTuple):
    """What sysbench prints at its end."""

    total_s: float
    counts: SysbenchCounts
    latency_ms: dict[str, float]


class SysbenchResult(made_files.ToolResult):
    """`result.json`."""

    statements: dict[str, int] = Field(default_factory=dict)
    latency_ms: dict[str, float]
    total_s: float = 0.0


def intervals(text: str) -> list[SysbenchInterval]:
    """The lines of `observing.lua`, in their order.

    Raises:
        PlaceError: one is cut.
    """
    lines = []
    for line in text.splitlines():
        if not line.startswith(_MARK):
            continue
        if (found := _INTERVAL.fullmatch(line)) is None:
            raise PlaceError(f"sysbench's output has a damaged line: {line}", hint="see log/load.log")
        now_ns, since_start_s, *counts = found.groups()
        lines.append(SysbenchInterval(int(now_ns), float(since_start_s), SysbenchCounts(*map(int, counts))))
    return lines


def report(text: str) -> SysbenchReport:
    """The last part of the output.

    Raises:
        PlaceError: it is not there.
    """

    def number(expression: str, missing: str | None = None) -> str:
        match = re.search(expression, text, re.MULTILINE)
        if match is None and missing is not None:
            return missing
        if match is None:
            raise PlaceError(f"sysbench did not print a report: {text[-WORDS:]}", hint="see log/load.log")
        return match[1]

    counts = SysbenchCounts(
        events=int(number(rf"^ +total number of events: +{COUNT}$")),
        reads=int(number(rf"^ +read: +{COUNT}$", "0")),  # a script without statements has no such section
        writes=int(number(rf"^ +write: +{COUNT}$", "0")),
        others=int(number(rf"^ +other: +{COUNT}$", "0")),
        errors=int(number(rf"^ +ignored errors: +{COUNT} ", "0")),
        reconnects=int(number(rf"^ +reconnects: +{COUNT} ", "0")),
    )
    latency_ms = {name: float(number(rf"^ +{name}: +{DECIMAL}$")) for name in ("min", "max", "sum")}
    total_s = float(number(rf"^ +total time: +{DECIMAL}s$"))
    return SysbenchReport(total_s=total_s, counts=counts, latency_ms=latency_ms)


def bins(text: str) -> list[tuple[int, int]]:
    """Upper ends in nanoseconds and their counts, rising."""
    half = math.exp(math.log(HIGHEST_MS / LOWEST_MS) / (BINS - 1) / 2)
    counts: dict[int, int] = {}
    for middle, count in _BIN.findall(text):
        upper_ns = round((float(middle) * half + ROUNDED_MS) * NANOSECONDS_PER_MS)
        counts[upper_ns] = counts.get(upper_ns, 0) + int(count)
    return sorted(counts.items())


def _window(text: str, *, ended_ns: int) -> Window:
    """The first interval's line has both clocks; without one the window ended with the process, or nearly so.

    Raises:
        PlaceError: no clock tells such times.
    """
    whole_ns = round(report(text).total_s * NANOSECONDS_PER_S)
    lines = intervals(text)
    start_ns = ended_ns - whole_ns
    if lines:
        start_ns = lines[0].end_ns - round(lines[0].since_start_s * NANOSECONDS_PER_S)
        ended_ns = max(start_ns + whole_ns, lines[-1].end_ns)
    if start_ns < 0 or ended_ns > LARGEST:
        found = f"expected a window between 0 and {LARGEST} ns, found {start_ns} to {ended_ns}"
        raise PlaceError(f"sysbench's output has times that cannot be: {found}", hint="see log/load.log")
    return Window(start_ns=start_ns, end_ns=ended_ns)


def result(text: str, *, ended_ns: int) -> SysbenchResult:
    """What sysbench's output says, of a process that ended then on the place's clock."""
    summary = report(text)
    counts = summary.counts
    statements = {"read": counts.reads, "write": counts.writes, "other": counts.others}
    outcomes = TransactionOutcomes(
        committed=counts.events, rolled_back=0, failed=0, retried=counts.errors, statements=sum(statements.values())
    )
    errors = {"ignored": counts.errors, "connection": counts.reconnects}
    return SysbenchResult(
        window=_window(text, ended_ns=ended_ns),
        transactions={TYPE: outcomes},
        statements=statements,
        errors=[ErrorCount(kind=kind, count=count) for kind, count in errors.items() if count],
        latency_ms=summary.latency_ms,
        total_s=summary.total_s,
    )


def latency_log(text: str, *, window: Window) -> str:
    """`latency.hlog`: one line, of the window."""
    line = HistogramLine(tag=TYPE, start_ns=window.start_ns, end_ns=window.end_ns, counts=bins(text))
    return made_files.latency_log(_COMMENT, [line] if line.counts else [])


def timeline(text: str, *, window: Window) -> bytes:
    """`timeline.parquet`: events and errors that ended in each interval.

    Raises:
        PlaceError: intervals have more than the whole run.
    """
    lines = intervals(text)
    counted = [line.counts for line in lines]
    left = SysbenchCounts(*(whole - sum(parts) for whole, *parts in zip(report(text).counts, *counted, strict=True)))
    if min(left) < 0:
        raise PlaceError("sysbench's intervals count more than its report", hint="use sysbench 1.0")
    starts = [window.start_ns, *(line.end_ns for line in lines)]
    if lines and not any(left):
        starts.pop()
    else:
        counted.append(left)
    events, errors = [each.events for each in counted], [each.errors for each in counted]
    return made_files.timeline(starts, {TYPE: {"committed": events, "retried": errors}})


def contradictions(directory: Path) -> list[str]:
    """Where `result.json`, `latency.hlog` or `timeline.parquet` is not what the output gives, a sentence each.

    A window whose output has no interval ended with its process, whose time is in `result.json` alone.
    """
    text = (directory / OUTPUT).read_text(encoding="utf-8")
    stored = agreement.stored(directory)
    fresh = result(text, ended_ns=stored["window"]["end_ns"])
    logs = {latency.FILE: latency_log(text, window=fresh.window)}
    expected = agreement.ExpectedFiles(OUTPUT, fresh.figures(), logs, timeline=timeline(text, window=fresh.window))
    return list(expected.contradictions(directory, stored))
