"""Scalars of the OLTP family against hand-computed figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import RecordError
from fairtrial.metrics import drive, latency, per_transaction
from fairtrial.metrics.series import stability, steadiness
from fairtrial.record.models import Window
from fairtrial.workloads.engine import oltp_scalars as oltp
from fairtrial.workloads.engine import tpcc_scalars as tpcc

WINDOW = Window(start_ns=5_000_000_000, end_ns=25_000_000_000)  # 20 s
FROM_OTHER_FILES = {*per_transaction.DEFINITIONS, *stability.DEFINITIONS, *steadiness.DEFINITIONS}


def result(directory: Path, **changes: Any) -> Path:
    outcomes = {"committed": 990, "rolled_back": 0, "failed": 10, "retried": 4, "statements": 20_100}
    found = {
        "window": WINDOW.model_dump(),
        "transactions": {"read_write": outcomes},
        "errors": [{"transaction": "read_write", "code": "1213", "kind": "deadlock", "message": "", "count": 14}],
        "loops": [
            {"busy_s": 4.0, "idle_s": 16.0, "longest_turn_s": 0.25, "latest_timer_s": 0.0},
            {"busy_s": 15.0, "idle_s": 5.0, "longest_turn_s": 0.125, "latest_timer_s": 0.0},
        ],
    }
    (directory / drive.FILE).write_text(json.dumps(found | changes), encoding="utf-8")
    return directory


def test_scalars_of_a_known_result(tmp_path: Path) -> None:
    assert oltp.compute(result(tmp_path), window=WINDOW) == {
        "throughput_tps": 49.5,
        "goodput_tps": 49.5,
        "saturated_latencies": 0,
        "statements_per_s": 1005,
        "transactions": 990,
        "errors": 14,
        "retries": 4,
        "deadlocks": 14,
        "failed_share": 0.01,
        "client_busy_share": 0.75,
        "client_longest_turn_s": 0.25,
    }


def test_throughput_has_the_rollbacks_of_a_scripts_own_rule_and_says_so(tmp_path: Path) -> None:
    half = {"order": {"committed": 50, "rolled_back": 50, "failed": 0, "retried": 0, "statements": 200}}
    found = oltp.compute(result(tmp_path, transactions=half), window=WINDOW)
    assert (found["throughput_tps"], found["goodput_tps"]) == (5.0, 2.5)
    assert "rolled back by the workload's rule" in oltp.DEFINITIONS["throughput_tps"].source


def test_every_scalar_is_defined_and_rates_are_wall_clock(tmp_path: Path) -> None:
    own = set(oltp.DEFINITIONS) - FROM_OTHER_FILES
    assert set(oltp.compute(result(tmp_path), window=WINDOW)) == own
    clocks = {name for name in own if oltp.DEFINITIONS[name].kind == "wall_clock"}
    client = {"client_busy_share", "client_longest_turn_s"}
    assert clocks == {"throughput_tps", "goodput_tps", "statements_per_s"} | client
    assert all(oltp.DEFINITIONS[name].better == "higher" for name in clocks - client)


def test_both_workloads_count_the_same_things_alike(tmp_path: Path) -> None:
    both = set(oltp.DEFINITIONS) & set(tpcc.DEFINITIONS)
    directory = result(tmp_path)
    ours, theirs = oltp.compute(directory, window=WINDOW), tpcc.compute(directory, window=WINDOW)
    shared = both - FROM_OTHER_FILES
    counted = {"saturated_latencies", "transactions", "errors", "retries", "deadlocks", "failed_share"}
    assert shared == counted | {"client_busy_share", "client_longest_turn_s"}
    for name in shared:
        assert ours[name] == theirs[name]
        assert oltp.DEFINITIONS[name] == tpcc.DEFINITIONS[name]


def test_a_result_of_an_older_engine_has_no_statements_and_is_read(tmp_path: Path) -> None:
    old = {"read_write": {"committed": 3, "rolled_back": 0, "failed": 0, "retried": 0}}
    assert oltp.compute(result(tmp_path, transactions=old), window=WINDOW)["statements_per_s"] == 0


def test_a_client_whose_threads_were_not_watched_has_no_figures_about_them(tmp_path: Path) -> None:
    found = oltp.compute(result(tmp_path, loops=[]), window=WINDOW)
    assert not any(name.startswith("client_") for name in found)


def test_latencies_are_of_all_transactions_because_there_is_one_type(tmp_path: Path) -> None:
    directory = result(tmp_path)
    scalars = {**oltp.compute(directory, window=WINDOW), **latency.compute(directory, by_type=False)}
    assert scalars["throughput_tps"] == 49.5
    assert not any(name.startswith("read_write") for name in scalars)


def test_a_window_without_length_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no length"):
        oltp.compute(result(tmp_path), window=Window(start_ns=1, end_ns=1))
