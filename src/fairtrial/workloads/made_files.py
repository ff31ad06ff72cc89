"""The files that another program's drive leaves, made from what it said, in the shape of the load engine's own."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from hdrh.histogram import HdrHistogram
from pydantic import Field

from fairtrial.metrics import drive
from fairtrial.metrics.series import timeline as series
from fairtrial.protocol import generated as wire

LONGEST_NS: Final = 3_600_000_000_000  # as the load engine's own histograms
DIGITS: Final = 3
NANOSECONDS_PER_MS: Final = 1_000_000
COLUMNS: Final = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


class ToolResult(drive.DriveResult):
    """`result.json`; a file holds what was given, and no defaults.

    Attributes:
        client: the kernel's accounting of the program, unless it accounts for itself.
        effective: options as the program reads them back; none does.
    """

    client: dict[str, int | float] = Field(default_factory=dict)
    effective: dict[str, str] = Field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """As the file has it."""
        return self.model_dump(exclude_unset=True)

    def written(self, usage: wire.Usage) -> bytes:
        """The file, with the kernel's accounting of the program."""
        client = {**usage.model_dump(), **self.client}
        return json.dumps({**self.figures(), "client": client, "effective": self.effective}).encode()


def timeline(
    starts_ns: Sequence[int],
    counts: Mapping[str, Mapping[str, Sequence[int]]],
    *,
    measured: Sequence[bool] | None = None,
) -> bytes:
    """`timeline.parquet`.

    Args:
        starts_ns: of intervals, on the place's clock.
        counts: what ended in each, by type and outcome; an outcome that is not given never happened.
        measured: which lie in the window whole (default: all).
    """
    never = [0] * len(starts_ns)
    columns = {
        f"{kind}_{outcome}": pl.Series(by_outcome.get(outcome, never), dtype=pl.UInt64)
        for kind, by_outcome in counts.items()
        for outcome in series.OUTCOMES
    }
    inside = pl.Series([True] * len(starts_ns) if measured is None else measured, dtype=pl.Boolean)
    content = io.BytesIO()
    pl.DataFrame({"time_ns": pl.Series(starts_ns, dtype=pl.Int64), "measured": inside, **columns}).write_parquet(
        content
    )
    return content.getvalue()


@dataclass(frozen=True)
class HistogramLine:
    """A log's interval of one type: its bins as highest value in nanoseconds and count, none of them 0."""

    tag: str
    start_ns: int
    end_ns: int
    counts: Sequence[tuple[int, int]]


def latency_log(comment: str, lines: Iterable[HistogramLine]) -> str:
    """`latency.hlog`; `comment` says what was counted, and in which bins."""
    header = (
        f"#{comment}\n#Time stamps are seconds on CLOCK_MONOTONIC of the place\n"
        f"#[Histogram log format version 1.3]\n{COLUMNS}\n"
    )
    return header + "".join(map(_text, lines))


def _text(line: HistogramLine) -> str:
    histogram = HdrHistogram(1, LONGEST_NS, DIGITS)
    for value_ns, count in line.counts:
        histogram.record_value(min(value_ns, LONGEST_NS), count)
    start_s, length_s = line.start_ns / 1e9, (line.end_ns - line.start_ns) / 1e9
    largest_ms = histogram.get_max_value() / NANOSECONDS_PER_MS
    return f"Tag={line.tag},{start_s:.3f},{length_s:.3f},{largest_ms:.3f},{histogram.encode().decode()}\n"
