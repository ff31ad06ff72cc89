"""When diagnostic trials run: after all others, whatever was decided, and whatever becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.inference.schedules import finished, replacement
from support.records import just_ended, planned, tiny_plan, trial_record
from support.trials import Quick, run

from fairtrial import record
from fairtrial.errors import InputError, PlaceError
from fairtrial.record import Writer
from fairtrial.record.events import Event, RunFinished, RunInterrupted
from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    CellLook,
    LookTaken,
    Plan,
    PlannedTrial,
    TrialFinished,
    TrialRecord,
)
from fairtrial.record.writer import Changes
from fairtrial.run import Decision, loop, opening
from fairtrial.run.pace import Pace
from fairtrial.run.schedule import Schedule
from fairtrial.run.trial.outcome import STREAM_LOST
from fairtrial.study.probes import Probe

PROBES = [Probe(command="true")]


def diagnostic(arm: str, block: int = 1) -> PlannedTrial:
    return planned(block, arm).model_copy(
        update={"id": f"all.d{block:02d}.{arm}", "diagnostic": True, "position": 2 + 2 * block + (arm == "b")}
    )


DIAGNOSTICS = [diagnostic("b"), diagnostic("a")]
LAST = ["all.d01.b", "all.d01.a"]
FIRST = ["all.b01.a", "all.b01.b", "all.b02.b", "all.b02.a"]


def probed_plan() -> Plan:
    return tiny_plan().model_copy(update={"probes": PROBES, "diagnostics": DIAGNOSTICS})


def schedule() -> Schedule:
    return Schedule(plan=probed_plan(), replacement=replacement)


def run_through(subject: Schedule, *, invalid: tuple[str, ...] = ()) -> tuple[list[str], list[Event]]:
    order: list[str] = []
    events: list[Event] = []
    while (trial := subject.next_trial()) is not None:
        order.append(trial.id)
        events.append(finished(trial.id, valid=trial.id not in invalid))
        subject.apply(events[-1])
        while owed := subject.repairs():
            for event in owed:
                events.append(event)
                subject.apply(event)
    return order, events


def test_they_come_last_in_the_order_of_the_plan() -> None:
    order, _ = run_through(schedule())
    assert order == FIRST + LAST


def test_a_replacement_of_the_last_round_still_comes_before_them() -> None:
    order, _ = run_through(schedule(), invalid=("all.b02.a",))
    assert order == [*FIRST, "all.b03.a", "all.b03.b", *LAST]


def test_one_that_breaks_voids_nothing_and_is_not_replaced() -> None:
    subject = schedule()
    order, events = run_through(subject, invalid=("all.d01.b", "all.d01.a"))
    assert order == FIRST + LAST
    assert not [event for event in events if isinstance(event, BlockVoided | BlockAdded)]
    assert subject.losses("all") == 0


def test_a_block_that_has_the_number_of_theirs_does_not_take_them_with_it() -> None:
    order, _ = run_through(schedule(), invalid=("all.b01.a",))
    assert order == ["all.b01.a", "all.b02.b", "all.b02.a", "all.b03.a", "all.b03.b", *LAST]


def test_rounds_are_complete_without_them() -> None:
    subject = schedule()
    for trial in FIRST:
        subject.apply(finished(trial))
    assert subject.complete_rounds() == 2
    subject.apply(finished("all.d01.b"))
    assert subject.complete_rounds() == 2


def test_a_run_that_was_decided_owes_them_alone() -> None:
    subject = schedule()
    subject.apply(finished("all.b01.a"))
    subject.apply(finished("all.b01.b"))
    subject.apply(LookTaken(round=1, decision="stop"))
    assert [trial.id for trial in subject.owed()] == LAST


def test_a_cell_that_was_decided_is_looked_into_all_the_same() -> None:
    subject = schedule()
    stop = CellLook(cell="all", blocks=1, information=0.5, decision="stop", reason="difference")
    subject.apply(LookTaken(round=1, decision="continue", cells=[stop]))
    assert [trial.id for trial in subject.owed()] == LAST


def test_any_cut_of_the_journal_resumes_to_the_same_trials() -> None:
    whole, events = run_through(schedule(), invalid=("all.b01.b", "all.d01.b"))
    for cut in range(len(events) + 1):
        subject = schedule()
        subject.replay(events[:cut])
        while owed := subject.repairs():
            for event in owed:
                subject.apply(event)
        done = [event.trial for event in events[:cut] if isinstance(event, TrialFinished)]
        rest, _ = run_through(subject, invalid=("all.b01.b", "all.d01.b"))
        assert done + rest == whole


def test_their_time_says_nothing_about_the_others() -> None:
    pace = Pace(expected_s=7.0)
    pace.note(trial_record(diagnostic("a")))
    assert pace.left_s({("all", "a"): 1}) == 7.0
    pace.note(trial_record(planned(1, "a")))
    assert pace.left_s({("all", "a"): 2}) == 2.0


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    found = record.create(tmp_path / "run", plan=probed_plan(), sources={"study.yaml": "study: tiny\n"})
    yield found
    found.close()


def test_a_run_ends_with_them_and_counts_them(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Quick()
    progress = run(writer, quick, monkeypatch)
    assert quick.ran == FIRST + LAST
    assert progress.counted == [(number, 6) for number in range(1, 7)]
    found = writer.record()
    assert isinstance(found.events[-1], RunFinished)
    assert [trial.trial.id for trial in found.trials] == FIRST
    assert [trial.trial.id for trial in found.diagnostics] == LAST


def test_a_stopping_rule_sees_none_of_them_and_is_not_asked_about_them(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def rule(changes: Changes) -> Decision:
        seen.append([trial.trial.id for trial in changes.trials])
        return Decision("continue")

    run(writer, Quick(), monkeypatch, stopping=rule)
    assert seen == [FIRST[:2], FIRST[2:]]


def test_an_early_stop_goes_straight_to_them(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Quick()
    run(writer, quick, monkeypatch, stopping=lambda _: Decision("stop"))
    assert quick.ran == ["all.b01.a", "all.b01.b", *LAST]
    assert [event.decision for event in writer.record().events if isinstance(event, LookTaken)] == ["stop"]
    assert writer.record().finished


def test_broken_ones_end_no_run_however_many(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of voided blocks is 1 in this plan."""
    quick = Quick(invalid=tuple(LAST))
    run(writer, quick, monkeypatch)
    assert quick.ran == FIRST + LAST
    assert writer.record().finished
    assert writer.record().voided == ()


@pytest.mark.parametrize(("is_last", "is_booted", "again"), [(True, False, [6]), (False, False, [5]), (True, True, [])])
def test_a_place_that_was_lost_in_the_last_of_them_is_opened_again_for_what_its_agent_left(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, *, is_last: bool, is_booted: bool, again: list[int]
) -> None:
    """Nothing is owed any more, and an agent that was killed has restored no setting."""
    opened: list[int] = []
    opens = opening.opened

    def counted(*arguments: Any, **options: Any) -> Any:
        opened.append(len(quick.ran))
        return opens(*arguments, **options)

    monkeypatch.setattr(loop, "opened", counted)
    quick = Quick(invalid=(LAST[is_last],), reason=f"{STREAM_LOST}: gone")
    monkeypatch.setattr(loop, "is_booted", lambda _place: is_booted and len(quick.ran) == len(FIRST + LAST))
    run(writer, quick, monkeypatch)
    assert quick.ran == FIRST + LAST
    assert opened == [0, *again], "a guest is not booted for what ended with its kernel"


def test_a_run_killed_among_them_goes_on_with_the_missing_one(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for trial in [*writer.plan.trials, DIAGNOSTICS[0]]:
        writer.begin(trial.id)
        writer.commit(just_ended(trial_record(trial)))
    assert not writer.record().finished
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert quick.ran == ["all.d01.a"]


def test_probes_are_tried_before_the_first_trial(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(loop.probe_checks, "require", lambda _place, probes: asked.append((list(probes), list(ran))))
    quick = Quick()
    ran = quick.ran
    run(writer, quick, monkeypatch)
    assert asked == [(PROBES, [])]


def test_a_probe_that_cannot_work_ends_the_run_before_anything_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    plan = probed_plan().model_copy(update={"probes": [Probe(command="no-such-program --at-all")]})
    writer = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "study: tiny\n"})
    quick = Quick()
    with pytest.raises(InputError, match=r"telemetry\.probes\.0\.command.*`no-such-program` is not installed"):
        run(writer, quick, monkeypatch)
    assert quick.ran == []
    assert isinstance(writer.record().events[-1], RunInterrupted)
    writer.close()


def test_probes_that_are_no_longer_owed_are_not_asked_for(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for trial in [*writer.plan.trials[:-1], *DIAGNOSTICS]:
        writer.begin(trial.id)
        writer.commit(just_ended(trial_record(trial)))
    monkeypatch.setattr(loop.probe_checks, "require", lambda *_: pytest.fail("nothing is left to probe"))
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert quick.ran == ["all.b02.a"]


def test_another_build_among_them_ends_the_run_too(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Rebuilt(Quick):
        def finished(self, found: TrialRecord) -> TrialRecord:
            return found.model_copy(update={"system_facts": {"sha256": "two" if found.trial.diagnostic else "one"}})

    with pytest.raises(PlaceError, match=r"all\.d01\.b ran on another system"):
        run(writer, Rebuilt(), monkeypatch)
