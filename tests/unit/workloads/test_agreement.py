"""What a trial's files are asked when it is committed, and again when it is verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairtrial.errors import FairtrialError
from fairtrial.metrics.latency import merged_latency
from fairtrial.metrics.series import timeline
from fairtrial.study.resolved import Section
from fairtrial.workloads import WORKLOADS, Workload, agreement, workload_of
from fairtrial.workloads.made_files import HistogramLine, latency_log

DONE = {"committed": 2, "rolled_back": 0, "failed": 0, "retried": 0}


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Two payments in the engine's files, both drawn."""
    window = {"start_ns": 10, "end_ns": 20}
    result = {"window": window, "transactions": {"payment": DONE}, "errors": [], "drawn": {"payment": 2}}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    counts = {f"payment_{name}": pl.Series([count], dtype=pl.UInt64) for name, count in DONE.items()}
    pl.DataFrame({"time_ns": [10], "measured": [True], **counts}).write_parquet(tmp_path / timeline.FILE)
    line = HistogramLine(tag="payment", start_ns=10, end_ns=20, counts=[(5, 1), (7, 1)])
    (tmp_path / "latency.hlog").write_text(latency_log("of a test", [line]), encoding="utf-8")
    merged_latency.write(tmp_path)
    return tmp_path


ENGINES = ("tpcc", "oltp", "script", "file_access")


def example(kind: str) -> Workload[Any]:
    return workload_of(Section({kind: dict(WORKLOADS[kind].example)}))


@pytest.mark.parametrize("kind", ENGINES)
def test_files_of_the_engine_that_agree_contradict_nothing(trial: Path, kind: str) -> None:
    assert agreement.contradictions(trial, example(kind)) == []


@pytest.mark.parametrize("kind", ENGINES)
def test_counts_and_sums_of_latencies_are_asked_of_every_engine(trial: Path, kind: str) -> None:
    line = HistogramLine(tag="payment", start_ns=10, end_ns=20, counts=[(5, 1), (7, 2)])
    (trial / "latency.hlog").write_text(latency_log("of a test", [line]), encoding="utf-8")
    (found,) = agreement.contradictions(trial, example(kind))
    assert found.startswith("latency-merged.parquet: payment has 2 observations")
    merged_latency.write(trial)
    (found,) = agreement.contradictions(trial, example(kind))
    assert found == "latency.hlog: 3 latencies of payment, result.json says 2 transactions"


@pytest.mark.parametrize("kind", ["tpcc", "script"])
def test_what_ended_had_been_drawn(trial: Path, kind: str) -> None:
    result = json.loads((trial / "result.json").read_bytes())
    (trial / "result.json").write_text(json.dumps({**result, "drawn": {"payment": 1}}), encoding="utf-8")
    assert agreement.contradictions(trial, example(kind)) == [
        "result.json: 2 transactions payment ended, but only 1 were drawn"
    ]


@pytest.mark.parametrize("kind", [name for name in WORKLOADS if name != "command"])
def test_files_that_are_gone_or_cut_are_an_error_of_ours(tmp_path: Path, kind: str) -> None:
    with pytest.raises(FairtrialError):
        agreement.contradictions(tmp_path, example(kind))
    (tmp_path / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(FairtrialError):
        agreement.contradictions(tmp_path, example(kind))
