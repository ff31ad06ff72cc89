"""HammerDB's scalars come from its own figures, and nothing is said that it does not tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairtrial.record.models import Window
from fairtrial.workloads.hammerdb import output
from fairtrial.workloads.hammerdb import scalars as hammerdb

PRINTED = (Path(__file__).parents[2] / "workloads" / "hammerdb" / "printed.txt").read_text(encoding="utf-8")
CLOCK = output.HammerdbClock(before_ns=1_795_000_000_000_000_000, after_ns=1_795_000_000_000_000_000)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    told = {**output.result(PRINTED, CLOCK).figures(), "client": {"user_s": 0.5, "system_s": 0.25}}
    (tmp_path / "result.json").write_text(json.dumps(told), encoding="utf-8")
    (tmp_path / "timeline.parquet").write_bytes(output.timeline(PRINTED, CLOCK, interval_s=1))
    return tmp_path


def compute(directory: Path) -> dict[str, float]:
    window = Window.model_validate(json.loads((directory / "result.json").read_text())["window"])
    return hammerdb.compute(directory, window=window)


def test_throughput_is_hammerdbs_own(directory: Path) -> None:
    found = compute(directory)
    expected = {
        "throughput_nopm": 15794.0,
        "throughput_tpm": 36823.0,
        "transactions": 36823.0,
        "errors": 0.0,
        "client_cpu_s": 0.75,
        "client_counting_s": 0.005709,
        "new_order_calls": 16414.0,
    }
    assert {name: found[name] for name in expected} == expected


def test_latencies_are_xtprofs_in_our_unit(directory: Path) -> None:
    found = compute(directory)
    assert found["new_order_latency_ns_p95"] == pytest.approx(10.012e6)
    assert found["new_order_latency_ns_mean"] == pytest.approx(3.429e6)


def test_the_counters_timeline_says_how_even_it_was(directory: Path) -> None:
    found = compute(directory)
    assert found["zero_throughput_s"] == 0
    assert found["throughput_cv"] > 0


@pytest.mark.parametrize("profiled", [True, False])
def test_every_scalar_is_defined_and_none_that_hammerdb_cannot_tell(directory: Path, *, profiled: bool) -> None:
    if not profiled:
        path = directory / "result.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "latency_ms": {}}))
    found = compute(directory)
    defined = hammerdb.definitions(profiled=profiled)
    assert set(found) <= set(defined)
    assert not set(hammerdb.UNKNOWN) & set(defined)
    assert not set(hammerdb.UNKNOWN) & set(found)
    assert profiled == any("latency" in name for name in defined)
