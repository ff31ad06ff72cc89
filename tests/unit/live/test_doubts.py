"""When doubts about a run that grows are looked for, and which of them are said while it goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.records import kept_unfaithful, tiny_plan, trial_record

from fairtrial import record
from fairtrial.analyse.models import Analysis
from fairtrial.errors import InputError, Problem
from fairtrial.live import doubts
from fairtrial.live.doubts import Doubts
from fairtrial.live.followed import FollowedRun
from fairtrial.record import Writer, live
from fairtrial.record.live import Live


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """A run whose second trial is invalid."""
    found = record.create(tmp_path / "one", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    for trial, valid in zip(found.plan.trials[:2], (True, False), strict=True):
        found.begin(trial.id)
        found.commit(trial_record(trial, valid=valid))
    yield found
    found.close()


def goes_on(writer: Writer) -> FollowedRun:
    live.write(writer.directory, Live(process=os.getpid()))
    run = FollowedRun(writer.directory)
    run.refresh()
    assert run.state == "running"
    return run


def codes(found: Doubts) -> set[str]:
    return {each.code for each in found.found or ()}


def test_that_a_run_is_not_over_is_no_doubt_while_it_goes_on(writer: Writer) -> None:
    run = goes_on(writer)
    found = Doubts(run, run.analysis)
    found.look()
    assert codes(found) == {"voided"}
    writer.close()
    run.refresh()
    found.look()
    assert codes(found) > {"voided", "unfinished"}


def test_a_look_is_due_when_the_run_has_grown_and_costs_a_small_share_of_the_time(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = goes_on(writer)

    def slow() -> Analysis:
        time.sleep(0.05)
        return run.analysis()

    found = Doubts(run, slow)
    assert found.is_due
    found.look()
    assert not found.is_due
    found.stale = True
    assert not found.is_due, "the last one took 50 ms, so 50 s have to pass"
    monkeypatch.setattr(doubts, "SHARE", 1e9)
    assert found.is_due
    monkeypatch.undo()
    writer.close()
    run.refresh()
    assert found.is_due, "nobody measures any more"


def test_what_cannot_be_analysed_says_why(writer: Writer) -> None:
    def refuses() -> Analysis:
        raise InputError([Problem("no", file="plan.json")], hint="look at it")

    found = Doubts(goes_on(writer), refuses)
    found.look()
    assert [(each.code, each.advice) for each in found.found or ()] == [("not analysed", "look at it")]


def test_what_drives_drew_is_looked_at_once_the_run_has_ended(tmp_path: Path) -> None:
    run = FollowedRun(kept_unfaithful(tmp_path / "run"))
    run.refresh()
    found = Doubts(run, run.analysis)
    found.look()
    assert "unfaithful" in codes(found)
