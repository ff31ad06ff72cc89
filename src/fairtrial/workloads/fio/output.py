"""fio's output as our own files: whole-run histograms (`json+`) and interval histograms become one latency log.

fio stamps an interval when it has ended, a millisecond late or more: the nearest end is meant.

fio's bins have a 64th of an octave. Each is kept as its highest value, which our finer classes hold exactly. Interval
logs end with the last whole interval; what the whole run has beyond them is the last line, so that the log adds up to
the `json+` bins, bin by bin. Source: fio's stat.h and stat.c (`plat_val_to_idx`), iolog.c (`flush_hist_samples`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from fairtrial.errors import PlaceError
from fairtrial.workloads.latency_log import Line, written

BITS: Final = 6  # FIO_IO_U_PLAT_BITS
GROUPS: Final = 29  # FIO_IO_U_PLAT_GROUP_NR
BINS: Final = GROUPS << BITS
RESOLUTION: Final = 1 / (1 << BITS)  # widest bin as a share of its value
SIDES: Final = {"read": 0, "write": 1}  # fio's directions, by their numbers in logs
FIELDS: Final = 3  # of a log's line before its bins: time, direction, block
NANOSECONDS_PER_MS: Final = 1_000_000
MILLISECONDS_PER_SECOND: Final = 1000
CLASSES: Final = {"user": "usr", "system": "sys"}  # of processor time, ours and fio's names
COMMENT: Final = (
    "Completion latencies of fio, nanoseconds, by interval and direction; values are upper ends of fio's bins"
)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """One line of the timeline: when, and the bins of reads and of writes."""

    start_ns: int
    end_ns: int
    bins: Mapping[str, Counts]


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


def document(text: str) -> dict[str, Any]:
    """The JSON document in fio's output, which may have notes before it.

    Raises:
        PlaceError: there is none, with what there is.
    """
    try:
        found, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except ValueError as error:
        raise PlaceError(
            f"fio did not print a complete JSON document: {text[-500:]}", hint="see log/load.log"
        ) from error
    return dict(found)


def failure(found: Mapping[str, Any]) -> str:
    """Which job failed, empty if none did."""
    failed = [job for job in found["jobs"] if job.get("error")]
    if not failed:
        return ""
    return f"fio: error {failed[0]['error']} in {len(failed)} of {len(found['jobs'])} jobs"


def whole(found: Mapping[str, Any]) -> dict[str, Counts]:
    """The bins of the whole run by direction, all jobs together."""
    sums = {side: np.zeros(BINS, dtype=np.int64) for side in SIDES}
    for job in found["jobs"]:
        for side, counts in sums.items():
            for middle, count in job[side]["clat_ns"].get("bins", {}).items():
                counts[index_of(int(middle))] += int(count)
    return sums


def intervals(
    logs: Iterable[str], total: Mapping[str, Counts], *, width_ms: int, life_ns: tuple[int, int]
) -> list[Interval]:
    """The bins of each interval, all jobs together, and what the whole run has beyond them.

    Args:
        logs: the jobs' histogram logs.
        total: from `whole`.
        width_ms: of an interval.
        life_ns: when jobs began and ended, on the place's clock.

    Raises:
        PlaceError: a log has more than the whole run, or is no such log.
    """
    start_ns, end_ns = life_ns
    sums: dict[int, dict[str, Counts]] = {}
    names = {number: side for side, number in SIDES.items()}
    for line in (line for log in logs for line in log.splitlines()):
        fields = np.fromstring(line, dtype=np.int64, sep=",")
        if len(fields) != FIELDS + BINS:
            raise PlaceError(
                f"fio's histogram log has a line of {len(fields)} fields, expected {FIELDS + BINS}",
                hint="use a version of fio from 3.0 to 3.40",
            )
        if (side := names.get(int(fields[1]))) is not None:
            at = max((int(fields[0]) + width_ms // 2) // width_ms - 1, 0)
            bins = sums.setdefault(at, {name: np.zeros(BINS, dtype=np.int64) for name in SIDES})
            bins[side] += fields[FIELDS:]
    found = []
    left = {side: counts.copy() for side, counts in total.items()}
    width_ns = width_ms * NANOSECONDS_PER_MS
    for at, bins in sorted(sums.items()):
        for side, counts in bins.items():
            left[side] -= counts
        found.append(Interval(start_ns + at * width_ns, start_ns + (at + 1) * width_ns, bins))
    if any((counts < 0).any() for counts in left.values()):
        raise PlaceError("fio's interval histograms hold more than its whole run", hint="report this fio version")
    last_ns = found[-1].end_ns if found else start_ns
    if not found or any(counts.any() for counts in left.values()):
        found.append(Interval(last_ns, max(end_ns, last_ns + 1), left))
    return found


def latency_log(found: Sequence[Interval]) -> str:
    """`latency.hlog`: a line per interval and direction with observations."""
    return written(
        COMMENT, (_line(interval, side) for interval in found for side in SIDES if interval.bins[side].any())
    )


def _line(interval: Interval, side: str) -> Line:
    counts = interval.bins[side]
    observed = [(upper_end(index), int(counts[index])) for index in np.flatnonzero(counts).tolist()]
    return Line(tag=side, start_ns=interval.start_ns, end_ns=interval.end_ns, counts=observed)


def timeline(found: Sequence[Interval]) -> bytes:
    """`timeline.parquet`: accesses that ended in each interval."""
    columns: dict[str, pl.Series] = {
        "time_ns": pl.Series([interval.start_ns for interval in found], dtype=pl.Int64),
        "measured": pl.Series([True] * len(found), dtype=pl.Boolean),
    }
    for side in SIDES:
        done = [int(interval.bins[side].sum()) for interval in found]
        none = [0] * len(found)
        columns[f"{side}_committed"] = pl.Series(done, dtype=pl.UInt64)
        columns |= {
            f"{side}_{outcome}": pl.Series(none, dtype=pl.UInt64) for outcome in ("rolled_back", "failed", "retried")
        }
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def result(found: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `result.json` that fio's document gives, in the shape of the load engine's."""
    jobs = found["jobs"]

    def added(side: str, field: str) -> Any:
        return sum(job[side][field] for job in jobs)

    outcomes = {"rolled_back": 0, "failed": 0, "retried": 0}
    errors = sum(job.get("total_err", 0) for job in jobs)
    return {
        "transactions": {side: {"committed": added(side, "total_ios"), **outcomes} for side in SIDES},
        "bytes_moved": {"read": added("read", "io_bytes"), "written": added("write", "io_bytes")},
        "iops": float(added("read", "iops") + added("write", "iops")),
        "errors": [{"kind": "io", "count": errors}] if errors else [],
        "latency": {side: _latency([job[side]["clat_ns"] for job in jobs]) for side in SIDES},
        "client": {f"{kind}_s": sum(_busy_s(job, short) for job in jobs) for kind, short in CLASSES.items()},
        "runtime_ms": max(job["job_runtime"] for job in jobs),
    }


def _busy_s(job: Mapping[str, Any], kind: str) -> float:
    """Processor time of a job alone, without fio's own start and end, which take longer than many a window."""
    return float(job[f"{kind}_cpu"]) / 100 * float(job["job_runtime"]) / MILLISECONDS_PER_SECOND


def _latency(sides: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean and maximum as fio keeps them, without bins."""
    count = sum(int(side["N"]) for side in sides)
    if not count:
        return {}
    total = sum(side["mean"] * side["N"] for side in sides)
    return {"n": count, "mean_ns": total / count, "max_ns": float(max(side["max"] for side in sides))}
