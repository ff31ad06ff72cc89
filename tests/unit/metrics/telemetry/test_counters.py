"""All counters of a trial at once: the same figures that `WindowSamples` gives one by one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.records import planned, trial_record

from fairtrial.errors import RecordError
from fairtrial.metrics.telemetry import counters
from fairtrial.metrics.telemetry.window import observe
from fairtrial.record.models import Window

SECOND = 10**9


def samples(count: int, *, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "time_ns": np.arange(count) * SECOND + random.integers(0, SECOND // 10, count),
            "user": np.cumsum(random.integers(0, 90, count)).astype(np.uint64),
            "idle": np.cumsum(random.integers(0, 90, count)).astype(np.uint64),
            "iowait": np.cumsum(random.integers(0, 9, count)).astype(np.uint64),
            "context_switches": np.cumsum(random.integers(0, 2**40, count)).astype(np.uint64),
            "running": random.integers(0, 9, count).astype(np.uint64),
        }
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 30), st.integers(0, 10**6), st.tuples(st.floats(0, 0.9), st.floats(0.1, 1.0)))
def test_growths_and_means_are_those_of_the_whole_curve(count: int, seed: int, where: tuple[float, float]) -> None:
    start, share = where
    whole = (count - 1) * SECOND
    start_ns = int(start * 0.5 * whole)
    window = Window(start_ns=start_ns, end_ns=start_ns + max(1, int(share * (whole - start_ns))))
    seen = observe(samples(count, seed=seed), window)
    assert seen is not None
    for name in ("user", "context_switches"):
        curve = np.interp([0.0, seen.length_s], seen.times_s, seen.frame[name].to_numpy().astype(np.float64))
        assert seen.grown(name) == pytest.approx(curve[1] - curve[0], rel=1e-9, abs=1e-3)
    assert counters.means(seen, ["running"]) == pytest.approx([seen.mean(seen.gauge("running"))], rel=1e-9)


def test_a_trial_gives_shares_of_processor_time_counters_and_its_work(tmp_path: Path) -> None:
    samples(20).write_parquet(tmp_path / "telemetry-cpu.parquet")
    trial = trial_record(planned(1, "a")).model_copy(
        update={"window": Window(start_ns=2 * SECOND, end_ns=12 * SECOND), "telemetry": ["cpu", "pressure"]}
    )
    found = counters.read(tmp_path, trial)
    assert found is not None
    shares = [value for name, value in found.levels.items() if name.endswith(" share")]
    assert sum(shares) == pytest.approx(1.0)
    assert found.length_s == 10.0
    assert (found.work, found.unit) == (1.0, "run")
    driven = trial.model_copy(update={"scalars": {"transactions": 250.0}})
    again = counters.read(tmp_path, driven)
    assert again is not None
    assert (again.work, again.unit) == (250.0, "transaction")
    assert counters.read(tmp_path, trial.model_copy(update={"window": None})) is None


def test_a_column_that_one_sample_lacks_gives_nothing_and_no_level_is_taken_for_a_counter(tmp_path: Path) -> None:
    frame = samples(10).with_columns(pl.when(pl.col("time_ns") < SECOND).then(None).otherwise(1).alias("forks"))
    frame.write_parquet(tmp_path / "telemetry-cpu.parquet")
    trial = trial_record(planned(1, "a")).model_copy(
        update={"window": Window(start_ns=SECOND, end_ns=7 * SECOND), "telemetry": ["cpu"]}
    )
    found = counters.read(tmp_path, trial)
    assert found is not None
    assert "cpu:forks" not in {*found.grown, *found.levels}
    assert "cpu:running" in found.levels
    assert "cpu:running" not in found.grown


def test_shares_of_processor_time_need_every_class_that_the_place_has(tmp_path: Path) -> None:
    """Without the ticks of one class the shares of all others would be too large."""
    third = pl.int_range(pl.len()) == 2
    frame = samples(10).with_columns(pl.when(third).then(None).otherwise(pl.col("iowait")).alias("iowait"))
    frame.write_parquet(tmp_path / "telemetry-cpu.parquet")
    trial = trial_record(planned(1, "a")).model_copy(
        update={"window": Window(start_ns=SECOND, end_ns=7 * SECOND), "telemetry": ["cpu"]}
    )
    found = counters.read(tmp_path, trial)
    assert found is not None
    assert "cpu:user" in found.grown
    assert [name for name in found.levels if name.endswith(" share")] == []


def test_sums_of_a_committed_trial_are_those_of_its_samples_and_stand_for_them(tmp_path: Path) -> None:
    samples(20).write_parquet(tmp_path / "telemetry-cpu.parquet")
    window, sources = Window(start_ns=2 * SECOND, end_ns=12 * SECOND), ["cpu", "pressure"]
    trial = trial_record(planned(1, "a")).model_copy(update={"window": window, "telemetry": sources})
    sampled = counters.read(tmp_path, trial)
    counters.write(tmp_path, window=window, sources=sources)
    assert counters.contradictions(tmp_path, window=window, sources=sources) == []
    (tmp_path / "telemetry-cpu.parquet").rename(tmp_path / "elsewhere")
    assert counters.read(tmp_path, trial) == sampled, "the samples are not read again"
    (tmp_path / "elsewhere").rename(tmp_path / "telemetry-cpu.parquet")
    stored = json.loads((tmp_path / counters.FILE).read_text(encoding="utf-8"))
    del stored["levels"]["cpu:running"]
    stored["grown"]["cpu:user"] += 1
    (tmp_path / counters.FILE).write_text(json.dumps(stored), encoding="utf-8")
    user, running = counters.contradictions(tmp_path, window=window, sources=sources)
    assert user.startswith("telemetry-summary.json: cpu:user is ")
    assert running.startswith("telemetry-summary.json: cpu:running is None, the samples give ")


def test_what_a_governor_read_is_a_level_and_older_sums_that_called_it_growth_stand_for_nothing(tmp_path: Path) -> None:
    looks = pl.DataFrame(
        {
            "time_ns": [second * SECOND for second in range(9)],
            "looks": pl.Series([20 * second for second in range(9)], dtype=pl.UInt64),
            "threads": pl.Series([4] * 4 + [2] * 5, dtype=pl.UInt64),
        }
    )
    looks.write_parquet(tmp_path / "telemetry-governor.parquet")
    window, sources = Window(start_ns=5 * SECOND, end_ns=7 * SECOND), ["governor"]
    trial = trial_record(planned(1, "a")).model_copy(update={"window": window, "telemetry": sources})
    counters.write(tmp_path, window=window, sources=sources)
    path = tmp_path / counters.FILE
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["grown"] == {"governor:looks": pytest.approx(40)}
    assert stored["levels"] == {"governor:threads": pytest.approx(2)}
    found = counters.read(tmp_path, trial)
    older = {"grown": {**stored["grown"], "governor:threads": 0.0}, "levels": {}, "errors": {"governor:threads": 1.0}}
    path.write_text(json.dumps(older), encoding="utf-8")
    assert counters.read(tmp_path, trial) == found
    assert counters.contradictions(tmp_path, window=window, sources=sources) == []
    older["grown"]["governor:looks"] += 1
    path.write_text(json.dumps(older), encoding="utf-8")
    assert len(counters.contradictions(tmp_path, window=window, sources=sources)) == 1


@pytest.mark.parametrize("content", ["", "[]", '{"grown": {}}', '{"grown": {"a": "b"}, "levels": {}}'])
def test_sums_that_are_damaged_are_a_damaged_record(tmp_path: Path, content: str) -> None:
    (tmp_path / counters.FILE).write_text(content, encoding="utf-8")
    trial = trial_record(planned(1, "a")).model_copy(update={"window": Window(start_ns=1, end_ns=2)})
    with pytest.raises(RecordError, match=r"telemetry-summary\.json cannot be read"):
        counters.read(tmp_path, trial)


def test_a_trial_without_telemetry_leaves_no_sums(tmp_path: Path) -> None:
    counters.write(tmp_path, window=Window(start_ns=1, end_ns=2), sources=[])
    assert not (tmp_path / counters.FILE).exists()


def test_readings_that_take_long_leave_an_error_of_what_grows_meanwhile(tmp_path: Path) -> None:
    seconds = np.arange(20)
    took_ns = np.where(seconds == 2, SECOND // 2, np.where(seconds == 12, SECOND // 4, 0))
    frame = pl.DataFrame(
        {
            "time_ns": seconds * SECOND,
            "end_ns": seconds * SECOND + took_ns,
            "forks": (100 * seconds).astype(np.uint64),
            "running": (7 + 0 * seconds).astype(np.uint64),
        }
    )
    frame.write_parquet(tmp_path / "telemetry-cpu.parquet")
    window = Window(start_ns=2 * SECOND, end_ns=12 * SECOND)
    trial = trial_record(planned(1, "a")).model_copy(update={"window": window, "telemetry": ["cpu"]})
    from_samples = counters.read(tmp_path, trial)
    counters.write(tmp_path, window=window, sources=["cpu"])
    found = counters.read(tmp_path, trial)
    assert found == from_samples
    assert found is not None
    assert found.grown == {"cpu:forks": pytest.approx(1000)}
    assert found.errors == {"cpu:forks": pytest.approx(100 * 0.5 + 100 * 0.25)}
    stored = json.loads((tmp_path / counters.FILE).read_text(encoding="utf-8"))
    (tmp_path / counters.FILE).write_text(json.dumps(stored | {"errors": {}}), encoding="utf-8")
    (wrong,) = counters.contradictions(tmp_path, window=window, sources=["cpu"])
    assert wrong.startswith("telemetry-summary.json: cpu:forks is None, the samples give 75")
    (tmp_path / counters.FILE).write_text(json.dumps({**stored, "errors": None}).replace(', "errors": null', ""))
    assert counters.contradictions(tmp_path, window=window, sources=["cpu"]) == [], "of an older version"
    short = frame.with_columns(end_ns=pl.col("time_ns") + SECOND // 1000)
    short.write_parquet(tmp_path / "telemetry-cpu.parquet")
    counters.write(tmp_path, window=window, sources=["cpu"])
    found = counters.read(tmp_path, trial)
    assert found is not None
    assert found.errors == {}, "below a thousandth it is not said"
