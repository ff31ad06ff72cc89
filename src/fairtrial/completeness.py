"""Whether a run whose journal says that it is finished has run all that it had to, by the schedule that runs go by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fairtrial import plan as planning
from fairtrial.record import Record
from fairtrial.record.events import Event
from fairtrial.record.models import LookTaken
from fairtrial.run.schedule import Schedule
from fairtrial.words import counted


def unfinished(record: Record) -> list[str]:
    """What a finished run has still to do or to decide, a sentence each; empty if nothing, or if it goes on."""
    if not record.finished:
        return []
    schedule = _replayed(record, record.events)
    return [f"journal.jsonl: {text}" for text in (*_left(schedule), *_looks(record, schedule))]


def _replayed(record: Record, events: tuple[Event, ...]) -> Schedule:
    schedule = Schedule(plan=record.plan, replacement=partial(planning.replacement, record.plan))
    schedule.replay(events)
    return schedule


def _left(schedule: Schedule) -> Iterator[str]:
    """Trials and blocks: every block that lost a trial is void, and another replaces it unless its cell has stopped."""
    if owed := schedule.owed():
        others = f" and {counted(len(owed) - 1, 'other trial')}" if len(owed) > 1 else ""
        yield f"run_finished, but {owed[0].id}{others} {'are' if others else 'is'} still to run"
    for trial in schedule.queue:
        if not schedule.finished.get(trial.id, True) and (trial.cell, trial.block) not in schedule.voided:
            yield f"run_finished, but block {trial.block} of {trial.cell} is not void: {trial.id} is invalid"
    for cell, block in sorted(schedule.voided - schedule.replaced):
        if cell not in schedule.decided and not schedule.stopped:
            yield f"run_finished, but nothing replaces block {block} of {cell}, which is void"


def _looks(record: Record, schedule: Schedule) -> Iterator[str]:
    """A stopping rule is asked once after every complete round, in their order, until every cell has stopped."""
    looks = [event for event in record.events if isinstance(event, LookTaken)]
    if record.plan.design.stop == "fixed":
        if looks:
            yield "a look was taken, but the plan runs all blocks"
        return
    goes_on = [cell.name for cell in record.plan.cells if cell.name not in schedule.decided]
    if schedule.stopped and goes_on:
        yield f"the look after round {schedule.looked_at} stops the run, but {goes_on[0]} goes on"
    rounds = [look.round for look in looks]
    in_order = list(range(1, len(rounds) + 1))
    # What the last look itself stopped may have completed further rounds, of which nothing was left to decide.
    before = tuple(event for event in record.events if not looks or event is not looks[-1])
    if rounds != in_order:
        first = next(number for number, round_ in zip(in_order, rounds, strict=True) if number != round_)
        yield f"run_finished, but no look after round {first}"
    elif not schedule.stopped and len(rounds) < _replayed(record, before).complete_rounds():
        yield f"run_finished, but no look after round {len(rounds) + 1}"
