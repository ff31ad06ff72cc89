"""Exchanging arms within blocks: every choice of signs written out, SciPy, and known laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from support.inference.exchanged import every_sign
from support.inference.noises import modes, p_of_t

from fairtrial.analyse.inference import exchanging
from fairtrial.analyse.inference.exchanging import EXACT_N, exchange_p

counts = st.lists(st.integers(-6, 6), min_size=2, max_size=9)  # ties and zeros on purpose
reals = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=2, max_size=9)


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
