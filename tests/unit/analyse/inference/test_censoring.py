"""Values known by histogram class: whatever lies within the classes, the widened test holds for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.inference import censoring, sensitivity, t_tests
from fairtrial.analyse.models import Comparison
from fairtrial.metrics.latency.percentiles import RESOLUTION
from fairtrial.workloads.engine import search_scalars

BASE, WIDE = 1_000_447.0, 2_001_919.0  # upper bounds of classes
seeds = st.integers(0, 100_000)


def within(values: list[float], *, seed: int) -> np.ndarray:
    """True values somewhere in the classes, as often at an end as between."""
    random = np.random.default_rng(seed)
    share = random.choice([0.0, 1.0, random.random()], size=len(values))
    return np.array(values) * (1 - RESOLUTION * share)


@given(seeds, st.lists(st.sampled_from([BASE, BASE * (1 + RESOLUTION), WIDE]), min_size=6, max_size=12), st.booleans())
def test_no_true_values_give_a_smaller_p_or_leave_the_interval(seed: int, values: list[float], paired: bool) -> None:  # noqa: FBT001 - hypothesis passes it by name
    other = list(np.random.default_rng(seed).permutation(values))
    ours = (censoring.paired if paired else censoring.welch)(
        censoring.on_logs(np.array(values), resolution=RESOLUTION),
        censoring.on_logs(np.array(other), resolution=RESOLUTION),
        confidence=0.95,
    )
    theirs = (t_tests.paired if paired else t_tests.welch)(
        np.log(within(values, seed=seed)), np.log(within(other, seed=seed + 1)), confidence=0.95
    )
    assert ours is not None
    if theirs is None:
        return
    if paired:  # Welch's degrees of freedom move with the classes, by little
        assert ours.low <= theirs.low + 1e-12
        assert ours.high >= theirs.high - 1e-12
        assert ours.p >= theirs.p - 1e-12
        bound = math.log1p(0.02)
        assert sensitivity.equivalence(ours, bound=bound) >= sensitivity.equivalence(theirs, bound=bound) - 1e-12
    assert ours.low - 1e-12 <= theirs.estimate <= ours.high + 1e-12


def test_the_largest_spread_of_errors_is_half_of_them_at_either_end() -> None:
    errors = censoring.CensoredValues(values=np.zeros(10), widths=np.full(10, 0.3))
    ends = np.repeat([0.0, 0.3], 5)
    assert errors.error_sd == pytest.approx(np.std(ends, ddof=1))


def test_constant_arms_give_the_figures_worked_out_by_hand() -> None:
    n, width = 10, -math.log1p(-RESOLUTION)
    test = censoring.paired(
        censoring.on_logs(np.full(n, BASE), resolution=RESOLUTION),
        censoring.on_logs(np.full(n, WIDE), resolution=RESOLUTION),
        confidence=0.95,
    )
    assert test is not None
    error = width * math.sqrt(n / (n - 1)) / math.sqrt(n)  # two classes: half of 2 widths, largest deviation
    estimate = math.log(WIDE / BASE)
    reach = stats.t.ppf(0.975, n - 1) * error
    assert (test.low, test.high) == pytest.approx((estimate - width - reach, estimate + width + reach))
    assert test.p == pytest.approx(2 * stats.t.sf((estimate - width) / error, n - 1))


def compared(base: list[float], arm: list[float], *, order: str = "randomised_blocks") -> Comparison:
    case = Case({"kernel": ["a", "b"]}, blocks=len(base), roles={"primary": ["latency_ns_p99"]}, order=order)
    given_values = {"a": base, "b": arm}
    trials = case.trials(latency_ns_p99=lambda levels, block: given_values[levels["kernel"]][block - 1])
    (cell,) = analyse(case.plan(), trials).cells
    (found,) = cell.comparisons["latency_ns_p99"]
    return found


@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
def test_arms_in_one_class_are_equivalent_and_nothing_is_called_exact(order: str) -> None:
    found = compared([BASE] * 10, [BASE] * 10, order=order)
    assert (found.verdict, found.p, found.ratio.estimate) == ("equivalent", 1.0, 1.0)
    assert found.ratio.low is not None
    assert found.ratio.low < 1 - RESOLUTION < 1 + RESOLUTION < found.ratio.high
    assert [doubt.code for doubt in found.doubts] == ["interval_censored"]
    assert found.method.endswith("values known by class")


def test_arms_in_classes_far_apart_differ_and_in_neighbouring_ones_do_not() -> None:
    assert compared([BASE] * 8, [WIDE] * 8).verdict == "slower"
    near = compared([BASE] * 8, [BASE * (1 + RESOLUTION)] * 8)
    assert near.p == pytest.approx(1.0)
    assert near.difference.low is not None
    assert near.difference.high is not None
    assert near.difference.low < 0 < near.difference.high


def test_capacities_that_one_rate_of_a_search_stands_for_are_neither_equivalent_nor_different() -> None:
    case = Case({"kernel": ["a", "b"]}, blocks=10, roles={"primary": ["highest_rate_per_s"]})
    metrics = case.plan().metrics.model_copy(update={"definitions": search_scalars.definitions(0.05)})
    plan = case.plan().model_copy(update={"metrics": metrics})

    def found(arm: float) -> Comparison:
        rates = {"a": 1000.0, "b": arm}
        trials = case.trials(highest_rate_per_s=lambda levels, _block: rates[levels["kernel"]])
        (comparison,) = analyse(plan, trials).cells[0].comparisons["highest_rate_per_s"]
        return comparison

    assert [found(rate).verdict for rate in (1000.0, 1044.3, 1200.0)] == ["undecided", "undecided", "faster"]
    assert "10 values of a fall into 1 classes of searched rates" in found(1000.0).doubts[0].message


def test_the_true_values_of_a_lower_bound_lie_above_it_and_those_of_an_upper_bound_below() -> None:
    capacities = [(np.full(10, low), np.full(10, 1.1 * low)) for low in (100.0, 200.0)]
    definitions = search_scalars.definitions(0.1)
    for scale, lowest, highest in (
        (censoring.on_units, 90.0, 120.0),  # 200 − 110 and 220 − 100
        (censoring.on_logs, math.log(200 / 110), math.log(220 / 100)),
    ):
        for bound, name in enumerate(("highest_rate_per_s", "lowest_rate_missed_per_s")):
            arms = [scale(each[bound], resolution=definitions[name].resolution) for each in capacities]
            for test in (
                censoring.paired(arms[0], arms[1], confidence=0.95),
                censoring.welch(arms[0], arms[1], confidence=0.95),
            ):
                assert test is not None
                ends = test.estimate - test.below, test.estimate + test.above
                assert ends == pytest.approx((lowest, highest)), (name, scale.__name__)
                assert test.low < lowest < highest < test.high


def test_spread_over_many_classes_is_left_to_the_plain_test() -> None:
    random = np.random.default_rng(3)
    values = [list(BASE * np.exp(random.normal(0, 0.05, 10))) for _ in range(2)]
    found = compared(*values)
    plain = stats.ttest_rel(np.log(values[1]), np.log(values[0]))
    assert found.p == pytest.approx(plain.pvalue)
    assert found.doubts == ()


def test_a_single_block_is_no_test_in_any_class() -> None:
    found = compared([BASE], [BASE])
    assert found.ratio.low is None
    assert found.p == 1
