"""criterion.rs' directory (`target/criterion`): one row per sample of a benchmark, from `sample.json` or `raw.csv`."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, TypeAdapter

from fairtrial.imports.reader import (
    Figure,
    ImportSource,
    Reader,
    document,
    file_table,
    metric,
    refused,
    require_end,
    shared_state,
)
from fairtrial.imports.rows import FileTable

VALUE: Final = "ns_per_iteration"
SOURCE: Final = "criterion"
EXPECTED: Final = "criterion's `sample.json` with the `benchmark.json` beside it, or its `raw.csv`"
_RAW: Final = (
    "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count"  # its header
)
_HINT: Final = "name the directory target/criterion after a complete `cargo bench`"


class Samples(BaseModel, frozen=True):
    """`sample.json`: iterations and nanoseconds of each sample, in their order."""

    iters: list[float]
    times: list[float]


class Named(BaseModel, frozen=True):
    """`benchmark.json`."""

    full_id: str


_SAMPLES: Final = TypeAdapter(Samples)
_NAMED: Final = TypeAdapter(Named)


def read(source: ImportSource) -> FileTable:
    """Rows in the order in which samples were taken.

    Raises:
        InputError: a file is cut, a sample has no iterations, or the benchmark's name is not there.
    """
    rows: list[dict[str, Figure]] = []
    raw = source.text.startswith(_RAW)
    for number, (name, time_ns, iterations) in enumerate(_raw(source) if raw else _samples(source), start=1):
        if not iterations > 0:
            place = {"line": number + 1} if raw else {"field": f"iters.{number - 1}"}
            raise refused(source, f"expected a number of iterations, found {iterations:g}", hint=_HINT, **place)
        rows.append({"benchmark": name, VALUE: time_ns / iterations})
    if not rows:
        raise refused(source, "expected at least one sample, found none", hint=_HINT)
    return file_table(source, rows, lambda name: metric(name, "ns/iteration", "lower", source=SOURCE))


def _samples(source: ImportSource) -> Iterator[tuple[str, float, float]]:
    samples = document(source, _SAMPLES, expected=EXPECTED)
    if len(samples.iters) != len(samples.times):
        message = f"expected as many times as iters, found {len(samples.times)} and {len(samples.iters)}"
        raise refused(source, message, hint=_HINT, field="times")
    name = source.name if source.path is None else _name(source, source.path.with_name("benchmark.json"))
    yield from ((name, time, iterations) for time, iterations in zip(samples.times, samples.iters, strict=True))


def _name(source: ImportSource, path: Path) -> str:
    """As criterion prints it."""
    try:
        beside = ImportSource(str(path), path.read_bytes(), label=source.label, number=source.number)
    except OSError as error:
        raise refused(source, f"no benchmark.json beside it: {error.strerror}", hint=_HINT) from error
    return document(beside, _NAMED, expected="criterion's benchmark.json").full_id


def _raw(source: ImportSource) -> Iterator[tuple[str, float, float]]:
    """Of criterion with the feature `csv_output`, and of every old one."""
    require_end(source)
    reader = csv.reader(io.StringIO(source.text))
    try:
        for cells in itertools.islice(reader, 1, None):
            group, function, value, _, _, time, unit, iterations = cells
            if unit != "ns":
                raise refused(source, f"expected times in ns, found {unit!r}", hint=_HINT, line=reader.line_num)
            yield "/".join(filter(None, (group, function, value))), float(time), float(iterations)
    except (ValueError, csv.Error) as error:
        message = f"expected cells as in the header, with a time and a number of iterations: {error}"
        raise refused(source, message, hint=_HINT, line=reader.line_num) from error


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: (text.startswith("{") and '"iters"' in text) or text.startswith(_RAW),
    read=read,
    values=(VALUE,),
    arm="benchmark",
    conditions=("benchmark",),
    shared=shared_state(
        "samples of criterion share one process and one warm-up, and early samples of the linear mode hold fewer "
        "iterations than late ones: they differ in precision"
    ),
    nested="**/new/sample.json",
)
