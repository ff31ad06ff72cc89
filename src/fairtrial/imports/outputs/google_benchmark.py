"""Google Benchmark's JSON (`--benchmark_out_format=json`): one row per repetition, aggregates left out."""

from __future__ import annotations

import re
from typing import Final

from pydantic import BaseModel, TypeAdapter

from fairtrial.imports.reader import (
    Figure,
    ImportSource,
    Reader,
    document,
    file_table,
    metric,
    number,
    refused,
    shared_state,
)
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import Better, MetricDefinition

VALUE: Final = "real_time_ns"
SOURCE: Final = "Google Benchmark"
EXPECTED: Final = "the file of --benchmark_out with --benchmark_out_format=json"
_NANOSECONDS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_AGGREGATE: Final = re.compile(r"(.+)_(?:mean|median|stddev|cv)")  # of versions that do not say the type of a run
_TIMES: Final = (VALUE, "cpu_time_ns")
_RATE: Final = re.compile(r"(_per_s|_per_sec|_per_second|/s|/sec|/second)$")
_USUAL: Final = {
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
}


class Entry(BaseModel, frozen=True, extra="allow"):
    """A repetition or an aggregate; whatever else is a number is a counter of the user's."""

    name: str
    run_name: str = ""
    run_type: str = ""
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""
    real_time: float | None = None
    cpu_time: float | None = None
    time_unit: str = "ns"

    def counters(self) -> dict[str, float]:
        """Rates and the user's own."""
        extra = {name: value for name, value in (self.model_extra or {}).items() if name not in _USUAL}
        return {name: number(value) for name, value in extra.items() if type(value) in (int, float)}


class Output(BaseModel, frozen=True):
    """As much as is read; the machine is left out."""

    benchmarks: list[Entry]


_OUTPUT: Final = TypeAdapter(Output)


def read(source: ImportSource) -> FileTable:
    """Rows in the order in which they ran.

    Raises:
        InputError: the document is cut, a benchmark failed, or only aggregates are in it.
    """
    entries = document(source, _OUTPUT, expected=EXPECTED).benchmarks
    names = {each.name for each in entries}
    rows: list[dict[str, Figure]] = []
    for index, each in enumerate(entries):
        field = f"benchmarks.{index}"
        if each.error_occurred or each.skipped:
            hint = "leave the benchmark out, or run it again: a failed benchmark measures nothing"
            what = f"failed: {each.error_message}" if each.error_occurred else f"was skipped: {each.skip_message}"
            raise refused(source, f"{each.name} {what}", hint=hint, field=field)
        aggregate = _AGGREGATE.fullmatch(each.name)
        if (each.run_type or "iteration") != "iteration" or (not each.run_type and aggregate and aggregate[1] in names):
            continue
        factor = _NANOSECONDS.get(each.time_unit)
        if factor is None or each.real_time is None or each.cpu_time is None:
            message = f"expected real_time and cpu_time in ns, us, ms or s, found {each.time_unit!r}"
            raise refused(source, message, hint=f"give {EXPECTED}", field=field)
        times = {VALUE: each.real_time * factor, "cpu_time_ns": each.cpu_time * factor}
        rows.append({**each.counters(), "benchmark": each.run_name or each.name, **times})
    if not rows:
        hint = "run without --benchmark_report_aggregates_only: the repetitions are the trials"
        raise refused(source, "expected repetitions, found aggregates alone", hint=hint, field="benchmarks")
    return file_table(source, rows, definition, better=better)


def better(name: str) -> Better | None:
    """Times are better low, rates high; of a user's counter nobody says which way is good."""
    if name in _TIMES:
        return "lower"
    return "higher" if _RATE.search(name) else None


def definition(name: str) -> MetricDefinition:
    """Of a column."""
    unit = "ns" if name in _TIMES else {"items_per_second": "items/s", "bytes_per_second": "B/s"}.get(name, "")
    return metric(name, unit, better(name) or "higher", source=SOURCE)


READER: Final = Reader(
    name="google-benchmark",
    expected=EXPECTED,
    recognises=lambda text: text.startswith("{") and '"context"' in text and '"benchmarks"' in text,
    read=read,
    values=(VALUE,),
    arm="benchmark",
    conditions=("benchmark",),
    shared=shared_state(
        "repetitions of Google Benchmark share one process: its memory layout, its caches and a moment of the machine"
    ),
)
