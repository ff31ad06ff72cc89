"""pytest-benchmark's JSON (`--benchmark-json`): one row per round; without its data, one per benchmark."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, TypeAdapter

from fairtrial.imports.reader import Figure, ImportSource, Reader, document, file_table, metric, refused, shared_state
from fairtrial.imports.rows import FileTable

VALUE: Final = "time_ns"
_NANOSECONDS: Final = 1e9  # of a second, in which the file has times
SOURCE: Final = "pytest-benchmark"
EXPECTED: Final = "the file of `pytest --benchmark-json`"


class Statistics(BaseModel, frozen=True):
    """Seconds per call; `data` is a value per round, absent where a run was only saved."""

    mean: float
    data: list[float] | None = None


class Benchmark(BaseModel, frozen=True):
    """One test."""

    fullname: str
    group: str | None = None
    stats: Statistics


class Output(BaseModel, frozen=True):
    """As much as is read; the machine is left out."""

    benchmarks: list[Benchmark]


_OUTPUT: Final = TypeAdapter(Output)


def read(source: ImportSource) -> FileTable:
    """Rows in the order in which they ran.

    Raises:
        InputError: the document is cut, or has no benchmark.
    """
    benchmarks = document(source, _OUTPUT, expected=EXPECTED).benchmarks
    rows: list[dict[str, Figure]] = [
        {"benchmark": each.fullname, "group": each.group or "", VALUE: time * _NANOSECONDS}
        for each in benchmarks
        for time in each.stats.data or [each.stats.mean]
    ]
    if not rows:
        raise refused(
            source, "expected at least one benchmark, found none", hint=f"give {EXPECTED}", field="benchmarks"
        )
    return file_table(source, rows, lambda name: metric(name, "ns", "lower", source=SOURCE))


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: text.startswith("{") and '"machine_info"' in text and '"benchmarks"' in text,
    read=read,
    values=(VALUE,),
    arm="benchmark",
    conditions=("benchmark",),
    shared=shared_state("rounds of pytest-benchmark share one process: its heap, its hash seed and its caches"),
)
