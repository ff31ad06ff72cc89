"""What a trial's values become: arms in time order, and their descriptive summaries."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.inference.analysis_cases import planned, trial

from fairtrial.analyse.inference.comparing import arm_pair, comparable
from fairtrial.analyse.measured import ArmValues, measured, summary
from fairtrial.record.models import TrialRecord


def run(block: int, value: float | None) -> TrialRecord:
    scalars = {} if value is None else {"tpm": value}
    return trial(planned("all", "base", block, position=2 * block), levels={"kernel": "base"}, scalars=scalars)


def arm(*values: float | None) -> ArmValues:
    return measured([run(block, value) for block, value in enumerate(values, start=1)], metric="tpm", arm="base")


@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=30), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_summary_is_the_standard_librarys_and_scipys(values: list[float], confidence: float) -> None:
    found = summary(arm(*values), confidence=confidence)
    assert found is not None
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.sd == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert found.median == pytest.approx(statistics.median(values))
    assert found.values == tuple(values)
    if found.sd:
        low, high = stats.t.interval(confidence, len(values) - 1, found.mean, found.sd / math.sqrt(len(values)))
        assert (found.low, found.high) == pytest.approx((low, high))


def test_one_value_has_a_mean_and_no_spread() -> None:
    found = summary(arm(7.0), confidence=0.95)
    assert found is not None
    assert (found.n, found.mean, found.sd, found.low, found.high) == (1, 7.0, None, None, None)


def test_no_value_has_no_summary() -> None:
    assert summary(arm(None, math.nan), confidence=0.95) is None


def test_trials_without_a_finite_value_are_counted() -> None:
    found = arm(1.0, None, math.inf, math.nan, 5.0)
    assert (found.values.tolist(), found.blocks, found.positions, found.absent) == ([1.0, 5.0], (1, 5), (2, 10), 3)


@pytest.mark.parametrize(("values", "positive"), [((1.0, 2.0), True), ((1.0, 0.0), False), ((-1.0,), False)])
def test_only_positive_values_have_logarithms(values: tuple[float, ...], *, positive: bool) -> None:
    assert arm(*values).positive is positive


def test_pairs_are_of_the_same_block_whatever_the_order_of_the_trials() -> None:
    first, second = arm(1.0, 2.0, None, 4.0), arm(10.0, None, 30.0, 40.0)
    turned = ArmValues(
        arm="b", values=second.values[::-1], blocks=second.blocks[::-1], positions=second.positions[::-1], absent=1
    )
    for other in (second, turned):
        found = arm_pair(first, other, paired=True)
        assert (found.baseline.tolist(), found.arm.tolist()) == ([1.0, 4.0], [10.0, 40.0])
    unpaired = arm_pair(first, turned, paired=False)
    assert (unpaired.baseline.tolist(), unpaired.arm.tolist()) == ([1.0, 2.0, 4.0], [40.0, 30.0, 10.0])


def test_arms_without_a_common_block_compare_only_unpaired() -> None:
    first, second = arm(1.0, None), arm(None, 2.0)
    assert not comparable(first, second, paired=True)
    assert comparable(first, second, paired=False)
    assert not comparable(first, arm(None), paired=False)
