"""fio's output as our own files: whole-run histograms (`json+`) and interval histograms become one latency log.

fio stamps an interval when it has ended, a millisecond late or more: the nearest end is meant.

fio's bins have a 64th of an octave. Each is kept as its highest value, which our finer classes hold exactly. Interval
logs end with the last whole interval; what the whole run has beyond them is the last line, so that the log adds up to
the `json+` bins, bin by bin. Source: fio's stat.h and stat.c (`plat_val_to_idx`), iolog.c (`flush_hist_samples`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field, ValidationError

from fairtrial.errors import PlaceError
from fairtrial.metrics import latency
from fairtrial.metrics.drive import ErrorCount, TransactionOutcomes
from fairtrial.record.models import Window
from fairtrial.words import first_problem
from fairtrial.workloads import agreement, made_files
from fairtrial.workloads.fio.document import Document, Latency, weighed_mean
from fairtrial.workloads.made_files import HistogramLine

BITS: Final = 6  # FIO_IO_U_PLAT_BITS
GROUPS: Final = 29  # FIO_IO_U_PLAT_GROUP_NR
BINS: Final = GROUPS << BITS
DOCUMENT: Final = "fio.json"
RESOLUTION: Final = 1 / (1 << BITS)  # widest bin as a share of its value
SIDES: Final = {"read": 0, "write": 1}  # fio's directions, by their numbers in logs
FIELDS: Final = 3  # of a log's line before its bins: time, direction, block
NANOSECONDS_PER_MS: Final = 1_000_000
MILLISECONDS_PER_SECOND: Final = 1000
LATE_NS: Final = 60_000_000_000  # by which a job may outlast what fio says it took
SUPPORTED: Final = "use a version of fio from 3.0 to 3.40"
COMMENT: Final = (
    "Completion latencies of fio, nanoseconds, by interval and direction; values are upper ends of fio's bins"
)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FioInterval:
    """One line of the timeline: when, and the bins of reads and of writes."""

    start_ns: int
    end_ns: int
    bins: Mapping[str, Counts]


class LatencySummary(BaseModel):
    """Mean and maximum as fio keeps them, without bins; nothing is given of a direction without accesses."""

    n: int = 0
    mean_ns: float = 0.0
    max_ns: float = 0.0


class FioResult(made_files.ToolResult):
    """`result.json`, with the processor time of jobs alone: fio's own start and end take longer than many a window."""

    bytes_moved: dict[str, int] = Field(default_factory=dict)
    iops: float = 0.0
    latency: dict[str, LatencySummary]
    runtime_ms: int = 0


def index_of(value: int) -> int:
    """The bin of a latency."""
    highest_bit = max(value, 1).bit_length() - 1
    if highest_bit <= BITS:
        return value
    error_bits = highest_bit - BITS
    offset = (value >> error_bits) & ((1 << BITS) - 1)
    return min(((error_bits + 1) << BITS) + offset, BINS - 1)


def upper_end(index: int) -> int:
    """The highest latency in a bin."""
    if index < 2 << BITS:
        return index
    error_bits = (index >> BITS) - 1
    low = (1 << (error_bits + BITS)) + ((index % (1 << BITS)) << error_bits)
    return low + (1 << error_bits) - 1


def document(text: str) -> Document:
    """The document in fio's output.

    Raises:
        PlaceError: there is none, with what there is; or a field of it is not what fio writes.
    """
    try:
        return Document.of(text)
    except ValidationError as error:
        raise PlaceError(f"cannot read fio's JSON document: {first_problem(error)}", hint=SUPPORTED) from error
    except (ValueError, RecursionError) as error:
        said = f"fio did not print a complete JSON document: {text[-500:]}"
        raise PlaceError(said, hint="see log/load.log") from error


def failure(report: Document) -> str:
    """Which job failed, or that there was none; empty if all did well."""
    if not report.jobs:
        return "fio reports no job"
    failed = [job.error for job in report.jobs if job.error]
    return f"fio: error {failed[0]} in {len(failed)} of {len(report.jobs)} jobs" if failed else ""


def whole(report: Document) -> dict[str, Counts]:
    """The bins of the whole run by direction, all jobs together."""
    sums = {side: np.zeros(BINS, dtype=np.int64) for side in SIDES}
    for job in report.jobs:
        for side, counts in sums.items():
            for middle, count in job.side(side).clat_ns.bins.items():
                counts[index_of(middle)] += count
    return sums


def intervals(logs: Iterable[str], total: Mapping[str, Counts], *, width_ms: int, life: Window) -> list[FioInterval]:
    """The bins of each interval, all jobs together, and what the whole run has beyond them.

    fio logs no interval in which nothing ended, and what ended in the one before a stall only after it.

    Args:
        logs: the jobs' histogram logs.
        total: from `whole`.
        width_ms: of an interval.
        life: when jobs began and ended, on the place's clock.

    Raises:
        PlaceError: a log has more than the whole run, or is no such log.
    """
    sums: dict[int, dict[str, Counts]] = {}
    names = {number: side for side, number in SIDES.items()}
    for line in (line for log in logs for line in log.splitlines()):
        fields = np.fromstring(line, dtype=np.int64, sep=",")
        if len(fields) != FIELDS + BINS:
            said = f"fio's histogram log has a line of {len(fields)} fields, expected {FIELDS + BINS}"
            raise PlaceError(said, hint=SUPPORTED)
        if (side := names.get(int(fields[1]))) is not None:
            at = max((int(fields[0]) + width_ms // 2) // width_ms - 1, 0)
            bins = sums.setdefault(at, {name: np.zeros(BINS, dtype=np.int64) for name in SIDES})
            bins[side] += fields[FIELDS:]
    rows = []
    left = {side: counts.copy() for side, counts in total.items()}
    width_ns = width_ms * NANOSECONDS_PER_MS
    last = max(sums, default=-1)
    if last * width_ns > life.end_ns - life.start_ns + LATE_NS:
        said = f"fio's histogram log has an interval {last * width_ms} ms after its run began, when it had ended"
        raise PlaceError(said, hint="report this fio version")
    nothing = {side: np.zeros(BINS, dtype=np.int64) for side in SIDES}
    for at in range(last + 1):
        bins = sums.get(at, nothing)
        for side, counts in bins.items():
            left[side] -= counts
        rows.append(FioInterval(life.start_ns + at * width_ns, life.start_ns + (at + 1) * width_ns, bins))
    if any((counts < 0).any() for counts in left.values()):
        raise PlaceError("fio's interval histograms hold more than its whole run", hint="report this fio version")
    last_ns = rows[-1].end_ns if rows else life.start_ns
    if not rows or any(counts.any() for counts in left.values()):
        rows.append(FioInterval(last_ns, max(life.end_ns, last_ns + 1), left))
    return rows


def latency_log(intervals: Sequence[FioInterval]) -> str:
    """`latency.hlog`: a line per interval and direction with observations."""
    return made_files.latency_log(
        COMMENT, (_line(interval, side) for interval in intervals for side in SIDES if interval.bins[side].any())
    )


def _line(interval: FioInterval, side: str) -> HistogramLine:
    counts = interval.bins[side]
    observed = [(upper_end(index), int(counts[index])) for index in np.flatnonzero(counts).tolist()]
    return HistogramLine(tag=side, start_ns=interval.start_ns, end_ns=interval.end_ns, counts=observed)


def timeline(intervals: Sequence[FioInterval]) -> bytes:
    """`timeline.parquet`: accesses that ended in each interval."""
    counts = {side: {"committed": [int(interval.bins[side].sum()) for interval in intervals]} for side in SIDES}
    return made_files.timeline([interval.start_ns for interval in intervals], counts)


def result(report: Document, *, life: Window) -> FioResult:
    """What fio's document says of all its jobs."""
    jobs = report.jobs
    sides = {name: [job.side(name) for job in jobs] for name in SIDES}
    errors = sum(job.total_err for job in jobs)
    done = {name: sum(side.total_ios for side in each) for name, each in sides.items()}
    moved = {name: sum(side.io_bytes for side in each) for name, each in sides.items()}
    spent = {
        "user_s": sum(job.usr_cpu / 100 * job.job_runtime / MILLISECONDS_PER_SECOND for job in jobs),
        "system_s": sum(job.sys_cpu / 100 * job.job_runtime / MILLISECONDS_PER_SECOND for job in jobs),
    }
    return FioResult(
        window=life,
        transactions={
            name: TransactionOutcomes(committed=count, rolled_back=0, failed=0, retried=0)
            for name, count in done.items()
        },
        bytes_moved={"read": moved["read"], "written": moved["write"]},
        iops=sum(sum(side.iops for side in each) for each in sides.values()),
        errors=[ErrorCount(kind="io", count=errors)] if errors else [],
        latency={name: _exact([side.clat_ns for side in each]) for name, each in sides.items()},
        client=spent,
        runtime_ms=max(job.job_runtime for job in jobs),
    )


def submission_share(report: Document) -> float | None:
    """What part of the time of accesses passed before fio counts their latency; None where fio did not time them.

    It hands them to the kernel in it, and waits there wherever the kernel cannot take them at once.
    """
    sides = [job.side(name) for job in report.jobs for name in SIDES]
    whole_ns = sum(each.lat_ns.count * each.lat_ns.mean for each in sides)
    completing_ns = sum(each.clat_ns.count * each.clat_ns.mean for each in sides)
    return max(0.0, 1 - completing_ns / whole_ns) if whole_ns else None


def _exact(latencies: list[Latency]) -> LatencySummary:
    if count := sum(each.count for each in latencies):
        return LatencySummary(n=count, mean_ns=weighed_mean(latencies), max_ns=max(each.max for each in latencies))
    return LatencySummary()


def contradictions(directory: Path) -> list[str]:
    """Where `result.json` or `latency.hlog` is not what `fio.json` gives, a sentence each."""
    report = document((directory / DOCUMENT).read_text(encoding="utf-8"))
    stored = agreement.stored(directory)
    life = Window.model_validate(stored["window"])
    figures = result(report, life=life).figures()
    own = {**stored, "client": {name: stored["client"].get(name) for name in figures["client"]}}  # has the kernel's too
    logs = {latency.FILE: latency_log([FioInterval(life.start_ns, life.end_ns, whole(report))])}
    return list(agreement.ExpectedFiles(DOCUMENT, figures, logs).contradictions(directory, own))
