"""Latencies that another program counted in bins, as an HdrHistogram log like the load engine's own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hdrh.histogram import HdrHistogram

from fairtrial.metrics import latency

LONGEST_NS: Final = 3_600_000_000_000  # as the load engine's own histograms
DIGITS: Final = 3
NANOSECONDS_PER_MS: Final = 1_000_000
COLUMNS: Final = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


@dataclass(frozen=True)
class Line:
    """One interval of one type: its bins as highest value in nanoseconds and count, none of them 0."""

    tag: str
    start_ns: int
    end_ns: int
    counts: Sequence[tuple[int, int]]


def written(comment: str, lines: Iterable[Line]) -> str:
    """The log's text; `comment` says what was counted, and in which bins."""
    header = (
        f"#{comment}\n#Time stamps are seconds on CLOCK_MONOTONIC of the place\n"
        f"#[Histogram log format version 1.3]\n{COLUMNS}\n"
    )
    return header + "".join(map(_text, lines))


def differing(text: str, directory: Path, *, file: str = latency.FILE) -> Iterator[str]:
    """Types of which a trial's file has other classes than a log's text, as beginnings of sentences."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / file).write_text(text, encoding="utf-8")
        fresh = latency.read(Path(scratch), file=file)
    stored = latency.read(directory, file=file)
    for kind in dict.fromkeys([*fresh, *stored]):
        given, found = (
            {} if each is None else dict(zip(each.highest_ns.tolist(), each.counts.tolist(), strict=True))
            for each in (fresh.get(kind), stored.get(kind))
        )
        if given != found:
            yield f"{file}: {sum(found.values())} of {kind} in other classes than"


def _text(line: Line) -> str:
    histogram = HdrHistogram(1, LONGEST_NS, DIGITS)
    for value_ns, count in line.counts:
        histogram.record_value(min(value_ns, LONGEST_NS), count)
    start_s, length_s = line.start_ns / 1e9, (line.end_ns - line.start_ns) / 1e9
    largest_ms = histogram.get_max_value() / NANOSECONDS_PER_MS
    encoded = histogram.encode().decode()
    return f"Tag={line.tag},{start_s:.3f},{length_s:.3f},{largest_ms:.3f},{encoded}\n"
