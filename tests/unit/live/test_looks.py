"""What a cell has shown after each block: as the same blocks would have, had the run ended there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from scipy import stats
from support.records import planned, tiny_plan, trial_record

from fairtrial.live.looks import cell_looks
from fairtrial.record.models import TrialRecord

VALUES = ((100.0, 110.0), (90.0, 104.0), (103.0, 108.0), (98.0, 112.0), (95.0, 104.0), (101.0, 109.0), (97.0, 111.0))


def used(values: Sequence[tuple[float, float]] = VALUES) -> list[TrialRecord]:
    (metric,) = tiny_plan().metrics.primary
    return [
        trial_record(planned(block, arm)).model_copy(update={"scalars": {metric: value}})
        for block, pair in enumerate(values, start=1)
        for arm, value in zip("ab", pair, strict=True)
    ]


def test_each_look_is_the_interval_of_its_blocks_alone() -> None:
    (cell,) = cell_looks(tiny_plan(), used())
    logs = [math.log(arm / baseline) for baseline, arm in VALUES]
    assert cell.ratios == pytest.approx([arm / baseline for baseline, arm in VALUES])
    assert (cell.looks[0].low, cell.looks[0].high) == (None, None)  # one block shows no spread
    for n in (2, 3, 4):
        expected = stats.ttest_1samp(logs[:n], 0).confidence_interval(0.95)
        assert (cell.looks[n - 1].low, cell.looks[n - 1].high) == pytest.approx(
            (math.exp(expected.low), math.exp(expected.high))
        )


def test_of_a_design_that_may_be_looked_at_at_will_the_intervals_hold_together() -> None:
    plan = tiny_plan()
    plan = plan.model_copy(update={"design": plan.design.model_copy(update={"stop": "anytime", "min_blocks": 2})})
    (cell,) = cell_looks(plan, used())
    (alone,) = cell_looks(tiny_plan(), used())
    known = [look.blocks for look in cell.looks if look.high is not None]
    assert known == [5, 6, 7], "the first intervals reach everything"
    for look, single in zip(cell.looks[4:], alone.looks[4:], strict=True):
        assert look.high is not None
        assert single.high is not None
        assert look.high > single.high


def test_an_interval_that_no_number_holds_is_none_as_in_the_analysis() -> None:
    plan = tiny_plan()
    plan = plan.model_copy(update={"design": plan.design.model_copy(update={"confidence": 0.9999})})
    (cell,) = cell_looks(plan, used([(1.0, 1.0), (1.0, 1.3)]))
    assert (cell.looks[1].low, cell.looks[1].high) == (None, None)
    assert cell.looks[1].ratio == pytest.approx(math.sqrt(1.3))


def test_once_a_value_is_0_there_is_no_ratio_as_in_the_analysis() -> None:
    (cell,) = cell_looks(tiny_plan(), used([*VALUES[:2], (100.0, 0.0), VALUES[3]]))
    assert (cell.ratios, cell.looks) == ((), ())
    assert cell.without == "block 3 has a value that is not above 0"
