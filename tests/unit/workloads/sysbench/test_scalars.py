"""sysbench's scalars come from its own figures, and nothing is said that it does not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairtrial.record.models import Window
from fairtrial.workloads.made_files import HistogramLine, latency_log
from fairtrial.workloads.sysbench import scalars as sysbench
from fairtrial.workloads.sysbench.output import RESOLUTION

WINDOW = Window(start_ns=0, end_ns=4_000_000_000)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    outcome = {"committed": 200, "rolled_back": 0, "failed": 0, "retried": 3, "statements": 4000}
    result: dict[str, Any] = {
        "window": WINDOW.model_dump(),
        "transactions": {"event": outcome},
        "errors": [{"kind": "ignored", "count": 3}, {"kind": "connection", "count": 2}],
        "latency_ms": {"min": 1.0, "max": 9.5, "sum": 500.0},
        "client": {"user_s": 0.5, "system_s": 0.25},
    }
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    line = HistogramLine(tag="event", start_ns=0, end_ns=WINDOW.end_ns, counts=[(2_000_000, 190), (9_600_000, 10)])
    (tmp_path / "latency.hlog").write_text(latency_log("Of a test", [line]), encoding="utf-8")
    return tmp_path


def test_rates_are_over_the_window_and_errors_are_told_apart(directory: Path) -> None:
    found = sysbench.compute(directory, window=WINDOW)
    expected = {
        "throughput_tps": 50.0,
        "statements_per_s": 1000.0,
        "transactions": 200.0,
        "errors": 5.0,
        "retries": 3.0,
        "reconnects": 2.0,
        "client_cpu_s": 0.75,
    }
    assert {name: found[name] for name in expected} == expected


def test_mean_and_maximum_are_sysbenchs_own_and_percentiles_are_of_its_bins(directory: Path) -> None:
    found = sysbench.compute(directory, window=WINDOW)
    assert found["latency_ns_mean"] == 2.5e6
    assert found["latency_ns_max"] == 9.5e6
    assert found["latency_ns_p50"] == pytest.approx(2e6, rel=0.001)
    assert found["latency_ns_p99"] == pytest.approx(9.6e6, rel=0.001)
    assert found["latency_count"] == 200


def test_a_window_without_an_event_has_no_latency(directory: Path) -> None:
    path = directory / "result.json"
    told = json.loads(path.read_text())
    told["transactions"]["event"] |= {"committed": 0, "statements": 0}
    path.write_text(json.dumps(told), encoding="utf-8")
    (directory / "latency.hlog").write_text(latency_log("Of a test", []), encoding="utf-8")
    found = sysbench.compute(directory, window=WINDOW)
    assert found["throughput_tps"] == 0.0
    assert not [name for name in found if name.startswith("latency")]


def test_every_scalar_is_defined_and_what_sysbench_does_not_tell_is_no_metric(directory: Path) -> None:
    defined = sysbench.definitions()
    assert sysbench.compute(directory, window=WINDOW).keys() <= defined.keys()
    assert not defined.keys() & set(sysbench.UNKNOWN)


def test_percentiles_know_how_coarse_they_are_and_exact_figures_are_exact() -> None:
    defined = sysbench.definitions()
    assert {defined[f"latency_ns_{name}"].resolution for name in ("p50", "p95", "p99", "p999")} == {RESOLUTION}
    assert {defined[f"latency_ns_{name}"].resolution for name in ("mean", "max")} == {0.0}
    assert defined["throughput_tps"].kind == defined["client_cpu_s"].kind == "wall_clock"
    assert defined["reconnects"].kind == "count"


def test_events_that_were_due_and_did_not_end_are_a_share_beyond_chance(directory: Path) -> None:
    found = sysbench.compute(directory, window=WINDOW, rate=100.0)  # 200 of 400
    assert found["unfinished_share"] == pytest.approx(0.5 - 4 * 20 / 400)
    assert found.keys() <= sysbench.definitions(is_open=True).keys()
    assert sysbench.compute(directory, window=WINDOW, rate=55.0)["unfinished_share"] == 0.0, "20 of 220 are chance"
    assert "unfinished_share" not in sysbench.definitions()
