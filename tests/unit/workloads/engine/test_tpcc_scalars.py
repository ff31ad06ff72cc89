"""TPC-C scalars against hand-computed figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairtrial.errors import RecordError
from fairtrial.metrics import per_transaction, telemetry
from fairtrial.metrics.series import stability, steadiness
from fairtrial.record.models import Window
from fairtrial.workloads.engine import tpcc_scalars as tpcc

WINDOW = Window(start_ns=5_000_000_000, end_ns=35_000_000_000)  # half a minute
FROM_OTHER_FILES = {*per_transaction.DEFINITIONS, *stability.DEFINITIONS, *steadiness.DEFINITIONS}


def _result(directory: Path, **changes: Any) -> Path:
    outcomes = {"committed": 100, "rolled_back": 0, "failed": 0, "retried": 4}
    result = {
        "window": WINDOW.model_dump(),
        "transactions": {
            "new_order": {"committed": 450, "rolled_back": 5, "failed": 5, "retried": 10},
            "payment": outcomes,
            "delivery": outcomes | {"committed": 40},
        },
        "errors": [
            {"transaction": "payment", "code": "1213", "kind": "deadlock", "message": "", "count": 7},
            {"transaction": "new_order", "code": "1205", "kind": "lock_timeout", "message": "", "count": 2},
        ],
        "drawn": {"new_order": 460},
        "effective": {},
        "client": {"user_s": 1.0},
    }
    (directory / tpcc.FILE).write_text(json.dumps(result | changes), encoding="utf-8")
    return directory


def test_scalars_of_a_known_result(tmp_path: Path) -> None:
    assert tpcc.compute(_result(tmp_path), window=WINDOW) == {
        "throughput_tpm": (450 + 5 + 100 + 40) * 2,
        "throughput_nopm": 900,
        "goodput_tpm": (450 + 100 + 40) * 2,
        "saturated_latencies": 0,
        "transactions": 595,
        "errors": 9,
        "retries": 18,
        "deadlocks": 7,
        "failed_share": 5 / 600,
    }


def test_a_window_without_transactions_has_zero_throughput_and_no_failed_share(tmp_path: Path) -> None:
    scalars = tpcc.compute(_result(tmp_path, transactions={}, errors=[]), window=WINDOW)
    assert set(scalars.values()) == {0.0}


def test_every_scalar_has_a_definition_with_its_direction(tmp_path: Path) -> None:
    own = set(tpcc.DEFINITIONS) - FROM_OTHER_FILES
    watched = _result(tmp_path, loops=[{"busy_s": 1.0, "idle_s": 3.0, "longest_turn_s": 0.5}])
    assert set(tpcc.compute(watched, window=WINDOW)) == own
    higher = {name for name in own if tpcc.DEFINITIONS[name].better == "higher"}
    assert higher == {"goodput_tpm", "throughput_tpm", "throughput_nopm", "transactions"}


def test_counts_of_telemetry_are_given_per_transaction(tmp_path: Path) -> None:
    seconds = range(4, 37)
    samples = {
        "time_ns": [second * 1_000_000_000 for second in seconds],
        "workingset_refault_anon": [1_000_000 + 10 * second for second in seconds],
        "workingset_refault_file": [20 * second for second in seconds],
        "pgmajfault": [7] * len(seconds),
    }
    pl.DataFrame(samples).write_parquet(_result(tmp_path) / "telemetry-vmstat.parquet")
    watched = telemetry.compute(tmp_path, window=WINDOW, ticks_per_s=None)
    scalars = per_transaction.joined(watched, tpcc.compute(tmp_path, window=WINDOW))
    assert scalars["refaults_per_transaction"] == pytest.approx(30 * 30 / 595)
    assert scalars["major_faults_per_transaction"] == 0
    assert "disk_read_bytes_per_transaction" not in scalars
    assert tpcc.DEFINITIONS["refaults_per_transaction"].unit == "faults/transaction"


@pytest.mark.parametrize("content", ["", '{"window": {"start_ns": 1}}', "{"])
def test_a_cut_result_is_an_error_that_names_the_file(tmp_path: Path, content: str) -> None:
    (tmp_path / tpcc.FILE).write_text(content, encoding="utf-8")
    with pytest.raises(RecordError, match=r"result\.json cannot be read"):
        tpcc.compute(tmp_path, window=WINDOW)


def test_a_window_without_length_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no length"):
        tpcc.compute(_result(tmp_path), window=Window(start_ns=1, end_ns=1))
