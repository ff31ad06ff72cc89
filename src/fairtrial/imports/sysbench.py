"""What sysbench prints at its end, of whichever of its tests, as one row."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from fairtrial.errors import InputError, Problem
from fairtrial.imports.rows import FileTable
from fairtrial.imports.sources import ImportSource
from fairtrial.study.catalogue import Better, MetricDefinition

VALUE: Final = "events_per_s"
SOURCE: Final = "sysbench"
_NUMBER: Final = r"([0-9.]+)"

# Column: expression, unit, better. All of sysbench 1.0's sections; 0.5 words some of them otherwise.
_FIGURES: Final[dict[str, tuple[str, str, Better]]] = {
    "transactions_per_s": (rf"transactions:\s+\d+\s+\({_NUMBER} per sec", "transactions/s", "higher"),
    "queries_per_s": (rf"queries:\s+\d+\s+\({_NUMBER} per sec", "queries/s", "higher"),
    "ignored_errors_per_s": (rf"ignored errors:\s+\d+\s+\({_NUMBER} per sec", "errors/s", "lower"),
    "reconnects_per_s": (rf"reconnects:\s+\d+\s+\({_NUMBER} per sec", "reconnects/s", "lower"),
    "reads_per_s": (rf"reads/s:\s+{_NUMBER}", "reads/s", "higher"),
    "writes_per_s": (rf"writes/s:\s+{_NUMBER}", "writes/s", "higher"),
    "fsyncs_per_s": (rf"fsyncs/s:\s+{_NUMBER}", "fsyncs/s", "higher"),
    "read_mib_per_s": (rf"read, MiB/s:\s+{_NUMBER}", "MiB/s", "higher"),
    "written_mib_per_s": (rf"written, MiB/s:\s+{_NUMBER}", "MiB/s", "higher"),
    "operations_per_s": (rf"Total operations:\s+\d+\s+\(\s*{_NUMBER} per second", "operations/s", "higher"),
    "transferred_mib_per_s": (rf"transferred \({_NUMBER} MiB/sec", "MiB/s", "higher"),
    "events": (r"total number of events:\s+(\d+)", "events", "higher"),
    "total_time_s": (rf"total time:\s+{_NUMBER}s", "s", "lower"),
    "latency_ms_min": (rf"^\s+min:\s+{_NUMBER}", "ms", "lower"),
    "latency_ms_mean": (rf"^\s+avg:\s+{_NUMBER}", "ms", "lower"),
    "latency_ms_max": (rf"^\s+max:\s+{_NUMBER}", "ms", "lower"),
}
_PERCENTILE: Final = re.compile(rf"^\s+(?:approx\.\s+)?(\d+)(?:th)? percentile:\s+{_NUMBER}", re.MULTILINE)


def is_sysbench(content: bytes) -> bool:
    """The line that its results begin with, near which nothing else of the format is certain."""
    return b"General statistics:" in content and b"total number of events" in content


def part(source: ImportSource) -> FileTable:
    """One row: the run.

    Raises:
        InputError: it has no events, or holds more than one run.
    """
    text = source.content.decode("utf-8", errors="replace")
    row: dict[str, float] = {}
    for name, (expression, _, _) in _FIGURES.items():
        matches = re.findall(expression, text, re.MULTILINE)
        if name == "events" and len(matches) != 1:
            problem = Problem(f"expected one run of sysbench, found {len(matches)}", source.name)
            raise InputError([problem], hint="write every run to a file of its own: a run is a trial")
        if matches:
            row[name] = float(matches[-1])
    for percentile, value in _PERCENTILE.findall(text):
        row[f"latency_ms_p{percentile}"] = float(value)
    if not row["events"] or not row.get("total_time_s"):
        raise InputError([Problem("sysbench processed no events in this run", source.name)], hint="leave the file out")
    row[VALUE] = row["events"] / row["total_time_s"]
    return FileTable(name=source.name, frame=pl.DataFrame([row]))


def definition(name: str) -> MetricDefinition:
    """A column of sysbench's as a metric."""
    _, unit, better = _FIGURES.get(name, ("", "ms", "lower"))
    if name == VALUE:
        unit, better = "events/s", "higher"
    return MetricDefinition(
        name=name, label=name.replace("_", " "), unit=unit, better=better, kind="wall_clock", source=SOURCE
    )
