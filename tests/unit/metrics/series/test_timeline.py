"""Rates per second from a timeline's counts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fairtrial.errors import RecordError
from fairtrial.metrics.series import timeline
from fairtrial.record.models import Window

WINDOW = Window(start_ns=10_000_000_000, end_ns=12_500_000_000)


def _write(directory: Path) -> Path:
    pl.DataFrame(
        {
            "time_ns": [9_500_000_000, 10_000_000_000, 11_000_000_000, 12_000_000_000],
            "measured": [False, True, True, True],
            "payment_committed": pl.Series([1, 100, 110, 40], dtype=pl.UInt64),
            "payment_rolled_back": pl.Series([0, 0, 0, 0], dtype=pl.UInt64),
            "payment_failed": pl.Series([0, 5, 0, 0], dtype=pl.UInt64),
            "new_order_committed": pl.Series([0, 10, 20, 30], dtype=pl.UInt64),
            "new_order_rolled_back": pl.Series([0, 2, 0, 0], dtype=pl.UInt64),
        }
    ).write_parquet(directory / timeline.FILE)
    return directory


def test_rates_divide_by_each_interval_s_width_and_the_window_cuts_the_last(tmp_path: Path) -> None:
    frame = timeline.rates(_write(tmp_path), window=WINDOW)
    assert frame["second"].to_list() == [0.0, 1.0, 2.0]
    assert frame["width_s"].to_list() == [1.0, 1.0, 0.5]
    assert frame["transactions_per_s"].to_list() == [112.0, 130.0, 140.0]
    assert frame["payment_failed_per_s"].to_list() == [5.0, 0.0, 0.0]


def test_rates_times_widths_give_back_every_transaction_of_the_window(tmp_path: Path) -> None:
    frame = timeline.rates(_write(tmp_path), window=WINDOW)
    assert (frame["transactions_per_s"] * frame["width_s"]).sum() == pytest.approx(100 + 110 + 40 + 60 + 2)


def test_ramp_up_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    frame = timeline.rates(_write(tmp_path), window=WINDOW, measured_only=False)
    assert frame["second"].to_list() == [-0.5, 0.0, 1.0, 2.0]
    assert frame["transactions_per_s"][0] == 2.0


def test_a_trial_without_a_timeline_has_no_rows(tmp_path: Path) -> None:
    assert timeline.rates(tmp_path, window=WINDOW).height == 0


def test_a_cut_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = _write(tmp_path) / timeline.FILE
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RecordError, match=r"timeline\.parquet cannot be read"):
        timeline.read(tmp_path)


def test_a_file_without_its_columns_is_an_error_of_one_line(tmp_path: Path) -> None:
    pl.DataFrame({"time_ns": [1]}).write_parquet(tmp_path / timeline.FILE)
    with pytest.raises(RecordError, match=r"timeline\.parquet cannot be read: [^\n]*measured[^\n]*$"):
        timeline.ended(tmp_path)


def test_an_interval_that_begins_where_the_window_ends_is_as_wide_as_the_others(tmp_path: Path) -> None:
    """The last look of a drive may fall right on the edge: an interval of no width would have no rate."""
    window = Window(start_ns=WINDOW.start_ns, end_ns=12_000_000_000)
    frame = timeline.rates(_write(tmp_path), window=window)
    assert frame["width_s"].to_list() == [1.0, 1.0, 1.0]
    assert frame["transactions_per_s"].to_list() == [112.0, 130.0, 70.0]


def test_intervals_are_put_in_order_before_their_widths_are_taken(tmp_path: Path) -> None:
    path = _write(tmp_path) / timeline.FILE
    pl.read_parquet(path).reverse().write_parquet(path)
    frame = timeline.rates(tmp_path, window=WINDOW)
    assert frame["second"].to_list() == [0.0, 1.0, 2.0]
    assert frame["transactions_per_s"].to_list() == [112.0, 130.0, 140.0]


def test_failed_and_retried_transactions_are_no_throughput(tmp_path: Path) -> None:
    path = _write(tmp_path) / timeline.FILE
    retried = pl.lit(1000, dtype=pl.UInt64).alias("payment_retried")
    pl.read_parquet(path).with_columns(retried, payment_failed=pl.lit(999, dtype=pl.UInt64)).write_parquet(path)
    frame = timeline.rates(tmp_path, window=WINDOW)
    assert frame["transactions_per_s"].to_list() == [112.0, 130.0, 140.0]
    assert frame["payment_retried_per_s"].to_list() == [1000.0, 1000.0, 2000.0]


@pytest.mark.parametrize(
    "changed",
    [
        pl.col("time_ns").cast(pl.String),
        pl.lit(None, pl.Int64).alias("time_ns"),
        pl.lit("yes").alias("measured"),
        pl.selectors.ends_with("_committed").cast(pl.String),
    ],
)
def test_a_file_whose_columns_hold_something_else_is_damaged(tmp_path: Path, changed: pl.Expr) -> None:
    path = _write(tmp_path) / timeline.FILE
    pl.read_parquet(path).with_columns(changed).write_parquet(path)
    with pytest.raises(RecordError, match=r"timeline\.parquet cannot be read"):
        timeline.rates(tmp_path, window=WINDOW)
