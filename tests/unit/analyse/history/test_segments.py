"""Segmentation and its penalty: against an exhaustive search written here, and against what the penalty promises."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.analyse.history import segments
from fairtrial.analyse.history.noise import Noise, autoregressive, noise, units


def cost(values: np.ndarray) -> float:
    ordered = sorted(values.tolist())
    middle = ordered[len(ordered) // 2]  # any median has the same sum of absolute deviations
    return math.fsum(abs(value - middle) for value in ordered)


def best_segmentation(values: np.ndarray, penalty: float) -> tuple[float, list[int]]:
    """Optimal partitioning (Jackson et al. 2005), without pruning: the least cost and where segments begin."""
    n = len(values)
    least: list[float] = [-penalty] + [math.inf] * n
    came_from = [0] * (n + 1)
    for end in range(segments.SHORTEST, n + 1):
        for start in range(end - segments.SHORTEST + 1):
            total = least[start] + cost(values[start:end]) + penalty
            if total < least[end]:
                least[end], came_from[end] = total, start
    starts, end = [], n
    while end:
        end = came_from[end]
        starts.append(end)
    return least[n], sorted(starts)[1:]


def total(values: np.ndarray, starts: list[int], penalty: float) -> float:
    bounds = [0, *starts, len(values)]
    return sum(cost(values[a:b]) for a, b in itertools.pairwise(bounds)) + penalty * len(starts)


@pytest.mark.parametrize("seed", range(12))
def test_no_segmentation_costs_less_than_the_one_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    levels = np.repeat(generator.normal(0, 3, 4), generator.integers(3, 12, 4))
    values = levels + generator.normal(size=len(levels))
    penalty = float(generator.uniform(2, 8))
    found = segments.segment(values, penalty_units=penalty, unit=1.0)
    least, starts = best_segmentation(values, penalty)
    assert total(values, found, penalty) == pytest.approx(least)
    assert found == starts


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-100, 100), min_size=7, max_size=18), st.floats(0.5, 60))
def test_the_gain_is_the_penalty_beyond_which_nothing_is_found(raw: list[float], penalty: float) -> None:
    """With up to two change points, which is all that so few points allow at segments of three and more."""
    values = np.array(raw)
    gain = float(segments.gains(values[np.newaxis])[0])
    if len(values) < 4 * segments.SHORTEST and abs(gain - penalty) > 1e-6:
        assert bool(best_segmentation(values, penalty)[1]) == (gain > penalty)


def test_every_segment_has_three_points() -> None:
    values = np.array([0.0, 9, 0, 9, 9, 0, 0, 9, 0, 9, 0, 0, 9, 9, 0])
    found = segments.segment(values, penalty_units=0.1, unit=1.0)
    assert all(b - a >= segments.SHORTEST for a, b in itertools.pairwise([0, *found, len(values)]))


def test_too_few_points_have_one_segment() -> None:
    assert segments.segment(np.array([0.0, 0, 0, 9, 9]), penalty_units=0.1, unit=1.0) == []


def test_scale_and_level_change_nothing() -> None:
    values = np.random.default_rng(3).normal(size=30)
    first, second = (noise(each) for each in (values, 250 * values - 1e4))
    assert first is not None
    assert second is not None
    assert second.unit == pytest.approx(250 * first.unit)
    assert segments.p_value(values, first) == pytest.approx(segments.p_value(250 * values - 1e4, second))


def test_the_penalty_is_the_gain_whose_p_is_alpha() -> None:
    quiet = Noise(unit=1.0, autocorrelation=0.2, sd=1.0)
    for alpha in (0.01, 0.05, 0.09):
        penalty = segments.penalty(24, quiet, alpha=alpha)
        knee, excess = segments._tail(segments._simulated(*segments._like(24, quiet)))
        assert segments.TAIL * math.exp(-(penalty - knee) / excess) == pytest.approx(alpha)


def test_the_exponential_tail_agrees_with_fresh_simulations() -> None:
    fresh = autoregressive(autocorrelation=0.2, shape=(2000, 24), generator=np.random.default_rng(99))
    gains = segments.gains(fresh) / units(fresh)
    penalty = segments.penalty(24, Noise(unit=1.0, autocorrelation=0.2, sd=1.0), alpha=0.02)
    assert 0.008 < (gains > penalty).mean() < 0.04


def test_more_like_neighbours_ask_for_more_gain() -> None:
    penalties = [
        segments.penalty(24, Noise(unit=1.0, autocorrelation=each, sd=1.0), alpha=0.05) for each in (0.0, 0.3, 0.6)
    ]
    assert penalties == sorted(penalties)


def test_simulations_are_the_same_every_time() -> None:
    first = segments._simulated(15, 1).copy()
    segments._simulated.cache_clear()
    assert (segments._simulated(15, 1) == first).all()
