"""The small figures of telemetry, computed again by hand from the files; and machines that are unlike others."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairtrial.analyse.models import Analysis
from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.record import Record, read
from fairtrial.report.figures import telemetry
from fairtrial.report.figures.verdicts import Figure
from fairtrial.report.scene import ContrastTrial, Scene


@pytest.fixture(scope="module")
def scene(record: Record, analysis: Analysis) -> Scene:
    return Scene(record=record, analysis=analysis)


@pytest.fixture
def copied(record: Record, analysis: Analysis, tmp_path: Path) -> Scene:
    """A record of its own to change."""
    shutil.copytree(record.directory, tmp_path / "run")
    return Scene(record=read(tmp_path / "run"), analysis=analysis)


def figures(scene: Scene, cell: int = 0) -> dict[str, Figure]:
    return {figure.name: figure for figure in telemetry.figures(scene, scene.analysis.cells[cell])}


def points(figure: Figure) -> list[dict[str, Any]]:
    return max(figure.spec["datasets"].values(), key=lambda rows: ("mean" in rows[0], len(rows)))


def samples(scene: Scene, placed: ContrastTrial, source: str) -> pl.DataFrame:
    return pl.read_parquet(scene.record.trial_directory(placed.trial.trial.id) / f"telemetry-{source}.parquet")


def rewrite(scene: Scene, source: str, change: Any, *, only: str = "") -> None:
    """Changes a source's file in every used trial of the first cell, or of one arm of it."""
    for placed in scene.of(scene.analysis.cells[0]):
        if only in ("", placed.arm):
            path = scene.record.trial_directory(placed.trial.trial.id) / f"telemetry-{source}.parquet"
            change(pl.read_parquet(path)).write_parquet(path)


def by_hand(scene: Scene, source: str, value: Any) -> dict[tuple[str, float], list[float]]:
    """Values of every sample of the first cell by arm and second, from the raw files, one after the other."""
    found: dict[tuple[str, float], list[float]] = {}
    for placed in scene.of(scene.analysis.cells[0]):
        rows = samples(scene, placed, source).to_dicts()
        assert placed.trial.window is not None
        for before, after in itertools.pairwise(rows):
            elapsed_s = (after["time_ns"] - before["time_ns"]) / 1e9
            second = (after["time_ns"] - placed.trial.window.start_ns) / 1e9
            found.setdefault((placed.arm, math.floor(second) + 0.5), []).append(value(before, after, elapsed_s))
    return found


def test_a_share_of_processor_time_is_recomputed_sample_by_sample(scene: Scene) -> None:
    def system(before: dict[str, int], after: dict[str, int], _elapsed_s: float) -> float:
        whole = sum(after[name] - before[name] for name in before if name != "time_ns")
        return 100 * (after["system"] - before["system"]) / whole

    expected = by_hand(scene, "cpu", system)
    found = points(figures(scene)["telemetry-cpu-system"])
    assert {(row["arm"], row["second"]) for row in found} == set(expected)
    for row in found:
        values = expected[row["arm"], row["second"]]
        assert row["mean"] == pytest.approx(sum(values) / len(values), rel=1e-4)
        assert row["low"] == pytest.approx(min(values), rel=1e-4)
        assert row["high"] == pytest.approx(max(values), rel=1e-4)


def test_sectors_are_of_512_bytes_and_shown_in_mebibytes_per_second(scene: Scene) -> None:
    def written(before: dict[str, int], after: dict[str, int], elapsed_s: float) -> float:
        return (after["vda.sectors_written"] - before["vda.sectors_written"]) * 512 / 2**20 / elapsed_s

    expected = by_hand(scene, "disks", written)
    for row in points(figures(scene)["telemetry-disk-written"]):
        values = expected[row["arm"], row["second"]]
        assert row["mean"] == pytest.approx(sum(values) / len(values), rel=1e-4)


def test_a_stall_is_microseconds_per_second_as_percent(scene: Scene) -> None:
    means = [row["mean"] for row in points(figures(scene)["telemetry-stall-io"])]
    assert sum(means) / len(means) == pytest.approx(9.0, rel=0.01), "90,000 µs in a second"


def test_levels_are_shown_in_gibibytes_and_their_axis_need_not_begin_at_zero(scene: Scene) -> None:
    figure = figures(scene)["telemetry-memavailable"]
    assert all(4.9 < row["mean"] < 5.1 for row in points(figure))
    assert any(layer["encoding"].get("y", {}).get("scale") == {"zero": False} for layer in figure.spec["layer"])


def test_what_a_place_does_not_say_has_no_figure(scene: Scene) -> None:
    names = set(figures(scene))
    assert "telemetry-stall-memory" not in names, "not in these files"
    assert not any("history" in name or "checkpoint" in name for name in names), "no server was sampled"


def test_what_is_zero_throughout_has_no_figure(copied: Scene) -> None:
    assert "telemetry-cpu-steal" in figures(copied)
    rewrite(copied, "cpu", lambda frame: frame.with_columns(steal=pl.lit(7, pl.UInt64)))
    assert "telemetry-cpu-steal" not in figures(copied)


def test_a_partition_and_a_mapped_device_are_not_counted_again(copied: Scene) -> None:
    before = points(figures(copied)["telemetry-disk-written"])
    again = [
        pl.col(f"vda.{field}").alias(f"{device}.{field}")
        for device in ("vda1", "dm-0", "loop0")
        for field in ("sectors_read", "sectors_written")
    ]
    rewrite(copied, "disks", lambda frame: frame.with_columns(again))
    assert points(figures(copied)["telemetry-disk-written"]) == before


def test_a_second_disk_counts_with_the_first(copied: Scene) -> None:
    before = points(figures(copied)["telemetry-disk-written"])
    second = [pl.col(f"vda.{field}").alias(f"vdb.{field}") for field in ("sectors_read", "sectors_written")]
    rewrite(copied, "disks", lambda frame: frame.with_columns(second))
    found = points(figures(copied)["telemetry-disk-written"])
    assert [row["mean"] for row in found] == pytest.approx([2 * row["mean"] for row in before], rel=1e-4)


def test_trials_with_other_disks_are_drawn_beside_each_other(copied: Scene) -> None:
    """A disk's name may change between boots: the arm that has `vdb` only is not left out."""
    rewrite(
        copied,
        "disks",
        lambda frame: frame.rename({name: name.replace("vda", "vdb") for name in frame.columns}),
        only="wal",
    )
    assert {row["arm"] for row in points(figures(copied)["telemetry-disk-written"])} == {"delete", "wal"}


def test_a_kernel_that_knows_fewer_classes_of_processor_time_is_drawn_all_the_same(copied: Scene) -> None:
    rewrite(copied, "cpu", lambda frame: frame.drop("iowait", "steal"))
    found = figures(copied)
    assert "telemetry-cpu-user" in found
    assert not {"telemetry-cpu-iowait", "telemetry-cpu-steal"} & set(found)
    assert all(0 < row["mean"] < 100 for row in points(found["telemetry-cpu-user"]))


def test_a_trial_without_telemetry_leaves_the_others(copied: Scene) -> None:
    first, *others = copied.of(copied.analysis.cells[0])
    (copied.record.trial_directory(first.trial.trial.id) / "telemetry-cpu.parquet").unlink()
    assert {row["arm"] for row in points(figures(copied)["telemetry-cpu-user"])} == {"delete", "wal"}
    for each in others:
        (copied.record.trial_directory(each.trial.trial.id) / "telemetry-cpu.parquet").unlink()
    assert not any(name.startswith("telemetry-cpu") for name in figures(copied))


def test_a_stall_of_one_trial_is_in_the_band_whatever_the_mean_says(copied: Scene) -> None:
    first = copied.of(copied.analysis.cells[0])[0]
    path = copied.record.trial_directory(first.trial.trial.id) / "telemetry-pressure.parquet"
    frame = pl.read_parquet(path)
    stalled = pl.col("io.some.total_us") + pl.when(pl.int_range(pl.len()) >= 20).then(1_000_000).otherwise(0)
    frame.with_columns(stalled.cast(pl.UInt64)).write_parquet(path)
    rows = [row for row in points(figures(copied)["telemetry-stall-io"]) if row["arm"] == first.arm]
    worst = max(rows, key=lambda row: row["high"])
    assert worst["high"] > 100, "a second of stall and more in a second"
    assert worst["mean"] < 40


def test_a_long_run_has_no_more_points_than_a_figure_can_show(copied: Scene) -> None:
    """Ten times as slow a clock makes the same samples span five minutes: buckets, with their extremes."""
    for placed in copied.of(copied.analysis.cells[0]):
        assert placed.trial.window is not None
        start = placed.trial.window.start_ns
        path = copied.record.trial_directory(placed.trial.trial.id) / "telemetry-cpu.parquet"
        frame = pl.read_parquet(path)
        frame.with_columns((pl.col("time_ns") - start) * 10 + start).write_parquet(path)
    found = points(figures(copied)["telemetry-cpu-user"])
    assert len(found) <= 2 * (telemetry.STEPS + 1)
    seconds = sorted({row["second"] for row in found})
    assert seconds[-1] - seconds[0] > 300
    assert all(row["low"] <= row["mean"] <= row["high"] for row in found)


def test_only_the_columns_that_are_drawn_are_read(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds of columns and trials: what is not drawn is not read."""
    found: dict[str, set[str]] = {}
    real = telemetry_files.read

    def spied(directory: Path, source: str, **how: Any) -> pl.DataFrame:
        frame = real(directory, source, **how)
        found.setdefault(source, set()).update(frame.columns)
        return frame

    monkeypatch.setattr(telemetry_files, "read", spied)
    figures(scene)
    assert found["memory"] == {"time_ns", "MemAvailable"}
    assert found["pressure"] == {"time_ns", "io.some.total_us", "cpu.some.total_us"}


def test_invalid_trials_and_those_of_voided_blocks_are_not_drawn(copied: Scene) -> None:
    used = {placed.trial.trial.id for placed in copied.of(copied.analysis.cells[1])}
    others = {
        placed.trial.trial.id
        for placed in copied.of(copied.analysis.cells[1], used_only=False)
        if placed.trial.trial.id not in used
    }
    assert others
    before = json.dumps([points(figure) for figure in figures(copied, 1).values()])
    for trial in others:
        for path in copied.record.trial_directory(trial).glob("telemetry-*.parquet"):
            path.unlink()
    assert json.dumps([points(figure) for figure in figures(copied, 1).values()]) == before
