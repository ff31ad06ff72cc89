from __future__ import annotations

import math

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.report.figures.thinning import rounded, rows, thinned


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(4, 60))
def test_thinning_keeps_order_the_extremes_and_the_limit(values: list[float], points: int) -> None:
    kept = thinned(np.array(values), points=points).tolist()
    assert len(kept) <= max(points, 2)
    assert kept == sorted(set(kept))
    assert min(values[index] for index in kept) == min(values)
    assert max(values[index] for index in kept) == max(values)


def test_a_single_dip_in_a_long_run_survives() -> None:
    values = np.full(10_000, 100.0)
    values[7_777] = 3.0
    kept = thinned(values, points=200)
    assert len(kept) <= 200
    assert 7_777 in kept


def test_what_is_no_number_hides_no_extreme() -> None:
    values = np.array([5.0, np.nan, 1.0, 9.0, np.nan, 5.0, 5.0, 5.0])
    assert {2, 3} <= set(thinned(values, points=2).tolist())


def test_short_series_stay_as_they_are() -> None:
    assert thinned(np.array([2.0, 1.0]), points=10).tolist() == [0, 1]


def test_rounding_is_for_drawing_only() -> None:
    assert rounded(123456.789) == 123460.0
    assert rounded(None) is None
    assert rounded(math.nan) is None
    assert rows(pl.DataFrame({"a": [1.23456789], "b": ["x"], "c": [1]}), ["a", "b"]) == [{"a": 1.2346, "b": "x"}]
