"""Shares: what is equivalent must leave the rest of the total equivalent, too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairtrial.analyse.inference import shares
from fairtrial.analyse.inference.comparing import ComparisonOptions, Subject, compare
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison

MARGIN = 0.02
ALPHA = 0.05
SETTING = ComparisonOptions(paired=True, confidence=0.95, margin=MARGIN, family_size=1)


def arm(name: str, values: list[float]) -> ArmValues:
    blocks = tuple(range(1, len(values) + 1))
    return ArmValues(arm=name, values=np.array(values), blocks=blocks, positions=blocks, absent=0)


def compared(baseline: list[float], other: list[float], *, total: float) -> Comparison:
    subject = Subject(metric="hit_ratio", role="primary", cell="", total=total)
    return compare(arm("a", baseline), arm("b", other), subject=subject, setting=SETTING)


def around(middle: float, *, by: float, n: int = 10) -> list[float]:
    return (middle + by * np.random.default_rng(int(1e5 * middle)).standard_normal(n)).tolist()


@pytest.mark.parametrize("total", [1.0, 100.0])
def test_a_tenth_of_the_misses_is_not_equivalent_though_hits_are_within_the_margin(total: float) -> None:
    before, after = around(0.99 * total, by=2e-5 * total), around(0.999 * total, by=2e-5 * total)
    as_values, as_shares = (compared(before, after, total=each).p_equivalence for each in (0.0, total))
    assert as_values is not None
    assert as_shares is not None
    assert as_values < ALPHA
    assert as_shares > 1 - ALPHA


def test_p_is_nearly_that_of_the_rest_where_the_rest_is_small() -> None:
    before, after = around(0.95, by=8e-4), around(0.9502, by=8e-4)
    hits = compared(before, after, total=1.0)
    misses = compared([1 - each for each in before], [1 - each for each in after], total=1.0)
    assert hits.p_equivalence is not None
    assert misses.p_equivalence is not None
    assert 0.001 < misses.p_equivalence <= hits.p_equivalence < 1.5 * misses.p_equivalence < 0.2
    assert misses.margin == pytest.approx(MARGIN)


def test_the_bound_is_where_the_rest_has_changed_by_the_margin() -> None:
    values = np.array([0.9, 0.9])
    bound = shares.bound(values, values, margin=MARGIN, total=1.0)
    assert 1 - 0.9 * math.exp(bound) == pytest.approx(0.1 / (1 + MARGIN))


@pytest.mark.parametrize(
    ("baseline", "other", "total", "expected"),
    [
        ([0.9], [0.9], 0.0, MARGIN),  # no share
        ([0.9], [1.1], 1.0, MARGIN),  # more than all of it: no share either
        ([0.1], [0.1], 1.0, MARGIN),  # the share is less than the rest
        ([], [], 1.0, MARGIN),
        ([1.0, 1.0], [1.0, 1.0], 1.0, MARGIN),  # nothing is left of either
        ([1.0, 1.0], [1.0, 0.999], 1.0, 0.0),  # nothing was left, and now something is
    ],
)
def test_where_the_rest_decides_nothing_the_margin_is_what_was_asked_for(
    *, baseline: list[float], other: list[float], total: float, expected: float
) -> None:
    found = shares.bound(np.array(baseline), np.array(other), margin=MARGIN, total=total)
    assert math.expm1(found) == pytest.approx(expected)


@pytest.mark.parametrize("total", [1.0, 100.0])
def test_all_of_the_total_is_all_of_it_for_any_number_of_blocks(total: float) -> None:
    """The mean of equal logarithms is not always the logarithm."""
    for n in range(1, 101):
        every = np.full(n, total)
        assert math.expm1(shares.bound(every, every, margin=MARGIN, total=total)) == pytest.approx(MARGIN), n
