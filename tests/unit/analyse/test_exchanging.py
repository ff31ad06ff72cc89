"""Exchanging arms within blocks: every choice of signs written out, SciPy, known laws, and what it does to a t test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from support.exchanged import every_sign, raised, raised_inside

from fairtrial.analyse import exchanging, sensitivity, t_tests
from fairtrial.analyse.exchanging import EXACT_N, confirmed, confirmed_inside, exchange_p, weight
from fairtrial.analyse.t_tests import Values

ALPHA = 0.05
counts = st.lists(st.integers(-6, 6), min_size=2, max_size=9)  # ties and zeros on purpose
reals = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=2, max_size=9)


def modes(shape: tuple[int, ...], *, seed: int, width: float = 1 / 9) -> Values:
    """Differences of trials that fall into one of two modes, whose distance is 1."""
    random = np.random.default_rng(seed)
    first, second = (random.normal(0, width, shape) + (random.random(shape) < 0.5) for _ in range(2))
    return second - first


def p_of_t(differences: Values) -> Values:
    return t_tests.paired_many(np.zeros_like(differences), differences).p


@settings(max_examples=80, deadline=None)
@given(counts | reals)
def test_every_choice_of_signs_written_out_gives_the_same_p(differences: list[float]) -> None:
    assert float(exchange_p(np.array(differences, dtype=float))) == pytest.approx(every_sign(differences), rel=1e-12)


@pytest.mark.parametrize("n", [11, 12])
def test_scipy_gives_the_same_p(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.4, 1, n)
    theirs = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert float(exchange_p(differences)) == pytest.approx(theirs.pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 19, EXACT_N, EXACT_N + 1, 40, 400])
def test_one_sign_throughout_is_the_smallest_p_there_is(n: int) -> None:
    sizes = np.random.default_rng(n).exponential(1, n) + 0.1
    assert float(exchange_p(sizes)) == pytest.approx(2.0 ** (1 - n))
    assert float(exchange_p(-sizes)) == pytest.approx(2.0 ** (1 - n))


@pytest.mark.parametrize("n", [6, 9, 14, EXACT_N])
def test_equal_sizes_make_it_the_sign_test(n: int) -> None:
    """Sums of equal numbers tie in great heaps, and every one of a heap counts."""
    for positive in range(n + 1):
        differences = 0.3 * np.where(np.arange(n) < positive, 1.0, -1.0)
        expected = stats.binomtest(positive, n).pvalue
        assert float(exchange_p(differences)) == pytest.approx(expected, rel=1e-9), positive


@pytest.mark.parametrize("n", [1, 4, EXACT_N, EXACT_N + 5])
def test_no_difference_at_all_is_no_evidence(n: int) -> None:
    assert float(exchange_p(np.zeros(n))) == 1.0


@pytest.mark.parametrize("n", [4, EXACT_N, EXACT_N + 4])
def test_differences_that_cancel_are_no_evidence(n: int) -> None:
    assert float(exchange_p(np.tile([0.7, -0.7], n // 2))) == 1.0


@pytest.mark.parametrize("n", [7, EXACT_N + 10])
def test_a_block_without_difference_counts_for_nothing(n: int) -> None:
    """Its sign changes no sum, so all choices come in pairs of equal ones."""
    differences = np.random.default_rng(3).normal(0.5, 1, n)
    with_zero = np.append(differences, 0.0)
    assert float(exchange_p(with_zero)) == pytest.approx(float(exchange_p(differences)), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(reals, st.floats(1e-3, 1e3), st.randoms(use_true_random=False))
def test_unit_direction_and_order_do_not_matter(differences: list[float], unit: float, random: object) -> None:
    assume(max(map(abs, differences)) > 1e-3)
    values = np.array(differences)
    p = float(exchange_p(values))
    assert float(exchange_p(-values)) == p
    assert float(exchange_p(values * unit)) == pytest.approx(p, rel=1e-9)
    order = np.random.default_rng(random.randrange(2**32)).permutation(len(values))  # type: ignore[attr-defined]
    assert float(exchange_p(values[order])) == pytest.approx(p, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 5), min_size=4, max_size=10), st.integers(0, 3))
def test_turning_one_difference_towards_the_others_makes_p_no_larger(sizes: list[float], at: int) -> None:
    mixed = np.array(sizes)
    mixed[at] *= -1
    assume(mixed.sum() > 0)
    assert float(exchange_p(np.abs(mixed))) <= float(exchange_p(mixed))


@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 7), (2, 3, EXACT_N + 3)])
def test_many_samples_at_once_are_each_by_itself(shape: tuple[int, ...]) -> None:
    differences = np.random.default_rng(1).normal(0.3, 1, shape)
    found = exchange_p(differences)
    assert found.shape == shape[:-1]
    rows = differences.reshape(-1, shape[-1])
    assert found.reshape(-1).tolist() == pytest.approx([float(exchange_p(row)) for row in rows], rel=1e-12)


@pytest.mark.parametrize("n", [16, 18, EXACT_N])
@pytest.mark.parametrize("law", ["normal", "exponential", "uniform"])
def test_the_saddle_point_is_near_the_exact_p_where_both_can_be_had(n: int, law: str) -> None:
    random = np.random.default_rng(n)
    sizes = np.abs(getattr(random, law)(size=(200, n)))
    signs = np.where(random.random((200, n)) < 0.72, 1, -1)
    differences = sizes * signs
    exact = exchange_p(differences)
    near = exchanging._saddle_point(sizes, np.abs(differences.sum(axis=1)))
    used = (exact > 20 * 2.0 ** (1 - n)) & (exact < 0.5)  # the last few choices of signs are steps, not a curve
    assert used.sum() > 80
    apart = np.abs(np.log(near[used] / exact[used]))
    assert np.quantile(apart, 0.95) < 0.1
    assert apart.mean() < 0.03


def test_where_the_exact_p_ends_the_saddle_point_goes_on_without_a_jump() -> None:
    """A tiny block more than can be counted changes next to nothing."""
    differences = np.random.default_rng(8).normal(0.5, 1, (40, EXACT_N))
    more = np.concatenate([differences, np.full((40, 1), 1e-9)], axis=1)
    assert np.abs(np.log(exchange_p(more) / exchange_p(differences))).max() < 0.08


def test_many_blocks_are_students_and_no_number_is_too_large() -> None:
    """With hundreds of normal differences both tests ask the same; thousands of choices of signs overflow nothing."""
    for n in (300, 1100):
        differences = np.random.default_rng(n).normal(0.08, 1, (30, n))
        assert np.log(exchange_p(differences)) == pytest.approx(np.log(p_of_t(differences)), rel=0.03, abs=0.03)


def test_equal_arms_have_a_p_below_every_level_at_most_as_often_as_it_says() -> None:
    """Whatever the noise: skewed sizes, one block in ten a hundred times as far apart, two modes."""
    random = np.random.default_rng(5)
    shape = (6_000, 9)
    noises = [
        random.exponential(1, shape) - random.exponential(1, shape),
        random.normal(0, 1, shape) * np.where(random.random(shape) < 0.1, 100, 1),
        modes(shape, seed=6),
    ]
    for noise in noises:
        p = exchange_p(noise)
        for level in (0.01, 0.05, 0.2):
            false = int((p <= level).sum())
            assert stats.binomtest(false, len(p), level, alternative="greater").pvalue > 1e-4


# What is made of a t test's p.


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
    found = float(confirmed(np.asarray(p), differences, level=ALPHA / family, alpha=ALPHA))
    assert found == pytest.approx(raised(p, differences.tolist(), family=family), rel=1e-9)
    assert p <= found <= max(p, float(exchange_p(differences))) * (1 + 1e-12)


def test_what_claims_nothing_is_left_as_it_is() -> None:
    differences = np.random.default_rng(2).normal(0.2, 1, (400, 12))
    p = p_of_t(differences)
    found = confirmed(p, differences, level=ALPHA, alpha=ALPHA)
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
    assert (confirmed(p, differences, level=ALPHA / 6, alpha=ALPHA) == p).all()
    assert (confirmed(p, differences, level=ALPHA, alpha=ALPHA) > p).any()


def test_a_single_p_keeps_its_shape() -> None:
    differences = np.array([1.0, 1.1, 0.9, 1.2, 1.0, -0.1, 1.0, 0.8])
    found = confirmed(np.asarray(0.001), differences, level=ALPHA, alpha=ALPHA)
    assert found.shape == ()
    assert 0.001 < float(found) < float(exchange_p(differences))


def test_a_p_of_zero_stays_the_smallest() -> None:
    """Two thousand blocks on one side: t's p is no number above 0, and no power of it may fail."""
    assert 0 <= float(confirmed(np.asarray(0.0), np.ones(2_000), level=ALPHA, alpha=ALPHA)) < 1e-300
    assert float(confirmed(np.asarray(0.0), np.ones(12), level=ALPHA, alpha=ALPHA)) == 0.0


@pytest.mark.parametrize(("n", "size"), [(10, 1), (12, 6), (20, 12)])
def test_two_modes_deceive_t_and_not_what_is_held_against_it(n: int, size: int) -> None:
    """Counted at the level of a family's hardest step, where thin tails tell most."""
    level = ALPHA / size
    differences = np.concatenate([modes((100_000, n), seed=seed) for seed in range(4)])
    p = p_of_t(differences)
    false = [int((each < level).sum()) for each in (p, confirmed(p, differences, level=level, alpha=ALPHA))]
    by_t, held = (stats.binomtest(each, len(p), level, alternative="greater").pvalue for each in false)
    assert by_t < 1e-4
    assert held > 0.01


@pytest.mark.parametrize(("n", "size", "lost"), [(6, 1, 0.03), (10, 1, 0.02), (10, 6, 0.045), (20, 6, 0.02)])
def test_normal_noise_hardly_loses_power(n: int, size: int, lost: float) -> None:
    level = ALPHA / size
    effect = sensitivity.shift(n - 1, alpha=level) / math.sqrt(n)  # found in four of five repeats
    differences = np.random.default_rng(n + size).normal(effect, 1, (10_000, n))
    p = p_of_t(differences)
    found = [float((each < level).mean()) for each in (p, confirmed(p, differences, level=level, alpha=ALPHA))]
    assert found[0] == pytest.approx(0.8, abs=0.02)
    assert found[0] - lost < found[1] <= found[0]


BOUND = math.log1p(0.02)


def inside_by_t(differences: Values) -> Values:
    return sensitivity.equivalence_many(t_tests.paired_many(np.zeros_like(differences), differences), bound=BOUND)


def inside(p: Values, differences: Values, *, size: int = 1) -> Values:
    return confirmed_inside(p, differences, bound=BOUND, level=ALPHA / size, alpha=ALPHA)


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
