"""Where a level changes and how surely: against least squares written here, and against what permuting promises."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from fairtrial.history import segments

ALPHA = 0.05


def left(values: np.ndarray, step: np.ndarray | None) -> float:
    """Squares that the best autoregression leaves, with a step or without."""
    columns = [np.ones(len(values) - 1), *([] if step is None else [step[1:]])]
    design = np.column_stack(columns)

    def squares(slope: float) -> float:
        target = values[1:] - slope * values[:-1]
        rest = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        return float(rest @ rest)

    bounds = (segments.LEAST, segments.LARGEST_FITTED)
    inner = optimize.minimize_scalar(squares, bounds=bounds, method="bounded", options={"xatol": 1e-9}).fun
    return min(inner, *(squares(bound) for bound in bounds))


def best_change(values: np.ndarray) -> tuple[float, list[int]]:
    """Over all steps and all passing levels with at least three points to each segment."""
    n, shortest = len(values), segments.SHORTEST
    found = []
    for begin, end in itertools.combinations(range(n + 1), 2):
        if begin < shortest or end - begin < shortest or 0 < n - end < shortest:
            continue
        price = segments.EXCURSION_PRICE if end < n else 0.0
        step = ((np.arange(n) >= begin) & (np.arange(n) < end)).astype(float)
        gain = (n - 1) * math.log(left(values, None) / left(values, step)) - price
        found.append((gain, [begin, end] if end < n else [begin]))
    return max(found)


def stairs(*levels: float, each: int = 12, seed: int = 1) -> np.ndarray:
    """Normal noise of 1 around levels of `each` points."""
    return np.repeat(levels, each) + np.random.default_rng(seed).standard_normal(each * len(levels))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [0.0, 3.0])
def test_the_gain_is_the_largest_of_all_changes_by_least_squares(seed: int, size: float) -> None:
    values = np.random.default_rng(seed).standard_normal(14)
    values[5 : 5 + 4 + seed % 2 * 5] += size
    gain, starts = segments.gains(values[np.newaxis])
    expected, places = best_change(values)
    assert gain[0] == pytest.approx(expected, rel=1e-6)
    assert starts == places


def test_further_changes_gain_what_they_cost_less() -> None:
    """Up and down by turns: one change explains little, three explain all; the gain counts two further prices."""
    values = np.tile(np.repeat([0.0, 9.0], 10), 2) + 0.1 * np.random.default_rng(3).standard_normal(40)
    first, second, third = (np.arange(40) >= start for start in (10, 20, 30))
    design = np.column_stack([np.ones(39), *(step[1:] for step in (first, second, third))])
    gain, starts = segments.gains(values[np.newaxis])
    assert gain[0] > best_change(values)[0] + 2 * segments.FURTHER_PRICE
    assert gain[0] < 39 * math.log(left(values, None) / _residual(values[1:], design))
    assert set(starts) <= {10, 20, 30}


def _residual(values: np.ndarray, design: np.ndarray) -> float:
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(rest @ rest)


def test_a_passing_level_is_looked_for_up_to_its_longest() -> None:
    lengths = [set((ends - begins).tolist()) for begins, ends, price in segments._candidates(60) if price]
    assert lengths == [{length} for length in range(segments.SHORTEST, segments.LONGEST_EXCURSION + 1)]


@pytest.mark.parametrize("levels", [(0, 8), (0, 8, 0), (0, 8, 16), (0, 8, 0, 8), (0, 8, 16, 4), (0, 5, 1, 6, 1)])
def test_every_level_begins_where_it_begins(levels: tuple[float, ...]) -> None:
    p, starts = segments.segment(stairs(*levels), alpha=ALPHA)
    assert starts == [12 * number for number in range(1, len(levels))]
    assert p <= ALPHA


def test_no_change_is_told_without_a_p_below_the_level() -> None:
    values = stairs(0, 2, each=10, seed=3)
    p, starts = segments.segment(values, alpha=ALPHA)
    assert starts
    assert segments.segment(values, alpha=p / 2) == (p, [])


@pytest.mark.parametrize(("inner", "expected"), [(0.026, [10]), (0.024, [5, 10, 15])])
def test_a_piece_is_searched_at_its_share_of_the_level(
    inner: float, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty points that change at 10, pieces of ten that change at 5, smaller ones that do not."""
    answers = {20: (0.05, [10]), 10: (inner, [5])}
    monkeypatch.setattr(segments, "_test", lambda values: answers.get(len(values), (1.0, [])))
    assert segments.segment(np.zeros(20), alpha=0.05) == (0.05, expected)


def test_every_segment_has_three_points() -> None:
    values = np.array([0.0, 9, 0, 9, 9, 0, 0, 9, 0, 9, 0, 0, 9, 9, 0, 0, 0, 9, 9, 9, 9, 9, 0, 0])
    _, found = segments.segment(values, alpha=1.0)
    assert len(found) > 2
    assert all(b - a >= segments.SHORTEST for a, b in itertools.pairwise([0, *found, len(values)]))


def test_too_few_points_are_not_split() -> None:
    step = np.array([0.1, 0, 0.2, 0, 9, 9.1, 9, 9.2])
    assert segments.segment(step, alpha=0.5)[1] == [4]
    assert segments.segment(step[1:], alpha=0.5) == (1.0, [])


def test_a_piece_that_is_constant_is_left_alone() -> None:
    assert segments.segment(np.repeat([5.0, 6.0], 12), alpha=ALPHA) == (
        pytest.approx(segments.SMALLEST_P, abs=0.01),
        [12],
    )


@pytest.mark.parametrize("values", [[5.0, *[3.0] * n] for n in (7, 9, 11, 29)] + [[*np.log([0.1] + [0.3] * 9)]])
def test_a_first_point_that_differs_from_all_others_is_no_level(values: list[float]) -> None:
    assert segments.segment(np.array(values), alpha=ALPHA) == (1.0, [])
    assert segments.segment(np.array(values[::-1]), alpha=ALPHA) == (1.0, [])


def test_a_series_that_the_autoregression_fits_exactly_gains_nothing() -> None:
    assert segments.gains(np.array([[5.0, *[0.0] * 9]]))[0].tolist() == [0.0]


def test_scale_and_level_change_nothing() -> None:
    values = stairs(0, 2, 1, seed=3)
    (p, starts), (other, places) = (segments.segment(each, alpha=0.5) for each in (values, 250 * values - 1e4))
    assert (p, starts) == (pytest.approx(other), places)


def test_the_same_series_gives_the_same_p() -> None:
    assert segments._test(stairs(0, 1)) == segments._test(stairs(0, 1))


def test_a_p_from_the_tail_agrees_with_the_share_of_thirty_times_as_many_permutations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = stairs(0, 3.5, each=12, seed=2)
    p = segments._test(values)[0]
    assert p < segments.FEWEST_BEYOND / segments.PERMUTATIONS
    monkeypatch.setattr(segments, "PERMUTATIONS", 30 * segments.PERMUTATIONS)
    share = segments._test(values)[0]
    assert share * segments.PERMUTATIONS > segments.FEWEST_BEYOND
    assert share / 2 < p < 2 * share


def test_a_hopeless_series_is_let_go_after_the_first_permutations() -> None:
    p, _ = segments._test(np.random.default_rng(4).standard_normal(20))
    assert p > segments.HOPELESS
    assert p * (1 + segments.FIRST) == pytest.approx(round(p * (1 + segments.FIRST)))


def test_reordered_series_have_the_residuals_of_the_series() -> None:
    values = stairs(0, seed=5, each=40)
    values -= values.mean()
    slope = segments._autocorrelation(values)
    for row in segments._reordered(values)[:3]:
        residuals = row - slope * np.concatenate([[0.0], row[:-1]])
        own = values - slope * np.concatenate([[0.0], values[:-1]])
        for each in (residuals, own):
            each[0] *= math.sqrt(1 - slope**2)
        assert np.sort(residuals) == pytest.approx(np.sort(own - own.mean()))


def test_the_autocorrelation_has_no_bias_and_stays_in_its_range() -> None:
    generator = np.random.default_rng(6)
    found = [segments._autocorrelation(generator.standard_normal(20)) for _ in range(400)]
    assert np.mean(found) == pytest.approx(0, abs=0.03)  # without the correction: -0.05
    assert segments._autocorrelation(np.tile([0.0, 1.0], 10)) == segments.LEAST
    assert segments._autocorrelation(np.arange(20.0)) == segments.LARGEST_PERMUTED


def test_spikes_are_pulled_in_and_steps_are_not() -> None:
    values = stairs(0, 3)
    assert segments._pulled_in(values).std() == pytest.approx(values.std())
    values[5] = 1000
    assert np.abs(segments._pulled_in(values)).max() < 10
