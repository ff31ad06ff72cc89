"""Time left: the plan's guess at first, then what trials of the same cell and arm really took."""

from collections import Counter

from support.records import planned, trial_record

from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.run.pace import Pace


def left_s(pace: Pace, *owed: PlannedTrial) -> float:
    return pace.left_s(Counter((trial.cell, trial.arm) for trial in owed))


def took(arm: str, seconds: float, *, prepare: float = 0.0, valid: bool = True) -> TrialRecord:
    record = trial_record(planned(1, arm), valid=valid)
    return record.model_copy(
        update={"finished": f"2026-01-01T00:00:{seconds:06.3f}Z", "phases_s": {"prepare": prepare, "drive": 1.0}}
    )


def test_before_any_trial_the_plan_is_believed() -> None:
    assert left_s(Pace(expected_s=7.0), planned(1, "a"), planned(1, "b")) == 14.0


def test_trials_take_what_their_like_took_and_new_ones_what_any_took() -> None:
    pace = Pace(expected_s=7.0)
    pace.note(took("a", 10.0))
    pace.note(took("a", 20.0))
    assert left_s(pace, planned(2, "a")) == 15.0
    assert left_s(pace, planned(2, "b")) == 15.0
    pace.note(took("b", 30.0))
    assert left_s(pace, planned(2, "b"), planned(2, "a")) == 45.0
    assert left_s(pace) == 0.0


def test_making_data_happens_once_and_is_left_out() -> None:
    pace = Pace(expected_s=7.0)
    pace.note(took("a", 50.0, prepare=48.0))
    assert left_s(pace, planned(2, "a")) == 2.0


def test_an_invalid_trial_says_nothing_about_the_others() -> None:
    pace = Pace(expected_s=7.0)
    pace.note(took("a", 0.5, valid=False))
    assert left_s(pace, planned(2, "a")) == 7.0


def test_a_trial_that_made_no_data_took_all_of_its_time() -> None:
    pace = Pace(expected_s=7.0)
    pace.note(took("a", 5.0).model_copy(update={"phases_s": {"drive": 1.0}}))
    assert left_s(pace, planned(2, "a")) == 5.0


def test_clocks_that_disagree_about_making_data_do_not_make_time_negative() -> None:
    """Phases are of the monotonic clock, a trial's beginning and end of the calendar, which somebody may set back."""
    pace = Pace(expected_s=7.0)
    pace.note(took("a", 5.0, prepare=6.0))
    assert left_s(pace, planned(2, "a")) == 0.0


def test_arms_and_cells_of_another_name_are_not_alike() -> None:
    pace = Pace(expected_s=7.0)
    pace.note(took("a", 10.0))
    pace.note(took("b", 30.0))
    other = planned(2, "a", cell="other")
    assert left_s(pace, other) == 20.0, "as any trial did"
    assert left_s(pace, planned(2, "a"), other, planned(2, "b")) == 10.0 + 20.0 + 30.0


def test_a_place_that_opens_for_each_trial_takes_its_time_each_time_and_one_that_opened_once_does_not() -> None:
    pace = Pace(expected_s=90.0)
    pace.note_opened(60.0)
    assert left_s(pace, planned(1, "a")) == 90.0, "as planned"
    pace.note_run(took("a", 2.0))
    assert left_s(pace, planned(2, "a")) == 2.0
    pace.note_opened(80.0)
    assert left_s(pace, planned(2, "a"), planned(3, "a")) == 164.0
    pace.note_run(took("a", 2.0))
    pace.note_opened(40.0)
    assert left_s(pace, planned(3, "a")) == 62.0


def test_trials_of_before_a_resumption_open_nothing_here() -> None:
    pace = Pace(expected_s=90.0)
    pace.note(took("a", 2.0))
    pace.note_opened(60.0)
    assert left_s(pace, planned(2, "a")) == 2.0
