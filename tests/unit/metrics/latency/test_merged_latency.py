"""The sums of a trial's latencies: those of its log, read in its place; and a lie in them is found."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.errors import RecordError
from fairtrial.metrics import latency
from fairtrial.metrics.latency import Distribution, merged, merged_latency

HOUR_NS = 3_600_000_000_000


def line(values: list[int], *, tag: str = "payment", digits: int = 3) -> str:
    histogram = HdrHistogram(1, HOUR_NS, digits)
    for value in values:
        histogram.record_value(value)
    named = f"Tag={tag}," if tag else ""
    return f"{named}1.000,1.000,{histogram.get_max_value()},{histogram.encode().decode()}\n"


def log(directory: Path, *lines: str) -> Path:
    (directory / latency.FILE).write_text("#x\n" + "".join(lines), encoding="utf-8")
    return directory


def same(one: Distribution, other: Distribution) -> bool:
    names = ("lowest_ns", "highest_ns", "counts")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    lines = [line([1000, 5000, 5001]), line([7_000_000], tag="delivery"), line([5000, 10**9]), line([], tag="none")]
    return log(tmp_path, *lines)


def change(directory: Path, *expressions: pl.Expr) -> None:
    path = directory / merged_latency.FILE
    pl.read_parquet(path).with_columns(*expressions).write_parquet(path)


def test_what_is_written_is_what_the_log_adds_up_to(trial: Path) -> None:
    expected = latency.read(trial)
    merged_latency.write(trial)
    found = merged_latency.read(trial)
    assert list(found) == list(expected) == ["payment", "delivery", "none"]
    assert all(same(found[kind], expected[kind]) for kind in expected)
    assert found["payment"].n == 5
    assert found["none"].n == 0


def test_it_is_read_in_place_of_the_log(trial: Path) -> None:
    merged_latency.write(trial)
    (trial / latency.FILE).write_text("no log any more\n", encoding="utf-8")
    assert merged_latency.read(trial)["payment"].n == 5


def test_the_whole_is_all_types_together_from_the_sums_or_from_the_log(trial: Path, tmp_path: Path) -> None:
    expected = merged(latency.read(trial).values())
    from_log = merged_latency.whole(trial)
    merged_latency.write(trial)
    (trial / latency.FILE).unlink()
    from_sums = merged_latency.whole(trial)
    assert from_log is not None
    assert from_sums is not None
    assert same(from_log, expected)
    assert same(from_sums, expected)
    assert merged_latency.whole(tmp_path / "none") is None


def test_a_record_of_an_older_version_is_read_from_its_log(trial: Path) -> None:
    assert not (trial / merged_latency.FILE).exists()
    assert merged_latency.read(trial)["payment"].n == 5
    assert merged_latency.contradictions(trial) == []


def test_without_a_log_nothing_is_written(tmp_path: Path) -> None:
    merged_latency.write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert merged_latency.read(tmp_path) == {}


def test_a_log_without_lines_has_no_types(tmp_path: Path) -> None:
    merged_latency.write(log(tmp_path))
    assert merged_latency.read(tmp_path) == {}
    assert merged_latency.contradictions(tmp_path) == []


def test_untagged_latencies_are_of_all_types(tmp_path: Path) -> None:
    merged_latency.write(log(tmp_path, line([5], tag="")))
    assert list(merged_latency.read(tmp_path)) == ["all"]


def test_a_damaged_log_is_an_error_and_leaves_no_sums(trial: Path) -> None:
    (trial / latency.FILE).write_text("Tag=payment,1.0,1.0,5,HISTFAAAA\n", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot be decoded"):
        merged_latency.write(trial)
    assert not (trial / merged_latency.FILE).exists()


@pytest.mark.parametrize("damage", ["cut", "text", "columns", "bounds"])
def test_damaged_sums_are_an_error_that_names_the_file(trial: Path, damage: str) -> None:
    merged_latency.write(trial)
    path = trial / merged_latency.FILE
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:-20])
        case "text":
            path.write_text("x")
        case "columns":
            pl.read_parquet(path).drop("count").write_parquet(path)
        case "bounds":
            change(trial, pl.col("count") + 1)  # the type without observations has some now, and no class for them
    with pytest.raises(RecordError, match=r"latency-merged\.parquet cannot be read"):
        merged_latency.read(trial)


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        (pl.col("count") * 2, ["payment", "delivery"]),
        (pl.when(pl.col("type") == "delivery").then(2).otherwise(pl.col("count")).alias("count"), ["delivery"]),
        (pl.col("highest_ns") + 1, ["payment", "delivery"]),
        (pl.col("lowest_ns") - 1, ["payment", "delivery"]),
        (pl.col("type").replace("delivery", "new_order"), ["delivery", "new_order"]),
    ],
)
def test_sums_that_are_not_the_logs_are_named_by_type(trial: Path, expression: pl.Expr, kinds: list[str]) -> None:
    merged_latency.write(trial)
    assert merged_latency.contradictions(trial) == []
    change(trial, expression)
    found = merged_latency.contradictions(trial)
    assert sorted(sentence.split(": ")[1].split(" has")[0] for sentence in found) == sorted(kinds)
    assert all(sentence.startswith("latency-merged.parquet: ") for sentence in found)


def test_a_dropped_class_is_told_with_both_counts(trial: Path) -> None:
    merged_latency.write(trial)
    path = trial / merged_latency.FILE
    frame = pl.read_parquet(path)
    frame.filter((pl.col("type") != "payment") | (pl.col("lowest_ns") < 10**8)).write_parquet(path)
    (sentence,) = merged_latency.contradictions(trial)
    assert "payment has 4 observations in 2 classes, latency.hlog adds up to 5 observations in 3 classes" in sentence


def test_a_full_disk_is_the_systems_own_error(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`disk_explained` knows it by its number."""

    def full(_path: Path, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as caught:
        merged_latency.write(trial)
    assert caught.value.errno == errno.ENOSPC


VALUES = st.lists(st.integers(1, HOUR_NS), max_size=12)


def distribution(directory: Path, values: list[int], *, digits: int = 3) -> Distribution:
    return latency.read(log(directory, line(values, digits=digits)))["payment"]


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5))
def test_merging_is_recording_all_values_in_one_histogram(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]]
) -> None:
    directory = tmp_path_factory.mktemp("parts")
    found = merged([distribution(directory, part) for part in parts])
    assert same(found, distribution(directory, [value for part in parts for value in part]))
    assert same(found, merged([merged([distribution(directory, part)]) for part in parts[::-1]]))


def test_classes_that_begin_alike_and_end_elsewhere_stay_apart(tmp_path: Path) -> None:
    """Logs of two resolutions: one class of the coarser holds ten of the finer."""
    fine, coarse = distribution(tmp_path, [1 << 20]), distribution(tmp_path, [1 << 20], digits=2)
    assert fine.lowest_ns[0] == coarse.lowest_ns[0]
    both = merged([fine, coarse, fine])
    assert both.counts.tolist() == [2, 1]
    assert both.highest_ns.tolist() == [int(fine.highest_ns[0]), int(coarse.highest_ns[0])]


def test_merging_nothing_or_empty_ones_is_empty(tmp_path: Path) -> None:
    empty = distribution(tmp_path, [])
    for found in (merged([]), merged([empty]), merged([empty, empty])):
        assert found.n == 0
        assert len(found.counts) == len(found.lowest_ns) == 0
