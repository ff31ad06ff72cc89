"""Numbers over time thinned without losing a spike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairtrial.live.course import MOST_STRETCHES, Course, width_s


def test_a_stretch_is_a_median_between_the_least_and_the_most() -> None:
    course = Course()
    for second, value in ((0.1, 5.0), (0.4, 900.0), (0.9, 6.0), (1.5, 7.0), (3.2, 8.0), (3.3, float("nan"))):
        course.add(second, value)
    assert [(each.index, each.low, each.median, each.high) for each in course.stretches(width_s=1)] == [
        (0, 5.0, 6.0, 900.0),
        (1, 7.0, 7.0, 7.0),
        (2, None, None, None),
        (3, 8.0, 8.0, 8.0),
    ]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300), st.integers(0, 5), st.integers(0, 80))
def test_no_extreme_is_lost_and_what_is_new_is_the_end_of_all(values: list[float], power: int, first: int) -> None:
    course = Course()
    for second, value in enumerate(values):
        course.add(second, value)
    width = 1 << power
    whole = course.stretches(width_s=width)
    assert max(each.high for each in whole if each.high is not None) == max(values)
    assert min(each.low for each in whole if each.low is not None) == min(values)
    assert course.stretches(width_s=width, first=first) == whole[first:]


@given(st.floats(0, 1e6))
def test_a_day_has_no_more_stretches_than_an_hour(length_s: float) -> None:
    width = width_s(length_s)
    assert length_s / width <= MOST_STRETCHES
    assert width == 1 or length_s / (width / 2) > MOST_STRETCHES
