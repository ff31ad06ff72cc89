"""What a record must be together, whatever each of its values is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial.errors import RecordError
from fairtrial.record import consistency
from fairtrial.record.models import (
    BlockAdded,
    Cell,
    Check,
    Clock,
    Design,
    Plan,
    PlannedMetrics,
    PlannedTrial,
    TrialFinished,
    TrialRecord,
    Window,
)
from fairtrial.study.resolved import ResolvedTrial, Section

PATH = Path("run")


def design(**changes: Any) -> dict[str, Design]:
    return {"design": tiny_plan().design.model_copy(update=changes)}


def metrics(**changes: Any) -> dict[str, PlannedMetrics]:
    return {"metrics": tiny_plan().metrics.model_copy(update=changes)}


def trials(**changes: Any) -> dict[str, list[PlannedTrial]]:
    first, *others = tiny_plan().trials
    return {"trials": [first.model_copy(update=changes), *others]}


def other_workload() -> ResolvedTrial:
    return RESOLVED.model_copy(update={"workload": Section({"command": {"run": "false"}})})


def required(plan: Plan) -> None:
    consistency.require_plan(plan, PATH)
    consistency.require_whole(plan, plan.trials, PATH)


def test_a_plan_and_its_trials_agree() -> None:
    plan = tiny_plan()
    consistency.require_plan(plan, PATH)
    consistency.require_whole(plan, plan.trials, PATH)
    first = plan.trials[0]
    finished = TrialFinished(trial=first.id, valid=True, files={})
    added = BlockAdded(cell="all", block=3, round=3, replaces=1, trials=[planned(3, "a"), planned(3, "b")])
    consistency.require_journal(plan, [finished, added], PATH)
    consistency.require_trial(plan, trial_record(first), planned=first, path=PATH)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arm": "other"}, "'other' at arm"),
        ({"also_compare": ["other"]}, "'other' at arm or also_compare"),
        ({"factors": {"arm": ["a", "a"]}}, r"each once, at factors\.arm"),
        ({"factors": {"arm": []}}, r"one level or more"),
        ({"factors": {"arm": ["a", "b"], "more": ["x", "y"]}}, "a cell for each of 2 combinations of levels, found 1"),
        ({"cells": [Cell(name="all", levels={"arm": "a"})]}, "a level of every factor but the arm"),
        ({"resolved": {}}, "arm 'a' is missing at resolved.all"),
        ({"resolved": {"all": {**tiny_plan().resolved["all"], "c": None}}}, "arm 'c' is not a level of arm"),
        (metrics(primary=[]), "one metric or more"),
        (metrics(guardrails=["speed"]), "'speed' has no definition"),
        (metrics(definitions={}), "'elapsed_s' has no definition"),
        (design(blocks=1 << 40), "1 to 4, as there are so many trials"),
        (design(blocks=0), "at design.blocks"),
        (design(margin=0.0), "at design.margin"),
        (design(confidence=1.0), "at design.confidence"),
        (design(per_boot=1 << 40), "at design.per_boot"),
        (design(neighbours="boots"), "expected cells, which share no boots, found boots at design.neighbours"),
        (design(min_blocks=3), "at design.min_blocks"),
        (design(voided_limit=-1), "at design.voided_limit"),
        (design(stop="precision"), "found None at design.precision"),
        (design(seed=1 << 64), "at design.seed"),
        ({"telemetry_interval_ms": 0}, "at telemetry_interval_ms"),
        ({"duration_s": -1.0}, "at duration_s"),
        ({"disk_bytes": 1 << 63}, "at disk_bytes"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    plan: Plan = tiny_plan().model_copy(update=changes)
    with pytest.raises(RecordError, match=message) as refused:
        required(plan)
    assert str(refused.value).startswith("run contradicts itself: ")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (trials(cell="other"), "a cell or an arm that there is not"),
        (trials(arm="other"), "a cell or an arm that there is not"),
        (trials(id="all.b01.b"), "two trials have the id all.b01.b"),
        (trials(position=-1), "out of range"),
        (trials(round=1 << 60), "out of range"),
        (trials(seed=1 << 64), "out of range"),
    ],
)
def test_trials_without_a_place_in_the_plan_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        consistency.require_journal(tiny_plan().model_copy(update=changes), [], PATH)


def test_a_journal_that_finishes_a_trial_twice_or_adds_one_that_is_there_is_refused() -> None:
    finished = TrialFinished(trial="all.b01.a", valid=True, files={})
    with pytest.raises(RecordError, match=r"all\.b01\.a is finished twice"):
        consistency.require_journal(tiny_plan(), [finished, finished], PATH)
    added = BlockAdded(cell="all", block=3, round=3, replaces=1, trials=[planned(1, "a")])
    with pytest.raises(RecordError, match=r"two trials have the id all\.b01\.a"):
        consistency.require_journal(tiny_plan(), [added], PATH)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trial": planned(2, "a")}, "expected the trial as it is planned"),
        ({"levels": {}}, "the levels of its cell and its arm"),
        ({"resolved": other_workload()}, r"what the plan has at resolved\.all\.a"),
        ({"resolved": other_workload(), "host": "alpha"}, r"what the plan has at resolved\.all\.a"),
        ({"window": Window(start_ns=2, end_ns=1)}, "ends after it begins"),
        ({"window": Window(start_ns=1, end_ns=1 << 63)}, "ends after it begins"),
        ({"clock": Clock(monotonic_ns=1 << 63, realtime_ns=1)}, "63 bits"),
        ({"started": "yesterday"}, "a time of day with its zone at started"),
        ({"finished": "2026-01-01T00:00:01"}, "a time of day with its zone at finished"),
        ({"scalars": {"elapsed_s": math.nan}}, "finite numbers at scalars"),
        ({"checks": [Check(name="c", statement="s", violations=-1)]}, "a count at checks"),
    ],
)
def test_a_trial_that_is_not_the_one_planned_is_refused(changes: dict[str, Any], message: str) -> None:
    plan = tiny_plan()
    found: TrialRecord = trial_record(plan.trials[0]).model_copy(update=changes)
    with pytest.raises(RecordError, match=message):
        consistency.require_trial(plan, found, planned=plan.trials[0], path=PATH)


def test_a_finished_trial_that_was_never_planned_is_refused() -> None:
    plan = tiny_plan()
    with pytest.raises(RecordError, match=r"trial all\.b99\.a was neither planned nor added"):
        consistency.require_trial(plan, trial_record(planned(99, "a")), planned=None, path=PATH)


def test_a_trial_of_a_farm_or_of_a_duet_is_at_the_place_that_was_chosen_for_it() -> None:
    plan = tiny_plan()
    first = plan.trials[0]
    moved = trial_record(first).model_copy(
        update={"resolved": RESOLVED.model_copy(update={"place": Section({"ssh": {"host": "alpha"}})})}
    )
    with pytest.raises(RecordError, match="found another trial at resolved"):
        consistency.require_trial(plan, moved, planned=first, path=PATH)
    half = first.model_copy(update={"half": 1})
    of_farm, of_duet = (moved.model_copy(update=changes) for changes in ({"host": "alpha"}, {"trial": half}))
    consistency.require_trial(plan, of_farm, planned=first, path=PATH)
    consistency.require_trial(plan, of_duet, planned=half, path=PATH)


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "1e400"])
def test_a_figure_that_is_no_number_is_refused(figure: str) -> None:
    text = tiny_plan().model_dump_json().replace('"margin":0.02', f'"margin":{figure}')
    with pytest.raises(ValueError, match="finite number"):
        Plan.model_validate_json(text)
