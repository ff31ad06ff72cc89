from __future__ import annotations

import math

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.report.figures.thinning import rounded, rows, thinned


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(4, 60))
def test_thinning_keeps_order_the_extremes_and_the_limit(values: list[float], points: int) -> None:
    frame = pl.DataFrame({"second": range(len(values)), "value": values})
    kept = thinned(frame, value="value", points=points)
    assert kept.height <= max(points, 2)
    assert kept["second"].is_sorted()
    assert kept["value"].min() == min(values)
    assert kept["value"].max() == max(values)
    assert all(values[second] == value for second, value in kept.iter_rows())


def test_a_single_dip_in_a_long_run_survives() -> None:
    values = [100.0] * 10_000
    values[7_777] = 3.0
    kept = thinned(pl.DataFrame({"second": range(10_000), "value": values}), value="value", points=200)
    assert kept.height <= 200
    assert (7_777, 3.0) in kept.rows()


def test_short_frames_stay_as_they_are() -> None:
    frame = pl.DataFrame({"second": [0, 1], "value": [2.0, 1.0]})
    assert thinned(frame, value="value", points=10).equals(frame)


def test_rounding_is_for_drawing_only() -> None:
    assert rounded(123456.789) == 123460.0
    assert rounded(None) is None
    assert rounded(math.nan) is None
    assert rows(pl.DataFrame({"a": [1.23456789], "b": ["x"], "c": [1]}), ["a", "b"]) == [{"a": 1.2346, "b": "x"}]
