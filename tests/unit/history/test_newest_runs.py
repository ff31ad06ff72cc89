"""The newest runs: what the second bad one says, what was made good in part, and what is planned no more."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.inference.series import noisy, series, stepped

from fairtrial.history import HistoryOptions, KnownChange, SeriesResult, examine
from fairtrial.history.gating import Gate, GateCheck, by_history
from fairtrial.history.series import Series
from fairtrial.history.text import text


def one(of: Series) -> SeriesResult:
    return examine([of], options=HistoryOptions()).series[0]


def gate(*every: Series, **options: object) -> Gate:
    return by_history(examine(every, options=HistoryOptions(**options)))  # type: ignore[arg-type]


def checked(values: np.ndarray, **options: object) -> GateCheck:
    (check,) = gate(series(values, margin=0.02), **options).checks
    return check


@pytest.mark.parametrize("good", [12, 20, 60])
@pytest.mark.parametrize("ratio", [0.9, 0.5])
def test_the_second_bad_run_in_a_row_fails_as_the_first_does(good: int, ratio: float) -> None:
    failed = {
        bad: sum(checked(stepped(good + bad, at=good, ratio=ratio, seed=seed)).status == "failed" for seed in range(10))
        for bad in (1, 2)
    }
    assert failed[1] == 10
    assert failed[2] >= 7


def test_a_bad_run_after_one_to_the_other_side_or_before_a_good_one_is_a_single_one() -> None:
    values = noisy(20, seed=3)
    values[-2:] *= 0.8, 1.0
    back = one(series(values))
    assert back.alarm is not None
    assert ([spike.index for spike in back.spikes], back.alarm.raised) == ([18], False)
    values[-1] *= 1.2
    other = one(series(values))
    assert other.alarm is not None
    assert ([spike.index for spike in other.spikes], other.alarm.raised) == ([18], True)


@pytest.mark.parametrize("bad", [1, 2])
def test_the_newest_bad_runs_are_no_spikes(bad: int) -> None:
    """Each spike is said not to be a change, which nobody knows yet."""
    values = stepped(20 + bad, at=20, ratio=0.5, seed=1)
    values[8] *= 0.8
    found = examine([series(values)], options=HistoryOptions())
    assert [spike.index for spike in found.series[0].spikes] == [8]
    shown = "\n".join(text(found))
    assert "spike at r08" in shown
    assert f"alarm at r{19 + bad}" in shown


def test_runs_of_the_newest_constant_are_no_spikes() -> None:
    assert one(series([*[3.0] * 15, 4.0, 4.0, 4.1])).spikes == ()


def recovered_in_part() -> np.ndarray:
    """A fifth is lost from r20 on, of which a fifth comes back from r40 on."""
    values = stepped(60, at=20, ratio=0.8, seed=1)
    values[40:] *= 1.04
    return values


def test_a_loss_that_was_made_good_in_part_fails_by_what_is_still_lost_until_it_is_acknowledged() -> None:
    check = checked(recovered_in_part())
    assert check.status == "failed"
    assert re.fullmatch(r"level changed at r20: −(19|20)\.\d %, now −1[67]\.\d %; worse", check.message)
    assert check.worse_by == pytest.approx(1 - 0.8 * 1.04, abs=0.01)
    for run in ("r20", "r40"):
        assert (
            checked(recovered_in_part(), known=(KnownChange(run=run, because="the new checksum"),)).status == "passed"
        )


def test_a_further_loss_is_as_large_as_from_before_the_first() -> None:
    """A recovery between them makes the first no smaller for the ledger."""
    values = stepped(80, at=20, ratio=0.8, seed=1)
    values[40:60] *= 1.06
    check = checked(values)
    assert check.status == "failed"
    assert check.worse_by == pytest.approx(0.2, abs=0.01)


def test_more_than_was_lost_before_is_no_loss() -> None:
    values = stepped(60, at=20, ratio=0.8, seed=1)
    values[40:] *= 1.5
    assert checked(values).status == "passed"


def test_what_the_newest_run_does_not_plan_is_skipped_and_in_no_family() -> None:
    kept, lost = series(noisy(20, seed=2)), series(stepped(20, at=19, ratio=0.5, seed=3), name="t")
    found = examine([kept, replace(lost, unplanned=True)], options=HistoryOptions())
    alone = examine([kept], options=HistoryOptions()).series[0]
    assert found.series[0] == alone
    assert (found.series[1].p_adjusted, found.series[1].alarm) == (None, None)
    check = by_history(found).checks[1]
    assert (check.status, check.message) == ("skipped", "the newest run does not plan it")
    assert by_history(found).passed
    assert not gate(replace(kept, unplanned=True)).passed, "nothing could be checked"
