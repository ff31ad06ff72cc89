"""Exact rank tests against every order counted one by one, against SciPy, and by what must not change them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.inference.exchanged import every_rank_above

from fairtrial.analyse.inference import ranks
from fairtrial.analyse.inference.t_tests import Values, array

SMALL = st.lists(st.integers(-4, 4), min_size=1, max_size=7)  # with ties and zeros
FINE = st.lists(st.floats(-100, 100).filter(lambda value: abs(value) > 1e-3), min_size=2, max_size=9, unique_by=abs)


def by_flipping(differences: Values) -> float:
    """The exact p of the signed rank test: all signs of the absolute ranks, one by one."""
    signed = differences[differences != 0]
    sizes = stats.rankdata(np.abs(signed))
    seen = sizes[signed > 0].sum()
    sums = [float(np.dot(sizes, flips)) for flips in itertools.product((0, 1), repeat=len(sizes))]
    return _twice_smaller_tail(sums, float(seen))


def by_choosing(first: Values, second: Values) -> float:
    """The exact p of the rank sum test: all choices of as many ranks, one by one."""
    both = stats.rankdata(np.concatenate([second, first]))
    sums = [float(sum(chosen)) for chosen in itertools.combinations(both, len(second))]
    return _twice_smaller_tail(sums, float(both[: len(second)].sum()))


def _twice_smaller_tail(sums: list[float], seen: float) -> float:
    below, above = (
        sum(test) / len(sums) for test in zip(*((each <= seen, each >= seen) for each in sums), strict=True)
    )
    return min(1.0, 2 * min(below, above))


@given(SMALL)
def test_signed_rank_is_exact_with_ties_and_zeros(values: list[int]) -> None:
    differences = array(values)
    found = ranks.signed_rank(differences, confidence=0.95)
    assert found is not None
    assert found.exact
    assert found.p == pytest.approx(by_flipping(differences), rel=1e-12)
    walsh = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2)]
    assert found.estimate == float(np.median(walsh))


@given(SMALL, SMALL)
def test_rank_sum_is_exact_with_ties(first: list[int], second: list[int]) -> None:
    found = ranks.rank_sum(array(first), array(second), confidence=0.95)
    assert found is not None
    assert found.p == pytest.approx(by_choosing(array(first), array(second)), rel=1e-12)
    assert found.estimate == float(np.median([b - a for a in first for b in second]))
    counted = [value for value in first + second if (first + second).count(value) > 1]
    assert found.tied == len(counted)


@given(FINE, st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_the_interval_has_exactly_the_shifts_that_the_test_does_not_reject(values: list[float], share: float) -> None:
    """Tested just inside and just outside of both ends, where nothing ties."""
    differences = array(values)
    found = ranks.signed_rank(differences, confidence=share)
    assert found is not None
    if found.low is None or found.high is None:
        assert found.smallest_p >= 1 - share
        return
    gaps = np.diff(np.unique(ranks.walsh_averages(differences)))
    step = float(gaps.min()) / 4 if len(gaps) else 1.0
    if step < 1e-9:  # a shift between two averages would be lost in rounding
        return
    for end, inward in ((found.low, 1), (found.high, -1)):
        for side, rejected in ((-inward, True), (inward, False)):
            moved = ranks.signed_rank(differences - (end + side * step), confidence=share)
            assert moved is not None
            assert (moved.p < 1 - share) == rejected


@given(FINE, FINE)
def test_swapping_the_arms_swaps_the_sign_and_nothing_else(first: list[float], second: list[float]) -> None:
    one, other = (ranks.rank_sum(array(a), array(b), confidence=0.9) for a, b in ((first, second), (second, first)))
    assert one is not None
    assert other is not None
    assert one.p == pytest.approx(other.p, rel=1e-12)
    assert one.estimate == -other.estimate
    if one.low is not None and one.high is not None:
        assert (other.low, other.high) == (-one.high, -one.low)


def test_scipy_gives_the_same_p_and_the_many_are_the_singles() -> None:
    random = np.random.default_rng(3)
    for n, m in ((2, 3), (5, 5), (9, 14), (30, 50)):
        first, second = random.normal(0, 1, (6, n)), random.normal(0.7, 1, (6, m))
        above, below = ranks.rank_sum_above(first, second), ranks.rank_sum_above(second, first)
        up, down = ranks.signed_rank_above(second), ranks.signed_rank_above(-second)
        for row in range(6):
            single = ranks.rank_sum(first[row], second[row], confidence=0.95)
            pairs = ranks.signed_rank(second[row], confidence=0.95)
            assert single is not None
            assert pairs is not None
            assert min(1, 2 * min(above[row], below[row])) == pytest.approx(single.p, rel=1e-12)
            assert min(1, 2 * min(up[row], down[row])) == pytest.approx(pairs.p, rel=1e-12)
            theirs = stats.mannwhitneyu(second[row], first[row], method="exact").pvalue
            assert single.p == pytest.approx(theirs, rel=1e-9)
            assert pairs.p == pytest.approx(stats.wilcoxon(second[row], method="exact").pvalue, rel=1e-9)


@given(SMALL, SMALL)
def test_tails_of_tied_values_are_those_of_every_choice(first: list[int], second: list[int]) -> None:
    for of in (first, second):
        assert float(ranks.signed_rank_above(np.array(of, dtype=float))) == pytest.approx(
            every_rank_above(of), abs=1e-12
        )
    seen = len(second)
    order = stats.rankdata([*second, *first])
    sums = [sum(each) for each in itertools.combinations(order.tolist(), seen)]
    expected = sum(each >= order[:seen].sum() - 1e-9 for each in sums) / len(sums)
    assert float(ranks.rank_sum_above(np.array(first, dtype=float), np.array(second, dtype=float))) == pytest.approx(
        expected, abs=1e-12
    )


def test_many_tails_at_once_are_each_by_itself() -> None:
    """Rows with ties, with zeros and with neither, side by side."""
    rows = np.array([[1.0, -2, 3, 4], [1, 1, -1, 2], [0, 1, 2, -3], [-1, -2, -3, -4]])
    assert ranks.signed_rank_above(rows).tolist() == [float(ranks.signed_rank_above(row)) for row in rows]
    found = ranks.rank_sum_above(rows[::-1], rows)
    assert found.tolist() == [float(ranks.rank_sum_above(a, b)) for a, b in zip(rows[::-1], rows, strict=True)]


def test_beyond_the_exact_sizes_the_normal_approximation_is_close() -> None:
    random = np.random.default_rng(5)
    values = random.normal(0.2, 1, ranks.EXACT_N + 10)
    found = ranks.signed_rank(values, confidence=0.95)
    assert found is not None
    assert not found.exact
    exact = stats.wilcoxon(values, method="exact").pvalue
    assert found.p == pytest.approx(exact, rel=0.02)
    nearer = min(float(ranks.signed_rank_above(each)) for each in (values, -values))
    assert nearer == pytest.approx(found.p / 2, rel=1e-9)
    assert found.low is not None
    assert found.low < found.estimate < (found.high or -math.inf)
    assert ranks.signed_rank(np.ones(ranks.LARGEST_N + 1), confidence=0.95) is None


@pytest.mark.parametrize(("n", "least"), [(1, 1.0), (2, 0.5), (3, 0.25), (5, 0.0625), (6, 0.03125)])
def test_no_signs_of_few_blocks_reach_five_percent(n: int, least: float) -> None:
    found = ranks.signed_rank(np.arange(1.0, n + 1), confidence=0.95)
    assert found is not None
    assert found.p == found.smallest_p == least
    assert (found.low is None) == (n < 6) == (not ranks.could_claim(least, alpha=0.05))


def test_of_any_number_of_blocks_or_trials_the_smallest_p_is_a_number() -> None:
    assert ranks.smallest_signed_rank_p(1024) == 2.0**-1023
    assert ranks.smallest_signed_rank_p(5000) == ranks.smallest_rank_sum_p(5000, 5000) == 0.0


def test_three_trials_against_three_never_reach_it_and_four_do() -> None:
    for n, least in ((3, 0.1), (4, 2 / 70)):
        found = ranks.rank_sum(np.arange(n) + 0.0, np.arange(n) + 100.0, confidence=0.95)
        assert found is not None
        assert found.p == pytest.approx(found.smallest_p)
        assert found.smallest_p == pytest.approx(least)
        assert (found.low is None) == (n == 3)
