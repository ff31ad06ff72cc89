"""`go test -bench`, as benchstat takes it: one row per line of a benchmark, from one run of the tool or from many.

Lines `key: value` before a benchmark are columns of it; `Unit UNIT better=lower` says which direction is good. Source:
the Go benchmark data format (golang/proposal 14313).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fairtrial.imports.reader import (
    Figure,
    ImportSource,
    Reader,
    column,
    file_table,
    metric,
    refused,
    require_end,
    shared_state,
)
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

VALUE: Final = "ns_per_op"
SOURCE: Final = "go test"
EXPECTED: Final = "the output of `go test -bench`"
_BENCHMARK: Final = re.compile(r"Benchmark(?![a-z])(\S*)\s+(\d+)(?:\s+(.*))?$")
_COMPLETE: Final = re.compile(r"^Benchmark(?![a-z])\S*\s+\d+\s+[0-9.e+-]+ [^\s0-9]", re.MULTILINE)
_NAMELESS: Final = re.compile(r"\d\s+[0-9.e+-]+ ns/op\b")
_KEY: Final = re.compile(r"([a-z][^\sA-Z:]*):\s+(\S.*)$")
_FAILED: Final = re.compile(r"(--- )?FAIL\b")
_UNIT: Final = re.compile(r"Unit\s+(\S+)\s.*\bbetter=(higher|lower)\b")
_BETTER: Final[Mapping[str, Better]] = {
    **dict.fromkeys(("ns/op", "sec/op", "B/op", "allocs/op"), "lower"),
    **dict.fromkeys(("MB/s", "B/s"), "higher"),
}
_COUNTS: Final = frozenset({"B/op", "allocs/op"})
_HINT: Final = f"give {EXPECTED}, complete and as the tool printed it"


def read(source: ImportSource) -> FileTable:
    """Rows in the order of lines. GOMAXPROCS stays in the name, as `-8`.

    Raises:
        InputError: a benchmark failed, a line of one is cut, or there is none.
    """
    configured: dict[str, Figure] = {}
    units: dict[str, str] = {}
    better: dict[str, Better] = dict(_BETTER)
    rows: list[dict[str, Figure]] = []
    lines = source.text.splitlines()
    for number, line in enumerate(lines, start=1):
        if key := _KEY.match(line):
            configured[key[1]] = key[2].strip()
        elif unit := _UNIT.match(line):
            better[unit[1]] = "higher" if unit[2] == "higher" else "lower"
        elif _FAILED.match(line):
            message = f"expected benchmarks that pass, found {line.strip()!r}"
            raise refused(source, message, hint="leave failed runs out: they measure nothing", line=number)
        elif match := _BENCHMARK.match(line):
            measured = _measured(source, match[3] or "", line=number)
            units |= {column(unit): unit for unit in measured}
            figures = {column(unit): value for unit, value in measured.items()}
            rows.append({**configured, **figures, "benchmark": match[1]})
        elif _NAMELESS.search(line):
            message = f"expected the benchmark's name before its result, found {line.strip()!r}"
            raise refused(
                source, message, hint="keep benchmarks from printing: go puts it between the two", line=number
            )
    if not rows:
        raise refused(source, f"expected {EXPECTED}, found no line of a benchmark", hint=_HINT, line=1)
    if _BENCHMARK.match(lines[-1]):
        require_end(source)
    ways = {name: better.get(unit) for name, unit in units.items()}
    return file_table(source, rows, lambda name: definition(name, units[name], ways[name]), better=ways.get)


def _measured(source: ImportSource, text: str, *, line: int) -> dict[str, float]:
    """Values by their units."""
    words = text.split()
    try:
        measured = {unit: float(value) for value, unit in zip(words[::2], words[1::2], strict=True)}
    except ValueError:
        measured = {}
    if not measured:
        message = f"expected pairs of a number and its unit, found {text!r}"
        raise refused(source, message, hint=_HINT, line=line)
    if 2 * len({column(unit) for unit in measured}) < len(words):
        raise refused(source, f"expected every unit once, found {text!r}", hint=_HINT, line=line)
    return measured


def definition(name: str, unit: str, better: Better | None) -> MetricDefinition:
    """Of a column."""
    kind: MetricKind = "count" if unit in _COUNTS else "wall_clock"
    return metric(name, unit, better or "higher", source=SOURCE, kind=kind)


READER: Final = Reader(
    name="go",
    expected=EXPECTED,
    recognises=lambda text: bool(_COMPLETE.search(text)) or text.startswith("goos: "),
    read=read,
    values=(VALUE,),
    arm="benchmark",
    conditions=("pkg", "benchmark"),
    shared=shared_state("repetitions of `go test -count` share one process: its heap, its caches and its layout"),
)
