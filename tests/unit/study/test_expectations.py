from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.study.expectations import parse_range


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8..12 %", (0.08, 0.12)),
        ("8 %..12 %", (0.08, 0.12)),
        ("10..20", (10.0, 20.0)),
        ("-1.5 .. 2e3", (-1.5, 2000.0)),
        (">= 3", (3.0, None)),
        (">=3%", (0.03, None)),
        ("<= 0.1", (None, 0.1)),
        ("5..5", (5.0, 5.0)),
    ],
)
def test_ranges(text: str, expected: tuple[float | None, float | None]) -> None:
    assert parse_range(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "> 3", "3..", "..3", "12..8", "a..b", "1..2..3", ">= x", "8..12 MiB", ">= 1e999"]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a range"):
        parse_range(text)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_any_two_numbers_in_order_are_a_range(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert parse_range(f"{low!r}..{high!r}") == (low, high)
