"""pgbench's scalars come from what it logged, and nothing is said that it does not tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.pgbench import kept

from fairtrial.record.models import Window
from fairtrial.workloads import tool_scalars
from fairtrial.workloads.pgbench import scalars as pgbench


def computed(name: str, directory: Path) -> dict[str, float]:
    run = kept(name, directory)
    trial = run.trial()
    window = Window.model_validate(json.loads((trial / "result.json").read_text())["window"])
    return pgbench.compute(trial, window=window, types=run.parameters.types, rate=run.parameters.rate)


def test_throughput_is_pgbenchs_own_rate(tmp_path: Path) -> None:
    found = computed("plain", tmp_path)
    printed = kept("plain", tmp_path).text
    assert f"tps = {found['throughput_tps']:.1f}" in printed  # its own time is known to a microsecond
    assert f"latency average = {found['latency_ns_mean'] / 1e6:.3f} ms" in printed
    assert found["transactions"] == found["latency_count"] == 60
    assert found["errors"] == found["failed_share"] == 0


def test_failures_and_retries_are_counted_apart(tmp_path: Path) -> None:
    found = computed("mixed", tmp_path)
    expected = {
        "transactions": 114.0,
        "retries": 46.0,
        "errors": 52.0,
        "serialization_failures": 5.0,
        "deadlock_failures": 1.0,
        "failed_share": 6 / 120,
        "pay_latency_count": 39.0,
        "connecting_s": 0.039628,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_an_open_loop_has_its_lag_and_what_it_skipped(tmp_path: Path) -> None:
    found = computed("rated", tmp_path)
    assert found["skipped"] == 147
    assert found["skipped_share"] == pytest.approx(147 / 298)
    assert found["over_limit_share"] == pytest.approx(67 / 151)
    assert found["arrived_per_s"] == pytest.approx(298 / 151 * found["throughput_tps"])
    assert found["lateness_ns_max"] == pytest.approx(11.224e6, rel=0.001)
    assert found["unfinished_share"] == 0.0


def test_what_was_due_and_never_logged_is_unfinished(tmp_path: Path) -> None:
    trial = kept("rated", tmp_path).trial()
    window = Window.model_validate(json.loads((trial / "result.json").read_text())["window"])
    seconds = (window.end_ns - window.start_ns) / 1e9
    found = pgbench.compute(trial, window=window, types=("select_only",), rate=1000 / seconds)
    assert found["unfinished_share"] == pytest.approx(1 - (298 + 4 * 1000**0.5) / 1000)


@pytest.mark.parametrize("name", ["plain", "mixed", "failing", "rated"])
def test_every_scalar_is_defined_and_what_pgbench_does_not_tell_is_no_metric(tmp_path: Path, name: str) -> None:
    asked = kept(name, tmp_path).parameters
    defined = pgbench.definitions(
        asked.types, is_open=asked.rate is not None, has_limit=asked.latency_limit is not None
    )
    assert computed(name, tmp_path).keys() <= defined.keys()
    assert not defined.keys() & set(tool_scalars.UNKNOWN)


def test_kinds_and_resolutions() -> None:
    defined = pgbench.definitions(("tpcb_like",), is_open=True, has_limit=True)
    wall_clock = {"throughput_tps", "client_cpu_s", "connecting_s", "arrived_per_s", "lateness_ns_p99"}
    assert {defined[name].kind for name in wall_clock} == {"wall_clock"}
    counts = {"skipped", "retries", "deadlock_failures", "serialization_failures"}
    assert {defined[name].kind for name in counts} == {"count"}
    assert defined["latency_ns_mean"].resolution == defined["latency_ns_max"].resolution == 0
    assert defined["latency_ns_p50"].resolution > 0
