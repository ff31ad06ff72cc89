"""Shift curves against quantiles of raw values, a bootstrap written out in loops, and known shifts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairtrial.analyse.inference import shift
from fairtrial.analyse.inference.shift import ArmHistograms, Resampling, ShiftCurve
from fairtrial.metrics.latency import Distribution
from fairtrial.metrics.latency.percentiles import RESOLUTION

HOW = Resampling(paired=True, confidence=0.95, seed=11, replicates=400)
Trials = list[np.ndarray]


def classed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    bounds, counts = np.unique(values, return_counts=True)
    return bounds, counts


def curve(baseline: Trials, arm: Trials, *, how: Resampling = HOW) -> ShiftCurve:
    of = shift.observed([classed(each) for each in baseline], [classed(each) for each in arm])
    return shift.curve(of, cell="all", arms=("a", "b"), how=how)


def trials(n: int, *, factor: float = 1.0, seed: int = 1, size: int = 2000) -> Trials:
    random = np.random.default_rng(seed)
    return [
        np.round(random.lognormal(math.log(2e6 * factor) + random.normal(0, 0.05), 0.5, size)).astype(np.int64)
        for _ in range(n)
    ]


def test_points_are_quantiles_of_all_raw_values_together() -> None:
    base, arm = trials(6), trials(6, factor=1.3, seed=2)
    found = curve(base, arm)
    for point in found.points:
        for values, ours in ((base, point.baseline_ns), (arm, point.arm_ns)):
            ordered = np.sort(np.concatenate(values))
            assert ours == pytest.approx(ordered[max(1, math.floor(point.quantile * len(ordered) + 0.5)) - 1])
        assert point.ratio == pytest.approx(point.arm_ns / point.baseline_ns)


def test_a_point_is_what_the_merged_histogram_gives() -> None:
    (bounds, counts) = classed(np.concatenate(trials(5)))
    merged = Distribution(lowest_ns=bounds, highest_ns=bounds, counts=counts)
    for point in curve(trials(5), trials(5, seed=3)).points:
        assert point.baseline_ns == pytest.approx(merged.percentile_ns(100 * point.quantile))


@pytest.mark.parametrize("paired", [True, False])
def test_the_band_is_that_of_a_bootstrap_written_out_in_loops(paired: bool) -> None:  # noqa: FBT001 - pytest passes it by name
    base, arm = trials(6, size=400), trials(6, size=400, seed=2)
    how = Resampling(paired=paired, confidence=0.95, seed=5, replicates=60)
    found = curve(base, arm, how=how)
    random = np.random.default_rng(5)
    chosen = random.integers(0, 6, size=(60, 6))
    others = chosen if paired else random.integers(0, 6, size=(60, 6))

    def logs(values: Trials, picked: np.ndarray) -> np.ndarray:
        ordered = np.sort(np.concatenate([values[at] for at in picked]))
        ranks = [max(1, math.floor(point.quantile * len(ordered) + 0.5)) for point in found.points]
        return np.log(ordered[np.array(ranks) - 1])

    estimate = np.array([math.log(point.ratio) for point in found.points])
    deviations = np.array([logs(arm, b) - logs(base, a) for a, b in zip(chosen, others, strict=True)]) - estimate
    error = np.sqrt((deviations**2).mean(axis=0))
    largest = np.quantile(np.abs(deviations / error).max(axis=1), 0.95)
    critical = stats.t.ppf(stats.norm.cdf(largest), 5)
    assert found.critical == pytest.approx(critical)
    reach = critical * error * math.sqrt(6 / 5) - math.log1p(-RESOLUTION)
    for point, low, high in zip(found.points, estimate - reach, estimate + reach, strict=True):
        assert (point.low, point.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_a_shift_of_every_quantile_is_found_and_a_longer_tail_only_in_the_tail() -> None:
    base = trials(10)
    paired = [np.round(each * 1.3).astype(np.int64) for each in base]
    everywhere = curve(base, paired)
    assert len(everywhere.excludes_one) == len(everywhere.points)
    slow = [each.copy() for each in base]
    for each in slow:
        each[np.argsort(each)[-60:]] *= 3  # the slowest 3 %
    tail = curve(base, slow)
    assert tail.excludes_one
    assert min(tail.excludes_one) >= 0.97


def test_equal_arms_touch_one_everywhere_and_no_band_is_exact() -> None:
    found = curve(trials(8), trials(8))
    assert found.excludes_one == ()
    for point in found.points:
        assert point.low is not None
        assert point.high is not None
        assert point.low < 1 - RESOLUTION / 2 < 1 + RESOLUTION / 2 < point.high


def test_few_blocks_have_points_and_no_band() -> None:
    found = curve(trials(4), trials(4, seed=2))
    assert found.points
    assert (found.critical, found.replicates) == (None, 0)
    assert all(point.low is None for point in found.points)


def test_quantiles_with_few_observations_beyond_are_left_out() -> None:
    of = ArmHistograms(highest_ns=np.array([5]), baseline=np.array([[9_999.0]]), arm=np.array([[50_000.0]]))
    assert max(shift.quantiles_of(of)) == 0.98
    for n, largest in ((500, 0.8), (1_000, 0.9), (2_000, 0.95), (10_000, 0.99), (100_000, 0.999), (999, 0.85)):
        counts = np.array([[float(n)]])
        assert max(shift.quantiles_of(ArmHistograms(np.array([5]), baseline=counts, arm=counts))) == largest
    assert len(curve([np.array([5] * 50)] * 5, [np.array([6] * 50)] * 5).points) < len(shift.QUANTILES)


def test_the_same_seed_gives_the_same_band_to_the_last_digit() -> None:
    assert curve(trials(6), trials(6, seed=2)) == curve(trials(6), trials(6, seed=2))


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([2, 10, 1000]))
def test_ratios_do_not_depend_on_the_unit(seed: int, factor: int) -> None:
    base, arm = trials(5, size=300, seed=seed), trials(5, size=300, seed=seed + 1)
    how = Resampling(paired=True, confidence=0.95, seed=1, replicates=40)
    one = curve(base, arm, how=how)
    other = curve([each * factor for each in base], [each * factor for each in arm], how=how)
    for a, b in zip(one.points, other.points, strict=True):
        assert (a.ratio, a.low, a.high) == pytest.approx((b.ratio, b.low, b.high))


@pytest.mark.parametrize("n", [6, 8, 10])
@pytest.mark.parametrize("moved", [4000, 5500, 6500, 8000, 9500])
def test_quantiles_at_the_edge_of_a_class_give_a_band_of_numbers_or_none(n: int, moved: int) -> None:
    """Each block moves its own quantile over the edge of a class: hardly any replicate moves one, and some do."""
    counts = np.diff(np.concatenate([[0], np.linspace(0.025, 0.975, 20), [1]])) * 100_000
    baseline = np.tile(counts, (n, 1))
    arm = baseline.copy()
    for block in range(min(n, 10)):
        arm[block, 2 * block + 1 : 2 * block + 3] += (-moved, moved)
    of = ArmHistograms(highest_ns=np.arange(1000, 1000 + 21 * 500, 500), baseline=baseline, arm=arm)
    found = shift.curve(of, cell="all", arms=("a", "b"), how=Resampling(paired=True, confidence=0.95, seed=1))
    for point in found.points:
        assert (point.low is None) == (point.high is None) == (found.critical is None)
        if point.low is not None and point.high is not None:
            assert 0 < point.low <= point.ratio <= point.high < math.inf
    assert all(next(p for p in found.points if p.quantile == each).ratio != 1 for each in found.excludes_one)
