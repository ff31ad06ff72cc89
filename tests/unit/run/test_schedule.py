"""The schedule as a story: trials in order, a block lost, replaced, a kill in between, the limit reached."""

from support.inference.schedules import finished, replacement
from support.records import planned, tiny_plan

from fairtrial.record.events import Event
from fairtrial.record.models import BlockAdded, BlockVoided, CellLook, LookTaken, TrialFinished
from fairtrial.run.schedule import Schedule


def schedule() -> Schedule:
    return Schedule(plan=tiny_plan(), replacement=replacement)


def run_through(subject: Schedule, *, invalid: set[str]) -> tuple[list[str], list[Event]]:
    """Runs to the end as the loop does; returns trial ids in order, and every event."""
    order: list[str] = []
    events: list[Event] = []
    while (trial := subject.next_trial()) is not None:
        order.append(trial.id)
        event: Event = finished(trial.id, valid=trial.id not in invalid)
        events.append(event)
        subject.apply(event)
        while owed := subject.repairs():
            for event in owed:
                events.append(event)
                subject.apply(event)
    return order, events


def test_trials_run_in_planned_order() -> None:
    order, _ = run_through(schedule(), invalid=set())
    assert order == ["all.b01.a", "all.b01.b", "all.b02.b", "all.b02.a"]


def test_one_arm_runs_after_the_other_as_planned_and_a_replacement_after_both() -> None:
    plan = tiny_plan()
    design = plan.design.model_copy(update={"order": "sequential", "blocks": 3})
    trials = [
        planned(block, arm).model_copy(update={"position": 3 * index + block - 1})
        for index, arm in enumerate("ab")
        for block in (1, 2, 3)
    ]
    subject = Schedule(plan=plan.model_copy(update={"design": design, "trials": trials}), replacement=replacement)
    assert subject.queue == subject.owed() == trials
    order, _ = run_through(subject, invalid={"all.b02.a"})
    assert order == [f"all.b0{block}" for block in ("1.a", "2.a", "3.a", "1.b", "3.b", "4.a", "4.b")]


def test_an_invalid_trial_voids_its_block_and_a_new_block_joins_the_next_round() -> None:
    order, events = run_through(schedule(), invalid={"all.b01.a"})
    assert order == ["all.b01.a", "all.b02.b", "all.b02.a", "all.b03.a", "all.b03.b"]
    voided = [event for event in events if isinstance(event, BlockVoided)]
    added = [event for event in events if isinstance(event, BlockAdded)]
    assert [(event.cell, event.block) for event in voided] == [("all", 1)]
    assert [(event.block, event.replaces, event.round) for event in added] == [(3, 1, 2)]
    assert [trial.position for trial in added[0].trials] == [4, 5]


def test_a_block_lost_in_the_last_round_gets_a_round_of_its_own() -> None:
    order, events = run_through(schedule(), invalid={"all.b02.a"})
    assert order[-2:] == ["all.b03.a", "all.b03.b"]
    assert next(event for event in events if isinstance(event, BlockAdded)).round == 3


def test_beyond_the_limit_a_lost_block_is_not_replaced() -> None:
    subject = schedule()
    _, events = run_through(subject, invalid={"all.b01.a", "all.b02.b"})
    assert len([event for event in events if isinstance(event, BlockVoided)]) == 2
    assert subject.losses("all") == 2 > subject.plan.design.voided_limit
    assert len([event for event in events if isinstance(event, BlockAdded)]) == 1


def test_any_cut_of_the_journal_resumes_to_the_same_trials() -> None:
    whole, events = run_through(schedule(), invalid={"all.b01.b"})
    for cut in range(len(events) + 1):
        subject = schedule()
        subject.replay(events[:cut])
        while owed := subject.repairs():
            for event in owed:
                subject.apply(event)
        done = [event.trial for event in events[:cut] if isinstance(event, TrialFinished)]
        rest, _ = run_through(subject, invalid={"all.b01.b"})
        assert done + rest == whole


def test_a_round_is_complete_when_nothing_of_it_is_left() -> None:
    subject = schedule()
    assert subject.complete_rounds() == 0
    subject.apply(finished("all.b01.a"))
    assert subject.complete_rounds() == 0
    subject.apply(finished("all.b01.b"))
    assert subject.complete_rounds() == 1
    subject.apply(BlockVoided(cell="all", block=2, reason="broken on purpose"))
    assert subject.complete_rounds() == 2


def test_what_a_stopping_rule_decided_is_known_again_after_a_kill() -> None:
    subject = schedule()
    subject.replay([finished("all.b01.a"), finished("all.b01.b"), LookTaken(round=1, decision="continue")])
    assert (subject.looked_at, subject.stopped) == (1, False)
    subject.apply(LookTaken(round=2, decision="stop"))
    assert (subject.looked_at, subject.stopped) == (2, True)


def two_cells() -> Schedule:
    plan = tiny_plan()
    trials = [planned(block, arm, cell=cell) for block in (1, 2, 3) for cell in ("one", "two") for arm in "ab"]
    return Schedule(plan=plan.model_copy(update={"trials": trials}), replacement=replacement)


def look(round_: int, *, stops: str = "") -> LookTaken:
    cells = [CellLook(cell=stops, blocks=round_, information=0.5, decision="stop", reason="futility")] if stops else []
    return LookTaken(round=round_, decision="continue", cells=cells)


def test_a_decided_cell_gets_no_more_trials_and_the_others_go_on() -> None:
    subject = two_cells()
    for cell in ("one", "two"):
        for arm in "ab":
            subject.apply(finished(f"{cell}.b01.{arm}"))
    subject.apply(look(1, stops="one"))
    assert [trial.id for trial in subject.owed()] == ["two.b02.a", "two.b02.b", "two.b03.a", "two.b03.b"]
    assert subject.complete_rounds() == 1
    subject.apply(finished("two.b02.a"))
    subject.apply(finished("two.b02.b"))
    assert subject.complete_rounds() == 2


def test_a_block_that_a_decided_cell_lost_is_not_replaced() -> None:
    subject = two_cells()
    for cell in ("one", "two"):
        for arm in "ab":
            subject.apply(finished(f"{cell}.b01.{arm}", valid=cell == "two"))
    subject.apply(look(1, stops="one"))
    assert not [event for event in subject.repairs() if isinstance(event, BlockAdded)]


def test_a_replacement_that_was_planned_before_the_decision_is_dropped_with_the_rest() -> None:
    subject = two_cells()
    subject.apply(finished("one.b01.a", valid=False))
    while owed := subject.repairs():
        for event in owed:
            subject.apply(event)
    assert "one.b04.a" in [trial.id for trial in subject.owed()]
    subject.apply(look(1, stops="one"))
    assert {trial.cell for trial in subject.owed()} == {"two"}


def test_a_block_spans_what_runs_among_its_trials() -> None:
    plan = tiny_plan()
    first, *others = plan.trials
    between = first.model_copy(update={"id": "other.b01.a", "cell": "other", "position": 1})
    moved = [each.model_copy(update={"position": each.position + 1}) for each in others]
    subject = Schedule(plan=plan.model_copy(update={"trials": [first, between, *moved]}), replacement=replacement)
    assert subject.spanned("all", 1) == [first, between, moved[0]]
    assert subject.spanned("all", 2) == moved[1:]
