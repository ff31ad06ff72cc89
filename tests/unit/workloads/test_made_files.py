"""Bins of another program as an HdrHistogram log: read back by the reader of our own."""

from __future__ import annotations

from pathlib import Path

from fairtrial.metrics import latency
from fairtrial.workloads.made_files import LONGEST_NS, HistogramLine, latency_log


def test_what_was_written_is_read_back_by_type(tmp_path: Path) -> None:
    lines = [
        HistogramLine(tag="read", start_ns=10**9, end_ns=2 * 10**9, counts=[(1000, 3), (2_000_000, 2)]),
        HistogramLine(tag="read", start_ns=2 * 10**9, end_ns=3 * 10**9, counts=[(1000, 1)]),
        HistogramLine(tag="write", start_ns=10**9, end_ns=2 * 10**9, counts=[(500, 7)]),
    ]
    (tmp_path / latency.FILE).write_text(latency_log("Of a test", lines), encoding="utf-8")
    found = latency.read(tmp_path)
    assert {kind: each.n for kind, each in found.items()} == {"read": 6, "write": 7}
    assert found["read"].counts.tolist() == [4, 2]
    assert found["write"].highest_ns.tolist() == [500]


def test_a_latency_beyond_the_longest_is_kept_as_that(tmp_path: Path) -> None:
    line = HistogramLine(tag="event", start_ns=0, end_ns=1, counts=[(10 * LONGEST_NS, 1)])
    (tmp_path / latency.FILE).write_text(latency_log("Of a test", [line]), encoding="utf-8")
    assert latency.read(tmp_path)["event"].max_ns >= LONGEST_NS


def test_the_header_says_what_is_counted_and_on_which_clock() -> None:
    text = latency_log("Of a test", [])
    assert text.splitlines()[0] == "#Of a test"
    assert "CLOCK_MONOTONIC" in text
    assert text.splitlines()[-1].startswith('"StartTimestamp"')
