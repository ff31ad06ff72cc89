"""What becomes of a t test's p that is held against the exchange of arms and against ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from support.inference.exchanged import raised, raised_inside, raised_unpaired
from support.inference.noises import modes, own_stalls, p_of_t

from fairtrial.analyse.inference import sensitivity, t_tests
from fairtrial.analyse.inference.confirming import (
    paired,
    paired_beyond,
    signed_ranks,
    unpaired,
    unpaired_beyond,
    weight,
)
from fairtrial.analyse.inference.exchanging import exchange_p
from fairtrial.analyse.inference.t_tests import Values

ALPHA = 0.05


def test_the_weight_is_nothing_where_no_exact_p_reaches_the_level_and_grows_to_one() -> None:
    assert [weight(n, level=ALPHA) for n in (2, 3, 4, 5)] == [0, 0, 0, 0]
    assert weight(6, level=ALPHA) == pytest.approx(1 - 1 / math.sqrt(1.6))
    assert weight(10, level=ALPHA) == pytest.approx(1 - 1 / math.sqrt(25.6))
    assert weight(7, level=ALPHA / 6) == 0
    assert weight(8, level=ALPHA / 6) == pytest.approx(1 - 1 / math.sqrt(64 / 60))
    by_blocks = [weight(n, level=ALPHA / 12) for n in range(2, 60)]
    assert by_blocks == sorted(by_blocks)
    assert weight(10_000, level=1e-9) == pytest.approx(1.0)
    by_family = [weight(12, level=ALPHA / size) for size in range(1, 60)]
    assert by_family == sorted(by_family, reverse=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.05, 5), min_size=6, max_size=10), st.integers(1, 12), st.integers(0, 2))
def test_a_claim_becomes_what_the_rule_written_out_makes_of_it(sizes: list[float], family: int, turned: int) -> None:
    differences = np.array(sizes)
    differences[:turned] *= -0.3
    assume(np.ptp(differences) > 1e-3)
    p = float(p_of_t(differences))
    found = float(paired(np.asarray(p), differences, level=ALPHA / family, alpha=ALPHA))
    assert found == pytest.approx(raised(p, differences.tolist(), family=family), rel=1e-9)
    witnesses = float(exchange_p(differences)), float(signed_ranks(differences))
    assert p <= found <= max(p, *witnesses) * (1 + 1e-12)


def test_what_claims_nothing_is_left_as_it_is() -> None:
    differences = np.random.default_rng(2).normal(0.2, 1, (400, 12))
    p = p_of_t(differences)
    found = paired(p, differences, level=ALPHA, alpha=ALPHA)
    quiet = p >= ALPHA
    assert quiet.sum() > 100
    assert (found[quiet] == p[quiet]).all()
    assert (found[~quiet] >= p[~quiet]).all()
    assert (found[~quiet] > p[~quiet]).any()
    assert (p == p_of_t(differences)).all()  # and what was given is not changed in place


def test_few_blocks_of_a_large_family_are_left_to_t() -> None:
    differences = np.random.default_rng(3).normal(3, 1, (50, 7))
    p = p_of_t(differences)
    assert (p < 0.05).sum() > 40
    assert (paired(p, differences, level=ALPHA / 6, alpha=ALPHA) == p).all()
    assert (paired(p, differences, level=ALPHA, alpha=ALPHA) > p).any()


def test_a_single_p_keeps_its_shape() -> None:
    differences = np.array([1.0, 1.1, 0.9, 1.2, 1.0, -0.1, 1.0, 0.8])
    found = paired(np.asarray(0.001), differences, level=ALPHA, alpha=ALPHA)
    assert found.shape == ()
    assert 0.001 < float(found) < float(exchange_p(differences))


def test_a_p_of_zero_stays_the_smallest() -> None:
    """Two thousand blocks on one side: t's p is no number above 0, and no power of it may fail."""
    assert 0 <= float(paired(np.asarray(0.0), np.ones(2_000), level=ALPHA, alpha=ALPHA)) < 1e-300
    assert float(paired(np.asarray(0.0), np.ones(12), level=ALPHA, alpha=ALPHA)) == 0.0


@pytest.mark.parametrize(("n", "size"), [(10, 1), (12, 6), (20, 12)])
def test_two_modes_deceive_t_and_not_what_is_held_against_it(n: int, size: int) -> None:
    """Counted at the level of a family's hardest step, where thin tails tell most."""
    level = ALPHA / size
    differences = np.concatenate([modes((100_000, n), seed=seed) for seed in range(4)])
    p = p_of_t(differences)
    false = [int((each < level).sum()) for each in (p, paired(p, differences, level=level, alpha=ALPHA))]
    by_t, held = (stats.binomtest(each, len(p), level, alternative="greater").pvalue for each in false)
    assert by_t < 1e-4
    assert held > 0.01


@pytest.mark.parametrize(("n", "size", "lost"), [(6, 1, 0.04), (10, 1, 0.045), (10, 6, 0.06), (20, 6, 0.04)])
def test_normal_noise_hardly_loses_power(n: int, size: int, lost: float) -> None:
    level = ALPHA / size
    effect = sensitivity.shift(n - 1, alpha=level) / math.sqrt(n)  # found in four of five repeats
    differences = np.random.default_rng(n + size).normal(effect, 1, (10_000, n))
    p = p_of_t(differences)
    found = [float((each < level).mean()) for each in (p, paired(p, differences, level=level, alpha=ALPHA))]
    assert found[0] == pytest.approx(0.8, abs=0.02)
    assert found[0] - lost < found[1] <= found[0]


BOUND = math.log1p(0.02)


def inside_by_t(differences: Values) -> Values:
    return sensitivity.equivalence_many(t_tests.paired_many(np.zeros_like(differences), differences), bound=BOUND)


def inside(p: Values, differences: Values, *, size: int = 1) -> Values:
    nearer = np.where(differences.mean(axis=-1, keepdims=True) >= 0, BOUND - differences, BOUND + differences)
    return paired_beyond(p, nearer, level=ALPHA / size, alpha=ALPHA)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-0.03, 0.03), min_size=5, max_size=10), st.integers(1, 12))
def test_a_claim_of_equivalence_becomes_what_the_rule_written_out_makes_of_it(values: list[float], family: int) -> None:
    differences = np.array(values)
    assume(np.ptp(differences) > 1e-4)
    assume(abs(differences.mean()) > 1e-6)  # else which end is the nearer is rounding
    p = float(inside_by_t(differences))
    found = float(inside(np.asarray(p), differences, size=family))
    assert found == pytest.approx(raised_inside(p, values, bound=BOUND, family=family), rel=1e-9)
    assert found >= p


def test_equivalence_does_not_depend_on_which_arm_is_the_baseline() -> None:
    differences = np.random.default_rng(4).normal(0.004, 0.006, (200, 9))
    p = inside_by_t(differences)
    assert inside(p, differences) == pytest.approx(inside(inside_by_t(-differences), -differences), rel=1e-9)
    assert (inside(p, differences) > p).any()


def test_the_nearer_end_of_the_margin_decides() -> None:
    """Differences near the upper end: held against that end, far from the lower."""
    differences = np.array([0.014, 0.015, 0.016, 0.0145, 0.0155, 0.0165, 0.0135, 0.015])
    p = inside_by_t(differences)
    assert float(p) < 1e-5
    exact = float(exchange_p(BOUND - differences)) / 2
    assert exact == pytest.approx(2.0**-8), "all on one side of the end"
    share = weight(8, level=2 * ALPHA)
    assert float(inside(p, differences)) == pytest.approx(float(p) ** (1 - share) * exact**share)


def test_what_is_not_called_equivalent_is_left_as_it_is() -> None:
    differences = np.random.default_rng(5).normal(0.018, 0.01, (300, 10))
    p = inside_by_t(differences)
    quiet = p >= ALPHA
    assert quiet.sum() > 100
    assert (inside(p, differences)[quiet] == p[quiet]).all()


def test_few_blocks_are_left_to_t_here_too() -> None:
    differences = np.random.default_rng(6).normal(0, 0.002, (50, 6))
    p = inside_by_t(differences)
    assert (p < ALPHA).all()
    assert (inside(p, differences, size=4) == p).all(), "0.05 / 4 x 2^6 is less than one choice of signs"
    assert (inside(p, differences) > p).any()


@pytest.mark.parametrize(("n", "size"), [(10, 1), (12, 6), (20, 6)])
def test_two_modes_at_the_margin_are_not_called_equivalent_too_often(n: int, size: int) -> None:
    level = ALPHA / size
    differences = np.concatenate([modes((100_000, n), seed=seed) for seed in range(4)]) * 0.03 + BOUND
    found = inside(inside_by_t(differences), differences, size=size)
    false = int((found < level).sum())
    assert stats.binomtest(false, len(found), level, alternative="greater").pvalue > 0.01


# Ranks: noise of one arm's own.


@pytest.mark.parametrize("n", [6, 10, 20])
def test_stalls_of_one_arm_are_no_difference_of_typical_trials(n: int) -> None:
    """Student's p stays within its level here, too: what it claims is the mean, and of that more often than not."""
    differences = own_stalls((40_000, n), seed=n)
    false = paired(p_of_t(differences), differences, level=ALPHA, alpha=ALPHA) < ALPHA
    assert stats.binomtest(int(false.sum()), len(false), 0.055, alternative="greater").pvalue > 0.01


def test_ranks_hold_back_a_mean_that_single_trials_carry() -> None:
    """Nine blocks lie a little below, and five far above: t is sure, ranks are not."""
    differences = np.array(
        [-0.01, 0.012, -0.011, 0.009, -0.008, -0.013, -0.012, 0.007, -0.009, 0.3, 0.31, 0.29, 0.3, 0.305]
    )
    p = p_of_t(differences)
    found = float(paired(p, differences, level=ALPHA, alpha=ALPHA))
    assert float(p) < 0.04
    assert found > ALPHA
    assert found == pytest.approx(raised(float(p), differences.tolist(), family=1), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9), st.booleans())
def test_ranks_speak_for_a_claim_in_the_means_direction_only(values: list[float], flipped: bool) -> None:  # noqa: FBT001
    differences = np.array(values) * (-1 if flipped else 1)
    theirs = (
        stats.wilcoxon(
            differences,
            alternative="greater" if differences.mean() >= 0 else "less",
            method="exact",
            zero_method="wilcox",
        )
        if len(set(np.abs(differences).tolist())) == len(values) and (differences != 0).all()
        else None
    )
    assume(theirs is not None)
    assert theirs is not None
    assert float(signed_ranks(differences)) == pytest.approx(min(1, 2 * theirs.pvalue), rel=1e-9)


def welch_p(first: Values, second: Values) -> Values:
    return t_tests.welch_many(first, second).p


@pytest.mark.parametrize(("n", "m"), [(4, 4), (6, 9), (12, 5)])
@pytest.mark.parametrize("family", [1, 6])
def test_without_blocks_welch_is_held_against_the_rank_sum(n: int, m: int, family: int) -> None:
    random = np.random.default_rng([n, m, family])
    first, second = random.normal(0, 1, (40, n)), random.normal(1.8, 1, (40, m)) * random.choice([-1, 1], (40, 1))
    p = welch_p(first, second)
    found = unpaired(p, first, second, level=ALPHA / family, alpha=ALPHA)
    expected = [
        raised_unpaired(float(each), (a.tolist(), b.tolist()), sides=2, family=family)
        for each, a, b in zip(p, first, second, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-9)
    assert (found == p).any()


def test_one_side_without_blocks_is_held_against_its_own_tail() -> None:
    random = np.random.default_rng(3)
    first, second = random.normal(0, 1, (60, 6)), random.normal(1.2, 1, (60, 7))
    tests = t_tests.welch_many(first, second)
    p = stats.t.sf(tests.estimate / tests.standard_error, tests.df)
    found = unpaired_beyond(p, first, second, level=ALPHA, alpha=ALPHA)
    expected = [
        raised_unpaired(float(each), (a.tolist(), b.tolist()), sides=1, family=1)
        for each, a, b in zip(p, first, second, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-9)
    assert (found > p).any()


def test_more_values_than_there_are_ways_to_count_are_ranked_all_the_same() -> None:
    random = np.random.default_rng(4)
    first, second = random.normal(0, 1, (2, 1200)), random.normal(0.2, 1, (2, 700))
    p = welch_p(first, second)
    assert (p < ALPHA).all()
    found = unpaired(p, first, second, level=ALPHA, alpha=ALPHA)
    assert (found >= p).all()
    assert np.log(found) == pytest.approx(np.log(p), rel=0.4)
