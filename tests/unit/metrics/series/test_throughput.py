"""The series behind stability and steadiness: whatever the intervals, no transaction and no time is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.metrics.series import throughput, timeline
from fairtrial.metrics.series.throughput import Throughput
from fairtrial.record.models import Window


def series(counts: list[int], *, interval_s: float, last_s: float | None = None) -> Throughput:
    widths = np.full(len(counts), interval_s)
    if last_s is not None:
        widths[-1] = last_s
    starts = np.concatenate([[0.0], np.cumsum(widths)[:-1]])
    return Throughput(starts_s=starts, widths_s=widths, per_s=np.array(counts, dtype=float) / widths)


def transactions(of: Throughput) -> float:
    return float((of.per_s * of.widths_s).sum())


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=120),
    st.tuples(st.sampled_from([0.1, 0.25, 0.3, 1.0, 5.0]), st.floats(0.01, 1.0), st.sampled_from([0.5, 1.0, 2.0])),
)
def test_merging_keeps_every_transaction_and_every_second(
    counts: list[int], lengths: tuple[float, float, float]
) -> None:
    interval_s, last, wanted_s = lengths
    whole = series(counts, interval_s=interval_s, last_s=interval_s * last)
    found = throughput.merged(whole, interval_s=wanted_s)
    assert transactions(found) == pytest.approx(sum(counts))
    assert found.length_s == pytest.approx(whole.length_s)
    assert np.allclose(found.starts_s[1:], found.starts_s[:-1] + found.widths_s[:-1])
    assert 1 <= found.n <= whole.n


def test_ten_tenths_are_a_second_even_if_each_begins_a_little_late() -> None:
    counts = list(range(40))
    late = series(counts, interval_s=0.1)
    late = Throughput(starts_s=late.starts_s + 3e-6 * np.arange(40), widths_s=late.widths_s, per_s=late.per_s)
    found = throughput.merged(late, interval_s=1.0)
    assert found.n == 4
    assert found.per_s[0] == pytest.approx(sum(counts[:10]))


def test_a_short_remainder_joins_the_interval_before_it_and_a_long_one_stands() -> None:
    short = throughput.merged(series([10, 10, 10, 2], interval_s=1.0, last_s=0.2), interval_s=1.0)
    assert short.n == 3
    assert short.per_s[-1] == pytest.approx(12 / 1.2)
    long = throughput.merged(series([10, 10, 10, 7], interval_s=1.0, last_s=0.7), interval_s=1.0)
    assert long.n == 4
    assert long.per_s[-1] == pytest.approx(10)


def test_one_interval_stays_itself() -> None:
    assert throughput.merged(series([5], interval_s=0.1), interval_s=1.0).n == 1


def test_a_course_has_the_ramp_up_and_its_end_is_what_is_measured(tmp_path: Path) -> None:
    columns = {"payment_committed": [1, 100, 110, 40], "payment_rolled_back": [0, 4, 0, 2], "payment_failed": [9] * 4}
    pl.DataFrame(
        {"time_ns": [9_500_000_000, 10_000_000_000, 11_000_000_000, 12_000_000_000]}
        | {"measured": [False, True, True, True]}
        | {name: pl.Series(counts, dtype=pl.UInt64) for name, counts in columns.items()}
    ).write_parquet(tmp_path / timeline.FILE)
    whole, measured = throughput.course(tmp_path, window=Window(start_ns=10_000_000_000, end_ns=12_500_000_000))
    assert whole.starts_s.tolist() == [-0.5, 0.0, 1.0, 2.0]
    assert whole.widths_s.tolist() == [0.5, 1.0, 1.0, 0.5]
    assert whole.per_s.tolist() == [2.0, 104.0, 110.0, 84.0]
    assert measured.per_s.tolist() == whole.per_s.tolist()[1:]
    assert throughput.course(tmp_path / "none", window=Window(start_ns=1, end_ns=2))[0].n == 0


def test_rows_not_known_as_measured_are_left_out_and_intervals_that_begin_at_once_do_not_warn(tmp_path: Path) -> None:
    times = [9_500_000_000, 10_000_000_000, 10_000_000_000, 11_000_000_000]
    pl.DataFrame(
        {"time_ns": times, "measured": [None, True, True, True], "payment_committed": [1, 0, 100, 110]}
    ).write_parquet(tmp_path / timeline.FILE)
    whole, measured = throughput.course(tmp_path, window=Window(start_ns=10_000_000_000, end_ns=12_000_000_000))
    assert whole.widths_s.tolist() == [0.5, 0.0, 1.0, 1.0]
    assert measured.per_s.tolist()[1:] == [100.0, 110.0]
    assert throughput.merged(measured, interval_s=10).n == 1
