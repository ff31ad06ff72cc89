"""fio's JSON (`--output-format=json` or `json+`): one row per job name, its clones put together.

Counts and rates of clones add up, means weigh by count. Percentiles cannot be averaged: they are taken from the merged
bins of `json+`, and from plain `json` only where a job has no clone.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import ValidationError

from fairtrial.errors import InputError, Problem
from fairtrial.imports.reader import Figure, ImportSource, Reader, file_table, refused
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.words import first_problem
from fairtrial.workloads.fio.document import DIRECTIONS, LATENCIES, Document, Job, Latency, weighed_mean
from fairtrial.workloads.fio.output import RESOLUTION

PERCENTILES: Final = ("50", "90", "95", "99", "99.9", "99.99")
VALUE: Final = "iops"
SOURCE: Final = "fio"
_MARK: Final = '"fio version"'
EXPECTED: Final = "fio's output with --output-format=json or json+"


def _recognises(text: str) -> bool:
    """Notes may stand before the document."""
    return _MARK in text


def _line_of_second_run(text: str) -> int:
    return text[: text.index(_MARK, text.index(_MARK) + 1)].count("\n") + 1


def read(source: ImportSource) -> FileTable:
    """A row per job name.

    Raises:
        InputError: the document is cut or lacks figures, there are several, a job failed, or no job did anything.
    """
    if not _recognises(source.text):
        raise refused(source, f"expected {EXPECTED}, found no `fio version`", hint=f"give {EXPECTED}", line=1)
    try:
        document = Document.of(source.text)
    except ValidationError as error:
        hint = "give the file as fio wrote it; report the version of fio if it is unchanged"
        raise InputError([Problem(first_problem(error), source.name)], hint=hint) from error
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        message = f"not a complete JSON document: {error}; expected {EXPECTED}"
        hint = "run fio again with --output-format=json, and let it finish"
        raise refused(source, message, hint=hint, line=line) from error
    if (runs := source.text.count(_MARK)) > 1:
        hint = "write every run to a file of its own, or give the jobs of one run"
        raise refused(
            source, f"expected one run of fio, found {runs}", hint=hint, line=_line_of_second_run(source.text)
        )
    jobs: dict[str, list[Job]] = {}
    for job in document.jobs:
        if job.error:
            problem = Problem(f"fio reports error {job.error} in job {job.jobname}", source.name)
            raise InputError([problem], hint="leave the file out, or run fio again: a failed job measures nothing")
        jobs.setdefault(job.jobname, []).append(job)
    try:
        rows: list[dict[str, Figure]] = [{"job": name, **dict(_figures(clones))} for name, clones in jobs.items()]
    except OverflowError as error:
        raise refused(source, f"a figure is no number: {error}", hint="give the file as fio wrote it") from error
    if not any(VALUE in row for row in rows):
        raise InputError([Problem("no job did any I/O", source.name)], hint="give the output of a complete run of fio")
    return file_table(source, rows, definition)


def _figures(clones: Sequence[Job]) -> Iterator[tuple[str, float]]:
    sides = {name: [job.side(name) for job in clones] for name in DIRECTIONS}
    busy = {name: each for name, each in sides.items() if any(side.total_ios for side in each)}
    if not busy:
        return
    yield "iops", sum(job.side(name).iops for job in clones for name in busy)
    yield "bandwidth_bytes_per_s", sum(side.bytes_per_s for each in busy.values() for side in each)
    for name, each in busy.items():
        yield f"{name}_iops", sum(side.iops for side in each)
        yield f"{name}_bandwidth_bytes_per_s", sum(side.bytes_per_s for side in each)
        for latency in LATENCIES:
            yield from _latency(f"{name}_{latency}", [getattr(side, latency) for side in each])
    yield "user_cpu_percent", sum(job.usr_cpu for job in clones) / len(clones)
    yield "system_cpu_percent", sum(job.sys_cpu for job in clones) / len(clones)
    yield "context_switches", float(sum(job.ctx for job in clones))
    yield "io_errors", float(sum(job.total_err for job in clones))


def _latency(name: str, clones: list[Latency]) -> Iterator[tuple[str, float]]:
    """Of what was observed: percentiles over all clones' bins, or of one without bins as fio printed them."""
    latencies = [each for each in clones if each.count]
    if not latencies:
        return
    yield f"{name}_mean", weighed_mean(latencies)
    yield f"{name}_max", max(each.max for each in latencies)
    if all(each.bins for each in latencies):
        yield from _merged(name, latencies)
    elif len(clones) == 1:
        printed = latencies[0].percentile
        yield from ((f"{name}_p{each}", printed[float(each)]) for each in PERCENTILES if float(each) in printed)


def _merged(name: str, clones: Sequence[Latency]) -> Iterator[tuple[str, float]]:
    """The first bin at which the share of observations is reached, as fio does."""
    bins: Counter[int] = Counter()
    for each in clones:
        bins.update(each.bins)
    ends = list(itertools.accumulate(count for _value, count in sorted(bins.items())))
    for percentile in PERCENTILES:
        rank = float(percentile) / 100 * ends[-1]
        yield f"{name}_p{percentile}", float(sorted(bins)[bisect_left(ends, rank)])


def definition(name: str) -> MetricDefinition:
    """A column of fio's as a metric: rates are better high, all else is better low."""
    unit = next((unit for end, unit in _UNITS.items() if end in name), "")
    is_rate = name.endswith(("iops", "bytes_per_s"))
    return MetricDefinition(
        name=name,
        label=name.replace("_ns", "").replace("_bytes_per_s", "").replace("_", " "),
        unit=unit,
        better="higher" if is_rate else "lower",
        kind="wall_clock",
        source=SOURCE,
        resolution=RESOLUTION if "_ns_p" in name else 0.0,
    )


_UNITS: Final = {
    "iops": "I/O per s",
    "bytes_per_s": "B/s",
    "_ns": "ns",
    "percent": "%",
    "switches": "switches",
    "errors": "errors",
}
READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=_recognises,
    read=read,
    values=(VALUE,),
    failures=("io_errors",),
    apart=("job",),
)
