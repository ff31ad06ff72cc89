"""The quick exact test beside SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fairtrial.metrics.fidelity.binomial import density, p_value

CHANCES = (0.01, 0.04, 0.15, 0.43, 0.45, 0.5, 0.6, 0.75)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("of", [1, 2, 5, 15, 16, 17, 40])
def test_every_count_of_few_draws(of: int, chance: float) -> None:
    found = [p_value(count, of, chance) for count in range(of + 1)]
    assert found == pytest.approx([stats.binomtest(count, of, chance).pvalue for count in range(of + 1)], rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5_000_000), st.sampled_from(CHANCES), st.floats(-6, 6))
@example(9_844_216, 0.01, 2.6)
@example(100, 0.5, 0.0)
def test_many_draws_up_to_six_deviations_off(of: int, chance: float, deviations: float) -> None:
    count = round(of * chance + deviations * math.sqrt(of * chance * (1 - chance)))
    assume(0 <= count <= of)
    assert p_value(count, of, chance) == pytest.approx(stats.binomtest(count, of, chance).pvalue, rel=1e-10)


@pytest.mark.parametrize(("count", "of", "chance"), [(0, 1000, 0.45), (1000, 1000, 0.45), (900, 1000, 0.01)])
def test_counts_that_no_chance_gives(count: int, of: int, chance: float) -> None:
    found = p_value(count, of, chance)
    assert found == pytest.approx(stats.binomtest(count, of, chance).pvalue, rel=1e-9, abs=1e-300)
    assert found < 1e-100


def test_the_expected_count_is_certain() -> None:
    assert p_value(45, 100, 0.45) == 1.0
    assert p_value(1, 2, 0.5) == 1.0


@pytest.mark.parametrize(("chance", "only"), [(0.0, 0), (1.0, 10)])
def test_a_chance_of_none_or_all_leaves_one_count(chance: float, only: int) -> None:
    assert [p_value(count, 10, chance) for count in range(11)] == [float(count == only) for count in range(11)]


@pytest.mark.parametrize("of", [2, 7, 10, 31, 100, 1001])
def test_an_even_chance_is_the_same_from_both_ends(of: int) -> None:
    found = [p_value(count, of, 0.5) for count in range(of + 1)]
    assert found == pytest.approx(found[::-1], rel=1e-12)
    half = found[: of // 2 + 1]
    assert half == sorted(half), "the farther off, the less probable"
    assert max(found) <= 1


@given(st.integers(1, 60), st.floats(0.01, 0.99))
@settings(deadline=None)
def test_densities_add_up_to_one(of: int, chance: float) -> None:
    assert math.fsum(density(count, of, chance) for count in range(of + 1)) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("of", [10, 16, 1000, 10**6, 10**9])
@pytest.mark.parametrize("chance", [0.01, 0.43])
def test_densities_are_scipys(of: int, chance: float) -> None:
    spread = math.sqrt(of * chance * (1 - chance))
    counts = sorted({min(of, max(0, round(of * chance + step * spread))) for step in (-5, -1, 0, 1, 2.5, 5)})
    found = [density(count, of, chance) for count in counts]
    assert found == pytest.approx(stats.binom.pmf(counts, of, chance), rel=1e-10)


def test_a_faithful_drive_is_called_broken_as_often_as_the_level_says() -> None:
    """An exact test of a discrete count keeps its level and, with many draws, nearly uses it up."""
    counts = np.arange(2001)
    chances = stats.binom.pmf(counts, 2000, 0.15)
    found = np.array([p_value(int(count), 2000, 0.15) for count in counts])
    for level in (0.2, 0.05, 0.01):
        share = float(chances[found < level].sum())
        assert 0.7 * level < share <= level
