from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from fairtrial.study.tree.quantities import (
    WITH_UNITS,
    Bytes,
    Rate,
    Seconds,
    Share,
    format_bytes,
    format_rate,
    format_seconds,
    format_share,
    parse_bytes,
    parse_rate,
    parse_seconds,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("384MiB", 384 << 20),
        ("1GiB", 1 << 30),
        ("512KB", 512_000),
        ("100 B", 100),
        (7, 7),
        ("1.5KiB", 1536),
        ("2TB", 2 * 10**12),
    ],
)
def test_sizes_are_bytes(text: str | int, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500us", 5e-4),
        ("500µs", 5e-4),
        ("250ms", 0.25),
        ("60s", 60),
        ("10min", 600),
        ("2h", 7200),
        (3, 3),
        (0.5, 0.5),
        ("4", 4),
    ],
)
def test_times_are_seconds(text: str | float, expected: float) -> None:
    assert parse_seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("2 %", 0.02), ("2%", 0.02), (0.02, 0.02), ("0.02", 0.02), ("0.1 %", 0.001)]
)
def test_shares_are_of_one(text: str | float, expected: float) -> None:
    assert parse_share(text) == expected


@pytest.mark.parametrize(
    "text", ["1K", "1 gib", "-1B", "1.5B", "GiB", "", True, None, [], float("nan"), float("inf"), "1e30B"]
)
def test_what_is_no_size_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match=r"expected a (size such as 384MiB|whole number of bytes)"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["10 parsecs", "-1s", "1:30", "1m", {}, "9" * 100])
def test_what_is_no_time_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match="expected a time such as 250ms"):
        parse_seconds(text)


@given(st.integers(min_value=0, max_value=1 << 59))
def test_a_formatted_size_reads_back_exactly(value: int) -> None:
    assert parse_bytes(format_bytes(value)) == value


@given(st.floats(min_value=0, max_value=1e15))
def test_a_formatted_time_reads_back_exactly(value: float) -> None:
    assert parse_seconds(format_seconds(value)) == value


@given(st.floats(min_value=0, max_value=1))
def test_a_formatted_share_reads_back_exactly(value: float) -> None:
    assert parse_share(format_share(value)) == value


def test_texts_use_the_largest_unit_that_fits() -> None:
    assert [format_bytes(384 << 20), format_bytes(512_000), format_bytes(1000), format_bytes(0)] == [
        "384MiB",
        "500KiB",
        "1KB",
        "0B",
    ]
    assert [format_seconds(0.25), format_seconds(90.0), format_seconds(600.0), format_seconds(0.0)] == [
        "250ms",
        "90s",
        "10min",
        "0.0s",
    ]
    assert format_share(0.02) == "2%"


class Box(BaseModel):
    size: Bytes = Field(ge=1024)
    time: Seconds | None = Field(None, le=60)
    share: Share = 0.5


def test_limits_apply_to_base_units_and_texts_appear_only_when_asked_for() -> None:
    box = Box.model_validate({"size": "1KiB", "time": "1min"})
    assert box.model_dump(mode="json") == {"size": 1024, "time": 60.0, "share": 0.5}
    assert box.model_dump(mode="json", context=dict(WITH_UNITS)) == {"size": "1KiB", "time": "1min", "share": "50%"}
    with pytest.raises(ValidationError) as raised:
        Box.model_validate({"size": "1000B", "time": "61s"})
    assert [error["type"] for error in raised.value.errors()] == ["greater_than_equal", "less_than_equal"]


@pytest.mark.parametrize(
    ("text", "expected"), [("100/s", 100.0), ("90/min", 1.5), ("9 /h", 0.0025), (7, 7.0), ("0.1", 0.1)]
)
def test_rates_are_per_second(text: str | int, expected: float) -> None:
    assert parse_rate(text) == expected


@pytest.mark.parametrize("wrong", ["-5/s", "5/day", "5/", "/s", "5//s", True, None])
def test_what_is_no_rate_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="expected a rate such as 100/s or 90/min"):
        parse_rate(wrong)


@given(st.floats(0, 1e8, allow_nan=False))
def test_a_formatted_rate_is_the_same_rate(value: float) -> None:
    assert parse_rate(format_rate(value)) == value


def test_a_rate_is_written_with_its_unit() -> None:
    class Load(BaseModel):
        rate: Rate

    assert Load.model_validate({"rate": "6000/min"}).model_dump(context=WITH_UNITS) == {"rate": "100/s"}
