"""The three files of a drive against each other."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hdrh.histogram import HdrHistogram

from fairtrial.errors import RecordError
from fairtrial.metrics import consistency, latency
from fairtrial.metrics.series import timeline
from fairtrial.workloads.engine import tpcc_scalars as tpcc

COUNTS = {"committed": 3, "rolled_back": 1, "failed": 2, "retried": 5}


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """A drive of one type: 3 committed, 1 rolled back, 2 failed in the window, and a ramp-up before it."""
    content = {"window": {"start_ns": 10, "end_ns": 30}, "transactions": {"payment": COUNTS}, "errors": []}
    (tmp_path / tpcc.FILE).write_text(json.dumps(content), encoding="utf-8")
    write_timeline(tmp_path, committed=[100, 1, 2])
    write_log(tmp_path, observations=4)
    return tmp_path


def write_timeline(trial: Path, *, committed: list[int]) -> None:
    columns = {"committed": committed, "rolled_back": [9, 0, 1], "failed": [9, 2, 0], "retried": [9, 5, 0]}
    named = {f"payment_{name}": pl.Series(values, dtype=pl.UInt64) for name, values in columns.items()}
    frame = pl.DataFrame({"time_ns": [0, 10, 20], "measured": [False, True, True], **named})
    frame.write_parquet(trial / timeline.FILE)


def write_log(trial: Path, *, observations: int, tag: str = "payment") -> None:
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for value in range(1, observations + 1):
        histogram.record_value(value * 1000)
    line = f"Tag={tag},1.000,1.000,0,{histogram.encode().decode()}\n"
    (trial / latency.FILE).write_text("#[Histogram log format version 1.3]\n" + line, encoding="utf-8")


def test_files_that_agree_contradict_nothing(trial: Path) -> None:
    assert consistency.contradictions(trial) == []


def test_the_ramp_up_does_not_count(trial: Path) -> None:
    write_timeline(trial, committed=[999, 1, 2])
    assert consistency.contradictions(trial) == []


def test_an_interval_with_another_count_is_named(trial: Path) -> None:
    write_timeline(trial, committed=[100, 1, 3])
    (found,) = consistency.contradictions(trial)
    assert found == "timeline.parquet: payment_committed adds up to 4 over the window, result.json says 3"


@pytest.mark.parametrize("observations", [3, 5, 6])
def test_a_latency_too_few_or_too_many_is_named(trial: Path, observations: int) -> None:
    """Failed transactions have no latency: 6 would be all that ended."""
    write_log(trial, observations=observations)
    (found,) = consistency.contradictions(trial)
    assert found == f"latency.hlog: {observations} latencies of payment, result.json says 4 transactions"


def test_a_type_that_only_one_file_knows_is_named(trial: Path) -> None:
    write_log(trial, observations=4, tag="delivery")
    assert consistency.contradictions(trial) == [
        "latency.hlog: 0 latencies of payment, result.json says 4 transactions",
        "latency.hlog: 4 latencies of delivery, result.json says 0 transactions",
    ]


@pytest.mark.parametrize("file", [latency.FILE, timeline.FILE])
def test_a_file_that_was_never_written_contradicts_nothing(trial: Path, file: str) -> None:
    (trial / file).unlink()
    assert consistency.contradictions(trial) == []


def test_without_a_result_nothing_can_be_said(trial: Path) -> None:
    (trial / tpcc.FILE).unlink()
    with pytest.raises(RecordError, match=r"result\.json"):
        consistency.contradictions(trial)


def test_a_stream_of_intervals_that_nobody_could_read_is_named(trial: Path) -> None:
    (trial / timeline.FILE).unlink()
    (trial / timeline.STREAM).write_bytes(b"no stream")
    assert consistency.contradictions(trial) == ["timeline.arrows: no interval can be read from it"]
