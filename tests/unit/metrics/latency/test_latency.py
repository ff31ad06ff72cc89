"""Latency scalars against NumPy's order statistics and HdrHistogram's own percentiles."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from fairtrial.errors import RecordError
from fairtrial.metrics import latency
from fairtrial.metrics.latency import percentiles
from fairtrial.workloads.engine import tpcc_scalars as tpcc

HOUR_NS = 3_600_000_000_000
PRECISION = 2e-3  # 3 significant digits: a class is at most 0.1 % wide, on either side


def _line(values: np.ndarray, *, tag: str, start_s: float, highest_ns: int = HOUR_NS) -> str:
    histogram = HdrHistogram(1, highest_ns, 3)
    for value in values:
        assert histogram.record_value(int(value))
    return f"Tag={tag},{start_s:.3f},1.000,0,{histogram.encode().decode()}\n"


def _log(directory: Path, *lines: str) -> Path:
    (directory / latency.FILE).write_text("#[Histogram log format version 1.3]\n" + "".join(lines), encoding="utf-8")
    return directory


@pytest.fixture
def samples() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {
        "payment": random.lognormal(15, 0.8, 20_000),
        "new_order": np.concatenate([random.lognormal(16, 0.3, 9_000), random.uniform(1e9, 2e9, 200)]),
    }


def test_percentiles_over_all_intervals_and_types_are_those_of_the_pooled_samples(
    tmp_path: Path, samples: dict[str, np.ndarray]
) -> None:
    lines = [
        _line(part, tag=kind, start_s=1000 + index)
        for kind, values in samples.items()
        for index, part in enumerate(np.array_split(values, 7))
    ]
    scalars = latency.compute(_log(tmp_path, *lines))
    pooled = {"": np.concatenate(list(samples.values()))} | {f"{kind}_": values for kind, values in samples.items()}
    for prefix, values in pooled.items():
        for name, percent in percentiles.PERCENTILES.items():
            expected = np.sort(values)[math.ceil(round(percent / 100 * len(values), 6)) - 1]
            assert scalars[f"{prefix}latency_ns_{name}"] == pytest.approx(expected, rel=PRECISION), (prefix, name)
        assert scalars[f"{prefix}latency_ns_max"] == pytest.approx(values.max(), rel=PRECISION)
        assert scalars[f"{prefix}latency_ns_mean"] == pytest.approx(values.mean(), rel=PRECISION)
        assert scalars[f"{prefix}latency_count"] == len(values)
    assert len(scalars) == 7 * len(pooled)


def test_merged_percentile_is_not_the_mean_of_percentiles(tmp_path: Path) -> None:
    quick, slow = np.full(9_900, 1_000_000), np.full(100, 900_000_000)
    scalars = latency.compute(
        _log(tmp_path, _line(quick, tag="payment", start_s=1), _line(slow, tag="payment", start_s=2))
    )
    assert scalars["latency_ns_p50"] == pytest.approx(1e6, rel=PRECISION)
    assert scalars["latency_ns_p99"] == pytest.approx(1e6, rel=PRECISION)
    assert scalars["latency_ns_p999"] == pytest.approx(9e8, rel=PRECISION)


def test_every_scalar_equals_what_the_library_says_of_the_same_counts(
    tmp_path: Path, samples: dict[str, np.ndarray]
) -> None:
    values = samples["new_order"]
    whole = HdrHistogram(1, HOUR_NS, 3)
    for value in values:
        whole.record_value(int(value))
    distribution = latency.read(_log(tmp_path, _line(values, tag="new_order", start_s=5)))["new_order"]
    assert distribution.n == whole.get_total_count()
    assert distribution.max_ns == whole.get_max_value()
    assert distribution.mean_ns == pytest.approx(whole.get_mean_value(), rel=1e-12)
    for percent in (0.1, 1, 10, 50, 90, 99, 99.9, 99.99, 100):
        assert distribution.percentile_ns(percent) == whole.get_value_at_percentile(percent), percent


def test_intervals_with_different_ranges_merge(tmp_path: Path) -> None:
    low = _line(np.full(10, 2_000_000), tag="payment", start_s=1, highest_ns=10_000_000)
    high = _line(np.full(30, 5_000_000_000), tag="payment", start_s=2)
    distribution = latency.read(_log(tmp_path, low, high))["payment"]
    assert distribution.n == 40
    assert distribution.percentile_ns(25) == pytest.approx(2e6, rel=PRECISION)
    assert distribution.percentile_ns(30) == pytest.approx(5e9, rel=PRECISION)


def test_lines_of_earlier_intervals_after_later_ones_count_too(tmp_path: Path) -> None:
    lines = [_line(np.full(5, 1e6), tag=kind, start_s=start) for kind, start in (("a", 9.0), ("a", 8.0), ("b", 7.0))]
    assert {kind: found.n for kind, found in latency.read(_log(tmp_path, *lines)).items()} == {"a": 10, "b": 5}


def test_untagged_lines_count_towards_all_types_only(tmp_path: Path) -> None:
    line = _line(np.full(5, 1e6), tag="x", start_s=1).removeprefix("Tag=x,")
    assert set(latency.compute(_log(tmp_path, line))) == {
        f"latency_ns_{name}" for name in (*percentiles.PERCENTILES, "max", "mean")
    } | {"latency_count"}


def test_a_trial_without_a_log_or_without_observations_has_no_latency(tmp_path: Path) -> None:
    assert latency.compute(tmp_path) == {}
    assert latency.compute(_log(tmp_path)) == {}
    assert math.isnan(latency.merged([]).percentile_ns(99))
    assert math.isnan(latency.merged([]).mean_ns)


def test_a_damaged_log_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    line = _line(np.full(5, 1e6), tag="payment", start_s=1)
    _log(tmp_path, line[: len(line) // 2] + "\n")
    with pytest.raises(RecordError, match=r"latency\.hlog cannot be decoded"):
        latency.compute(tmp_path)


def test_exceedances_say_how_many_observations_a_tail_percentile_rests_on() -> None:
    scalars = {"latency_count": 50_000.0, "payment_latency_count": 1_000.0}
    assert percentiles.exceedances("latency_ns_p999", scalars) == pytest.approx(50)
    assert percentiles.exceedances("payment_latency_ns_p99", scalars) == pytest.approx(10)
    for other in ("latency_ns_mean", "delivery_latency_ns_p99", "throughput_tpm"):
        assert percentiles.exceedances(other, scalars) is None


def test_every_scalar_has_a_definition(tmp_path: Path) -> None:
    lines = [_line(np.full(5, 1e6), tag=kind, start_s=1) for kind in tpcc.TYPES]
    assert set(latency.compute(_log(tmp_path, *lines))) == set(latency.definitions(tpcc.TYPES))
    assert all(definition.name == name for name, definition in latency.definitions(tpcc.TYPES).items())


def test_a_log_of_the_rust_library_reads_as_what_was_recorded(tmp_path: Path) -> None:
    """Written by hdrhistogram 7.6 for Rust, as the load engine does: fixed and growing ranges, an empty type."""
    log = Path(__file__).with_name("latency_rust.hlog")
    (tmp_path / latency.FILE).write_bytes(log.read_bytes())
    numbers = np.arange(5_000, dtype=np.int64)
    recorded = {"payment": 1_000 * (numbers * numbers % 9_973 + 1), "new_order": 50_000 + 977 * numbers[:3_000]}
    scalars = latency.compute(tmp_path)
    for kind, values in recorded.items():
        assert scalars[f"{kind}_latency_count"] == len(values)
        assert scalars[f"{kind}_latency_ns_max"] == pytest.approx(values.max(), rel=PRECISION)
        assert scalars[f"{kind}_latency_ns_mean"] == pytest.approx(values.mean(), rel=PRECISION)
        for name, percent in percentiles.PERCENTILES.items():
            expected = np.sort(values)[math.ceil(round(percent / 100 * len(values), 6)) - 1]
            assert scalars[f"{kind}_latency_ns_{name}"] == pytest.approx(expected, rel=PRECISION), (kind, name)
    assert scalars["latency_count"] == 8_000
    assert not any(name.startswith("delivery") for name in scalars)
