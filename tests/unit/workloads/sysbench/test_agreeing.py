"""sysbench's output against the files made from it: equal as written, and each changed figure is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.inference import printed
from support.inference.printed import SYSBENCH as PRINTED

from fairtrial.metrics import consistency
from fairtrial.workloads.sysbench import output
from fairtrial.workloads.sysbench.output import contradictions


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    printed.sysbench(tmp_path)
    return tmp_path


def test_files_as_they_were_made_agree(directory: Path) -> None:
    assert contradictions(directory) == []
    assert consistency.contradictions(directory) == []


def test_a_window_that_only_the_process_ended_agrees_with_itself(directory: Path) -> None:
    text = "".join(line for line in PRINTED.splitlines(keepends=True) if not line.startswith("fairtrial: "))
    own = output.result(text, ended_ns=10**13)
    (directory / "log" / "load.log").write_text(text, encoding="utf-8")
    (directory / "timeline.parquet").write_bytes(output.timeline(text, window=own.window))
    (directory / "result.json").write_text(json.dumps(own.figures()), encoding="utf-8")
    assert contradictions(directory) == []


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("total_s", lambda found: found.update(total_s=3.0)),
        ("transactions", lambda found: found["transactions"]["event"].update(committed=8)),
        ("latency_ms", lambda found: found["latency_ms"].update(max=19.74)),
        ("errors", lambda found: found.update(errors=[{"kind": "ignored", "count": 1}])),
        ("window", lambda found: found["window"].update(start_ns=5)),
    ],
)
def test_a_figure_that_sysbench_did_not_print_is_found(
    directory: Path, name: str, change: Callable[[dict[str, Any]], None]
) -> None:
    path = directory / "result.json"
    changed = json.loads(path.read_text())
    change(changed)
    path.write_text(json.dumps(changed))
    (found,) = contradictions(directory)
    assert found.startswith(f"result.json: {name} is ")


def test_latencies_in_other_bins_are_found(directory: Path) -> None:
    path = directory / "log" / "load.log"
    path.write_text(PRINTED.replace("       0.093 |", "       0.096 |", 1))
    assert path.read_text() != PRINTED
    (found,) = contradictions(directory)
    assert found.startswith("latency.hlog: 13394 of event in other classes")


def test_other_intervals_are_found(directory: Path) -> None:
    path = directory / "timeline.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(event_committed=pl.col("event_committed").reverse()).write_parquet(path)
    (found,) = contradictions(directory)
    assert found == "timeline.parquet: other intervals than log/load.log gives"
