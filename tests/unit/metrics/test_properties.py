"""What must hold for any trial: of histograms, throughput, counters and damaged files."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from support.records import tpcc_scalars_of

from fairtrial.errors import RecordError
from fairtrial.metrics import consistency, latency, telemetry
from fairtrial.metrics.latency import Distribution
from fairtrial.metrics.series import timeline
from fairtrial.record.models import Window
from fairtrial.workloads.engine import tpcc_scalars as tpcc

HOUR_NS = 3_600_000_000_000
SECOND = 1_000_000_000
WINDOW = Window(start_ns=10 * SECOND, end_ns=20 * SECOND)
Samples = list[int]
SAMPLES = st.lists(st.integers(1, HOUR_NS), min_size=1, max_size=60)
OUTCOMES = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in timeline.OUTCOMES})


def log(directory: Path, parts: Sequence[Samples], *, tag: str = "payment") -> Path:
    """A latency log of one type, an interval per part."""
    lines = ["#[Histogram log format version 1.3]\n"]
    for second, values in enumerate(parts):
        histogram = HdrHistogram(1, HOUR_NS, 3)
        for value in values:
            histogram.record_value(value)
        lines.append(f"Tag={tag},{second}.000,1.000,0,{histogram.encode().decode()}\n")
    (directory / latency.FILE).write_text("".join(lines), encoding="utf-8")
    return directory


def distribution(values: Samples) -> Distribution:
    with tempfile.TemporaryDirectory() as directory:
        return latency.read(log(Path(directory), [values]))["payment"]


def same(one: Distribution, other: Distribution) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("lowest_ns", "highest_ns", "counts")
    )


@given(SAMPLES, SAMPLES, SAMPLES)
@settings(deadline=None, max_examples=40)
def test_merging_is_associative_commutative_and_the_histogram_of_all_samples(
    a: Samples, b: Samples, c: Samples
) -> None:
    one, two, three = (distribution(values) for values in (a, b, c))
    left = latency.merged([latency.merged([one, two]), three])
    assert same(left, latency.merged([one, latency.merged([two, three])]))
    assert same(left, latency.merged([three, one, two]))
    assert same(left, distribution([*a, *b, *c]))
    assert left.n == len(a) + len(b) + len(c)


@given(st.lists(SAMPLES, min_size=1, max_size=5))
@settings(deadline=None, max_examples=40)
def test_it_does_not_matter_how_a_log_was_cut_into_intervals(parts: list[Samples]) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        cut = latency.compute(log(Path(one), parts))
        whole = latency.compute(log(Path(other), [[value for part in parts for value in part]]))
    assert cut == whole


@given(SAMPLES, st.lists(st.floats(0, 100), min_size=2, max_size=20))
@settings(deadline=None, max_examples=60)
def test_percentiles_never_fall_and_stay_within_a_class_of_the_samples(values: Samples, percents: list[float]) -> None:
    found = distribution(values)
    at = [found.percentile_ns(percent) for percent in sorted(percents)]
    assert at == sorted(at)
    assert found.percentile_ns(100) == found.max_ns
    assert min(values) <= found.percentile_ns(0)
    assert max(values) <= found.max_ns <= max(values) * 1.002 + 1
    assert min(values) * 0.998 <= found.mean_ns <= max(values) * 1.002 + 1


@given(SAMPLES)
@settings(deadline=None, max_examples=40)
def test_a_class_holds_what_was_recorded_in_it(values: Samples) -> None:
    found = distribution(values)
    for low, high, count in zip(found.lowest_ns, found.highest_ns, found.counts, strict=True):
        assert sum(low <= value <= high for value in values) == count
    assert (found.lowest_ns[1:] > found.highest_ns[:-1]).all()


def driven(directory: Path, transactions: dict[str, dict[str, int]], *, window: Window = WINDOW) -> Path:
    content = {"window": window.model_dump(), "transactions": transactions, "errors": []}
    (directory / tpcc.FILE).write_text(json.dumps(content), encoding="utf-8")
    return directory


@given(st.dictionaries(st.sampled_from(tpcc.TYPES), OUTCOMES, min_size=1), st.integers(1, 1000))
@settings(deadline=None, max_examples=60)
def test_throughput_scales_with_the_window_and_shares_do_not(
    transactions: dict[str, dict[str, int]], factor: int
) -> None:
    longer = Window(start_ns=WINDOW.start_ns, end_ns=WINDOW.start_ns + factor * 10 * SECOND)
    with tempfile.TemporaryDirectory() as directory:
        short = tpcc.compute(driven(Path(directory), transactions), window=WINDOW)
        long = tpcc.compute(driven(Path(directory), transactions, window=longer), window=longer)
    done = sum(each["committed"] + each["rolled_back"] for each in transactions.values())
    for name in ("throughput_tpm", "throughput_nopm"):
        assert long[name] * factor == pytest.approx(short[name], rel=1e-12)
    assert short["throughput_tpm"] == pytest.approx(done * 6, rel=1e-12)
    assert {name: long[name] for name in ("transactions", "failed_share", "retries")} == {
        name: short[name] for name in ("transactions", "failed_share", "retries")
    }
    assert 0 <= short["failed_share"] <= 1


def sampled(directory: Path, source: str, columns: dict[str, Sequence[int | None]], *, every_s: float = 1.0) -> Path:
    length = len(next(iter(columns.values())))
    times = [WINDOW.start_ns + round(index * every_s * SECOND) for index in range(length)]
    frame = pl.DataFrame(
        {"time_ns": times, **{name: pl.Series(each, dtype=pl.UInt64) for name, each in columns.items()}}
    )
    frame.write_parquet(directory / f"{telemetry.PREFIX}{source}.parquet")
    return directory


@given(st.lists(st.integers(0, 10**6), min_size=10, max_size=10), st.integers(0, 2**62))
@settings(deadline=None, max_examples=40)
def test_a_counter_counts_from_wherever_it_stood(steps: list[int], start: int) -> None:
    values = [start, *(start + int(total) for total in np.cumsum(steps))]
    with tempfile.TemporaryDirectory() as directory:
        found = telemetry.compute(
            sampled(Path(directory), "vmstat", {"pgmajfault": values}), window=WINDOW, ticks_per_s=None
        )
    assert found["major_faults"] == sum(steps)


@pytest.mark.parametrize("wrapped_at", [1, 5, 10])
def test_a_counter_that_wraps_or_is_reset_gives_no_growth_that_never_was(tmp_path: Path, wrapped_at: int) -> None:
    """A module loaded anew, a device plugged in again, a 32-bit counter: what it grew by is not known, never 2^32."""
    values = [2**32 - 12 + index if index < wrapped_at else index - wrapped_at for index in range(11)]
    found = telemetry.compute(sampled(tmp_path, "vmstat", {"pgmajfault": values}), window=WINDOW, ticks_per_s=None)
    assert found.get("major_faults", 0) <= 10


@pytest.mark.parametrize("missing_at", [0, 5, 10])
def test_a_counter_missing_from_any_sample_gives_no_metric(tmp_path: Path, missing_at: int) -> None:
    values = [None if index == missing_at else index for index in range(11)]
    columns = {"pgmajfault": values, "pswpin": list(range(11))}
    found = telemetry.compute(sampled(tmp_path, "vmstat", columns), window=WINDOW, ticks_per_s=None)
    assert "major_faults" not in found
    assert found["swapped_in_pages"] == 10


@given(st.integers(0, 100), st.data())
@settings(deadline=None, max_examples=25)
def test_a_cut_anywhere_in_a_file_is_an_error_that_names_it_or_changes_nothing(
    percent: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        driven(directory, {"payment": {"committed": 3, "rolled_back": 0, "failed": 0, "retried": 0}})
        log(directory, [[1000, 2000], [3000]])
        sampled(directory, "cpu", {"user": list(range(11)), "idle": list(range(11))})
        counts = {"time_ns": [WINDOW.start_ns], "measured": [True], "payment_committed": [3]}
        pl.DataFrame(counts).write_parquet(directory / timeline.FILE)
        whole = tpcc_scalars_of(directory, window=WINDOW)
        assert consistency.contradictions(directory) == []
        path = directory / data.draw(st.sampled_from(sorted(each.name for each in directory.iterdir())))
        path.write_bytes(path.read_bytes()[: path.stat().st_size * percent // 101])
        error = ""
        try:
            after = tpcc_scalars_of(directory, window=WINDOW)
            contradicted = consistency.contradictions(directory)
        except RecordError as damaged:
            error = str(damaged)
        if error:
            assert path.name in error
            return
        assert path.name == latency.FILE, "only a log of lines may be cut between two of them"
        assert contradicted
        assert {name: after[name] for name in after if "latency" not in name} == {
            name: value for name, value in whole.items() if "latency" not in name
        }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("result.json", b""),
        ("result.json", b"[]"),
        ("result.json", b'{"window": {"start_ns": 1, "end_ns": "soon"}, "transactions": {}, "errors": []}'),
        ("result.json", b"\xff\xfe\x00"),
        ("latency.hlog", b"Tag=payment,1.000,1.000,0,HISTFAAAAB4nBAD!\n"),
        ("latency.hlog", b"Tag=payment,1.000,1.000,0,\n"),
        ("latency.hlog", b"Tag=payment,soon,1.000,0,HISTFAAAAB4nBAD\n"),
        ("latency.hlog", b"\xff\xfe\x00\xff,\xff,\xff,\xff\n"),
        ("telemetry-cpu.parquet", b""),
        ("telemetry-cpu.parquet", b"PAR1" + b"\0" * 100 + b"PAR1"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    driven(tmp_path, {})
    log(tmp_path, [[1000]])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordError, match=name.replace(".", r"\.")) as failure:
        tpcc_scalars_of(tmp_path, window=WINDOW)
    assert failure.value.hint


def test_a_flipped_bit_in_an_encoded_histogram_is_seen(tmp_path: Path) -> None:
    """zlib carries a checksum: a changed character is an error, or decodes to what it was."""
    whole = latency.compute(log(tmp_path, [[1000, 50_000, 3_000_000]]))
    text = (tmp_path / latency.FILE).read_text(encoding="ascii")
    start = text.index("HIST")
    for at in range(start, len(text) - 1, 5):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        (tmp_path / latency.FILE).write_text(changed, encoding="ascii")
        with contextlib.suppress(RecordError):
            assert latency.compute(tmp_path) == whole, at
