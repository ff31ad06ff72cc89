"""The plan as it fills in, event by event."""

from __future__ import annotations

from support.records import planned, tiny_plan

from fairtrial.live.slots import Slots
from fairtrial.record.events import BlockLeased, HostLeft, RunFinished, RunInterrupted
from fairtrial.record.models import BlockAdded, BlockVoided, CellLook, LookTaken, TrialFinished, TrialStarted


def fates(slots: Slots) -> dict[str, str]:
    return {slot.trial.id: slot.fate for slot in slots.slots()}


def test_a_plan_fills_in() -> None:
    slots = Slots(tiny_plan())
    first, second = (trial for trial in tiny_plan().trials if trial.block == 1)
    assert set(fates(slots).values()) == {"planned"}
    slots.apply(TrialStarted(trial=first))
    assert fates(slots)[first.id] == "running"
    slots.apply(TrialFinished(trial=first.id, valid=True, files={}))
    assert fates(slots)[first.id] == "valid"
    slots.apply(TrialStarted(trial=second))
    slots.apply(RunInterrupted(reason="stopped by the user"))
    assert fates(slots)[second.id] == "planned"  # nobody runs it any more
    slots.apply(TrialStarted(trial=second))
    slots.apply(TrialFinished(trial=second.id, valid=False, invalid_reason="the server ended", files={}))
    slots.apply(BlockVoided(cell="all", block=1, reason=f"{second.id} is invalid"))
    said = {slot.trial.id: slot for slot in slots.slots()}
    assert (said[first.id].fate, said[second.id].fate) == ("void", "invalid")
    assert said[second.id].reason == "the server ended"
    added = [planned(9, arm) for arm in "ab"]
    slots.apply(BlockAdded(cell="all", block=9, round=2, replaces=1, trials=added))
    assert fates(slots)["all.b09.a"] == "planned"
    assert slots.number(added[0].id) == len(tiny_plan().trials) + len(tiny_plan().diagnostics)  # others keep theirs


def test_a_host_that_lost_its_block_runs_none_of_it() -> None:
    slots = Slots(tiny_plan())
    block = [trial.id for trial in tiny_plan().trials if trial.block == 1]
    slots.apply(BlockLeased(cell="all", block=1, host="alpha", trials=block))
    assert slots.out == set(block)
    slots.apply(BlockVoided(cell="all", block=1, reason="alpha is gone"))
    assert slots.out == set()


def test_a_block_that_a_host_did_not_begin_runs_no_longer_once_it_has_another_or_left() -> None:
    slots = Slots(tiny_plan())
    first, second = ([trial.id for trial in tiny_plan().trials if trial.block == block] for block in (1, 2))
    slots.apply(BlockLeased(cell="all", block=1, host="alpha", trials=first))
    slots.apply(BlockLeased(cell="all", block=2, host="alpha", trials=second))
    assert slots.out == {*second}
    slots.apply(HostLeft(host="alpha", reason="it cannot be reached"))
    assert slots.out == set()


def test_a_block_that_another_host_has_now_is_not_of_the_one_that_did_not_begin_it() -> None:
    slots = Slots(tiny_plan())
    first, second = ([trial.id for trial in tiny_plan().trials if trial.block == block] for block in (1, 2))
    slots.apply(BlockLeased(cell="all", block=1, host="alpha", trials=first))
    slots.apply(BlockLeased(cell="all", block=1, host="beta", trials=first))
    slots.apply(BlockLeased(cell="all", block=2, host="alpha", trials=second))
    assert slots.out == {*first, *second}
    slots.apply(HostLeft(host="alpha", reason="it cannot be reached"))
    assert slots.out == {*first}


def test_a_cell_that_the_rule_stops_gets_no_more_and_a_finished_run_owes_nothing() -> None:
    slots = Slots(tiny_plan())
    stop = CellLook(cell="all", blocks=2, information=1.0, decision="stop", reason="difference")
    slots.apply(LookTaken(round=1, decision="continue", cells=[stop]))
    assert {(slot.fate, slot.reason) for slot in slots.slots()} == {("stopped", "difference")}
    other = Slots(tiny_plan())
    other.apply(RunFinished())
    assert set(fates(other).values()) == {"stopped"}


def test_a_block_that_a_farm_had_begun_when_its_cell_was_stopped_does_not_count() -> None:
    slots = Slots(tiny_plan())
    stop = CellLook(cell="all", blocks=1, information=1.0, decision="stop", reason="difference")
    for trial in tiny_plan().trials:
        slots.apply(TrialFinished(trial=trial.id, valid=True, files={}))
        if trial.id == "all.b01.b":
            slots.apply(LookTaken(round=1, decision="continue", cells=[stop]))
    said = {slot.trial.id: (slot.fate, slot.reason) for slot in slots.slots()}
    assert {said[f"all.b01.{arm}"] for arm in "ab"} == {("valid", "")}
    assert {said[f"all.b02.{arm}"] for arm in "ab"} == {("stopped", "difference")}


def test_a_leased_block_runs_until_its_trials_end_or_the_run_does() -> None:
    first, second = (trial.id for trial in tiny_plan().trials if trial.block == 1)
    slots = Slots(tiny_plan())
    slots.apply(BlockLeased(cell="all", block=1, host="h1", trials=[first, second]))
    assert (fates(slots)[first], fates(slots)[second]) == ("running", "running")
    slots.apply(TrialFinished(trial=first, valid=True, files={}))
    assert (fates(slots)[first], fates(slots)[second]) == ("valid", "running")
    slots.apply(RunInterrupted(reason="stopped by the user"))
    assert fates(slots)[second] == "planned"
