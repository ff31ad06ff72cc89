"""fio's JSON (`--output-format=json` or `json+`): one row per job name, its clones put together.

Counts and rates of clones add up, means weigh by count. Percentiles cannot be averaged: they are taken from the merged
bins of `json+`, and from plain `json` only where a job has no clone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from fairtrial.errors import InputError, Problem
from fairtrial.imports.rows import Part
from fairtrial.imports.sources import Source
from fairtrial.study.catalogue import MetricDefinition

DIRECTIONS: Final = ("read", "write", "trim")
LATENCIES: Final = ("slat_ns", "clat_ns", "lat_ns")
PERCENTILES: Final = ("50", "90", "95", "99", "99.9", "99.99")
VALUE: Final = "iops"
SOURCE: Final = "fio"


def is_fio(content: bytes) -> bool:
    """A JSON document that says so; fio prints notes before it where it has any."""
    return b'"fio version"' in content


def part(source: Source) -> Part:
    """A row per job name.

    Raises:
        InputError: the document is cut, a job failed, or no job did anything.
    """
    text = source.content.decode("utf-8", errors="replace")
    try:
        document, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except ValueError as error:
        problem = Problem(f"not a complete JSON document: {error}", source.name)
        raise InputError([problem], hint="run fio again with --output-format=json, and let it finish") from error
    jobs: dict[str, list[Mapping[str, Any]]] = {}
    for job in document.get("jobs", []):
        if job.get("error"):
            problem = Problem(f"fio reports error {job['error']} in job {job['jobname']}", source.name)
            raise InputError([problem], hint="leave the file out, or run fio again: a failed job measures nothing")
        jobs.setdefault(job["jobname"], []).append(job)
    rows = [{"job": name, **dict(_figures(clones))} for name, clones in jobs.items()]
    if not any(VALUE in row for row in rows):
        raise InputError([Problem("no job did any I/O", source.name)], hint="give the output of a complete run of fio")
    return Part(name=source.name, frame=pl.DataFrame(rows))


def _figures(clones: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    busy = [name for name in DIRECTIONS if any(job.get(name, {}).get("total_ios") for job in clones)]
    if not busy:
        return
    yield "iops", sum(job[name]["iops"] for job in clones for name in busy)
    yield "bandwidth_bytes_per_s", sum(_bandwidth(job[name]) for job in clones for name in busy)
    for name in busy:
        sides = [job[name] for job in clones]
        yield f"{name}_iops", sum(side["iops"] for side in sides)
        yield f"{name}_bandwidth_bytes_per_s", sum(_bandwidth(side) for side in sides)
        for latency in LATENCIES:
            yield from _latency(f"{name}_{latency}", [side.get(latency, {}) for side in sides])
    yield "user_cpu_percent", sum(job.get("usr_cpu", 0.0) for job in clones) / len(clones)
    yield "system_cpu_percent", sum(job.get("sys_cpu", 0.0) for job in clones) / len(clones)
    yield "context_switches", float(sum(job.get("ctx", 0) for job in clones))


def _bandwidth(side: Mapping[str, Any]) -> float:
    """Bytes per second; old versions say KiB per second only."""
    return float(side["bw_bytes"]) if "bw_bytes" in side else float(side["bw"]) * 1024


def _latency(name: str, sides: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    counts = [int(side.get("N", 0)) for side in sides]
    total = sum(counts)
    if not total:
        return
    yield f"{name}_mean", sum(side["mean"] * count for side, count in zip(sides, counts, strict=True)) / total
    yield f"{name}_max", float(max(side["max"] for side in sides))
    if all("bins" in side for side, count in zip(sides, counts, strict=True) if count):
        yield from _merged(name, sides)
    elif len(sides) == 1:
        printed = {float(key): value for key, value in sides[0].get("percentile", {}).items()}
        yield from (
            (f"{name}_p{percentile}", float(printed[float(percentile)]))
            for percentile in PERCENTILES
            if float(percentile) in printed
        )


def _merged(name: str, sides: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """Percentiles over all clones' bins: the first bin at which the share of observations is reached, as fio does."""
    bins: dict[int, int] = {}
    for side in sides:
        for value, count in side.get("bins", {}).items():
            bins[int(value)] = bins.get(int(value), 0) + int(count)
    total = sum(bins.values())
    for percentile in PERCENTILES:
        wanted, seen = float(percentile) / 100 * total, 0
        for value in sorted(bins):
            seen += bins[value]
            if seen >= wanted:
                yield f"{name}_p{percentile}", float(value)
                break


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
    )


_UNITS: Final = {"iops": "I/O per s", "bytes_per_s": "B/s", "_ns": "ns", "percent": "%", "switches": "switches"}
