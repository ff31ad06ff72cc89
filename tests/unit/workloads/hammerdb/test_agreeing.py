"""HammerDB's output against the files made from it: equal as written, and each changed figure is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.inference import printed

from fairtrial.workloads.hammerdb.output import contradictions


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    printed.hammerdb(tmp_path)
    return tmp_path


def test_files_as_they_were_made_agree(directory: Path) -> None:
    assert contradictions(directory, interval_s=1) == []


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("nopm", lambda told: told.update(nopm=15795)),
        ("tpm", lambda told: told.update(tpm=1)),
        ("window", lambda told: told["window"].update(start_ns=told["window"]["start_ns"] + 1)),
        ("window", lambda told: told["clock"].update(before_ns=0)),
        ("transactions", lambda told: told["transactions"]["transaction"].update(committed=0)),
        ("latency_ms", lambda told: told["latency_ms"]["payment"].update(p99=0.1)),
        ("errors", lambda told: told.update(errors=[{"kind": "transaction", "count": 1}])),
    ],
)
def test_a_changed_figure_is_found(directory: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = directory / "result.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    assert any(each.startswith(f"result.json: {name} is ") for each in contradictions(directory, interval_s=1))


def test_a_changed_interval_is_found(directory: Path) -> None:
    path = directory / "timeline.parquet"
    pl.read_parquet(path).with_columns(pl.col("transaction_committed") + 1).write_parquet(path)
    assert contradictions(directory, interval_s=1) == ["timeline.parquet: other intervals than log/load.log gives"]
