from __future__ import annotations

import math

import pytest

from fairtrial.report import numbers


@pytest.mark.parametrize(
    ("unit", "values", "printed_unit", "printed"),
    [
        ("transactions/min", [18_561.7, 24_221.3], "transactions/min", "18,562"),
        ("transactions/min", [4.7123, 4.71], "transactions/min", "4.712"),
        ("ns", [19_400_000.0, 24_750_761.7], "ms", "19.40"),
        ("ns", [950.0], "ns", "950.0"),
        ("ns", [2.5e9], "s", "2.500"),
        ("share", [0.0125], "%", "1.250"),
        ("share of time", [0.25], "% of time", "25.00"),
        ("B/transaction", [2048.0], "KiB/transaction", "2.000"),
        ("B", [3 << 30], "GiB", "3.000"),
    ],
)
def test_one_scale_prints_a_column_with_four_digits_of_its_largest(
    unit: str, values: list[float], *, printed_unit: str, printed: str
) -> None:
    chosen = numbers.scale(unit, values)
    assert chosen.unit == printed_unit
    assert chosen.value(values[0]) == printed


@pytest.mark.parametrize(
    ("values", "printed"),
    [
        ([12_340_000.0, 120_000.0], "0.12"),
        ([12_340_000.0, 1_200.0], "0.0012"),
        ([12_340_000.0, 24.0], "0.00002"),
        ([12_340_000.0, 0.24], "0.00000"),
        ([12_340_000.0, 0.0], "0.00"),
    ],
)
def test_the_smallest_of_a_column_is_not_printed_as_nothing(values: list[float], printed: str) -> None:
    assert numbers.scale("ns", values).value(values[1]) == printed


@pytest.mark.parametrize(
    ("unit", "said", "briefly"),
    [
        ("share", "percentage points", "pp"),
        ("share of transactions", "percentage points of transactions", "pp of transactions"),
        ("%", "percentage points", "pp"),
        ("%/s", "%/s", "%/s"),
        ("s", "s", "s"),
        ("", "", ""),
    ],
)
def test_a_difference_of_percentages_is_in_percentage_points(unit: str, *, said: str, briefly: str) -> None:
    chosen = numbers.scale(unit, [0.07, 0.15])
    assert (chosen.difference_unit, chosen.brief_difference_unit) == (said, briefly)


def test_scale_of_nothing_or_of_zeros_still_prints() -> None:
    assert numbers.scale("ns", []).value(0.0) == "0"
    assert numbers.scale("errors", [0.0, 0.0]).value(0.0) == "0"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_is_not_a_number_is_a_dash(value: float | None) -> None:
    assert numbers.ratio(value) == numbers.p_value(value) == numbers.scale("ns", [1.0]).value(value) == numbers.ABSENT


def test_intervals() -> None:
    assert numbers.ratio_interval(0.9934, 1.0091) == "0.993 – 1.009"
    assert numbers.ratio_interval(None, 1.0) == numbers.ABSENT
    assert numbers.scale("x", [100.0]).interval(-12.34, 5.0) == "[-12.3, 5.0]"
    assert numbers.scale("x", [100.0]).interval(None, None) == numbers.ABSENT


def test_small_p_is_a_bound_and_large_ratios_lose_decimals() -> None:
    assert numbers.p_value(3.2e-9) == "< 0.0001"
    assert numbers.p_value(0.03124) == "0.0312"
    assert numbers.p_in_words(3.2e-9) == "p < 0.0001"
    assert numbers.p_in_words(0.03124) == "p = 0.0312"
    assert numbers.ratio(1.0804) == "1.080"
    assert numbers.ratio(1234.5) == "1,234"
    assert numbers.ratio(999_999.4) == "999,999"
    assert numbers.ratio(1_000_000) == "1.0e6"
    assert numbers.ratio_interval(0.0, 97_366_077_450) == "0.000 – 9.7e10"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.1, "0.100"),
        (0.05123, "0.0512"),
        (0.000123456, "0.000123"),
        (0.0001, "1.0e-4"),
        (7.6e-5, "7.6e-5"),
        (3.21e-12, "3.2e-12"),
        (1e-300, "1.0e-300"),
        (0.0, "0.000"),
    ],
)
def test_a_small_ratio_is_not_printed_as_nothing(value: float, printed: str) -> None:
    assert numbers.ratio(value) == printed


@pytest.mark.parametrize(
    ("low", "estimate", "high", "printed"),
    [
        (1.00008, 1.00009, 1.0001, "1.00009 1.00008 – 1.00010"),
        (1.0003, 1.006, 1.012, "1.0060 1.0003 – 1.0120"),  # it excludes 1
        (0.9997, 1.0004, 1.012, "1.000 1.000 – 1.012"),
        (1.0, 1.0, 1.0, "1.000 1.000 – 1.000"),
        (250.1, 250.2, 250.3, "250 250 – 250"),
        (None, 1.25, None, "1.250 –"),
    ],
)
def test_the_ends_of_an_interval_are_told_apart(
    *, low: float | None, estimate: float, high: float | None, printed: str
) -> None:
    assert f"{numbers.ratio_in(estimate, low, high)} {numbers.ratio_interval(low, high)}" == printed
    assert " ".join(numbers.ratio_and_interval(estimate, low, high)) == printed


@pytest.mark.parametrize(
    ("unit", "values", "printed"),
    [
        ("share", [0.9999, 0.999985], ["99.9900", "99.9985"]),
        ("%", [99.99, 99.999], ["99.9900", "99.9990"]),
        ("%", [0.0, 100.0], ["0.0", "100.0"]),
        ("%", [95.5, 320.0], ["95.5", "320.0"]),  # of several processors
        ("ns", [99.99, 99.999], ["99.99", "100.00"]),
    ],
)
def test_of_shares_what_is_left_of_the_whole_is_not_printed_as_nothing(
    unit: str, values: list[float], printed: list[str]
) -> None:
    scale = numbers.scale(unit, values)
    assert [scale.value(value) for value in values] == printed


def test_a_huge_percentage_has_no_hundred_digits() -> None:
    assert numbers.percents(0.0312) == "3.1 %"
    assert numbers.percents(9_999.9) == "999990.0 %"
    assert numbers.percents(1.0093e98) == "1.0e100 %"
    assert numbers.change(1e12) == "+1.0e14 %"
    assert numbers.percents(10_000) == "1.0e6 %"


def test_a_percentage_beyond_any_number_is_printed_like_others() -> None:
    assert numbers.percents(1.7e308) == "1.7e310 %"
    assert numbers.percents(-1.7e308) == "-1.7e310 %"
    assert numbers.change(1.7e308) == "+1.7e310 %"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_percentage_of_what_is_not_a_number_is_a_dash(value: float) -> None:
    assert numbers.percents(value) == numbers.change(value) == numbers.ABSENT


def test_changes_and_percent() -> None:
    assert numbers.change(1.0804) == "+8.0 %"
    assert numbers.change(0.97) == "−3.0 %"
    assert numbers.percent(0.02) == "2 %"
    assert numbers.bytes_of(8 << 30) == "8.000 GiB"
