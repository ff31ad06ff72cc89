"""A host's side of a farm: what it knows of its place from block to block, and what it does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.records import RESOLVED, planned, tiny_plan
from support.trials import Quick

from fairtrial.errors import InputError, Problem
from fairtrial.farm.orders import Order
from fairtrial.farm.orders import order as order_of
from fairtrial.farm.station import Station
from fairtrial.places import Disk
from fairtrial.places.local import Local
from fairtrial.record.models import Cell, PlannedTrial
from fairtrial.run import Run, loop, opening
from fairtrial.run.trial.outcome import STREAM_LOST
from fairtrial.study.resolved import Section
from fairtrial.wire import Agent
from fairtrial.wire.open_place import OpenPlace

MORE_THAN_ANY_DISK = 1 << 62


def order(state: Path, block: int, *, cell: str, disk_bytes: int = 0) -> Order:
    """A block of one trial."""
    at = RESOLVED.model_copy(update={"place": Section({"local": {"state_directory": str(state)}})})
    update = {
        "cells": [Cell(name=cell, levels={})],
        "resolved": {cell: {"a": at}},
        "trials": [planned(block, "a", cell=cell)],
        "disk_bytes": disk_bytes,
    }
    return Order(run="run", plan=tiny_plan().model_copy(update=update), started=[])


def test_a_place_is_looked_at_once_for_the_blocks_of_a_cell_and_again_for_those_of_another(tmp_path: Path) -> None:
    station = Station("x")
    begun: list[bool] = []

    def failure(number: int, given: Order) -> str:
        outcome = station.serve(given, tmp_path / str(number))
        assert (outcome.failure is None) == (len(outcome.trials) == 1)
        begun.append(outcome.begun)
        return "" if outcome.failure is None else outcome.failure.message

    state = tmp_path / "state"
    assert failure(1, order(state, 1, cell="p")) == ""
    assert begun == [True]
    assert failure(2, order(state, 2, cell="p", disk_bytes=MORE_THAN_ANY_DISK)) == ""
    assert "disk" in failure(3, order(state, 1, cell="q", disk_bytes=MORE_THAN_ANY_DISK))
    assert not begun[-1]


def test_a_mistake_is_of_the_trial_whose_levels_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(run: Run) -> None:
        first, second = run.writer.plan.trials
        with run._mistakes_located(first):
            pass
        with run._mistakes_located(first), run._mistakes_located(second):
            raise InputError([Problem("no such option", "the study", field="system")], hint="fix it")

    monkeypatch.setattr(Run, "_run_trials", refuses)
    plan = tiny_plan()
    given = Order(run="run", plan=plan.model_copy(update={"trials": plan.trials[:2]}), started=[])
    failure = Station("x").serve(given, tmp_path).failure
    assert failure is not None
    assert failure.trial == plan.trials[1].id


@pytest.mark.parametrize("begins", [True, False])
def test_what_goes_wrong_with_the_process_itself_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, begins: bool
) -> None:
    def fails(_what: object) -> None:
        raise PermissionError(13, "Permission denied", "/var/lib/fairtrial")

    if not begins:
        monkeypatch.setattr(Run, "_run_trials", fails)
    outcome = Station("x", begin=fails if begins else None).serve(order(tmp_path, 1, cell="p"), tmp_path)
    assert outcome.failure is not None
    assert outcome.failure.message == "[Errno 13] Permission denied: '/var/lib/fairtrial'"


@pytest.mark.parametrize(("boots", "opened"), [(False, 2), (True, 1)])
def test_a_host_that_lost_its_stream_is_restored_unless_that_would_boot_the_kernel_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, boots: bool, opened: int
) -> None:
    """It may get no more blocks."""
    seen: list[bool] = []
    opens = Local.open

    def opening(place: Local, **options: Any) -> Agent:
        seen.append(options["lock"])
        return opens(place, **options)

    given = order(tmp_path / "state", 1, cell="p")
    (lost,) = given.plan.trials
    monkeypatch.setattr(Local, "boots_anew", boots)
    monkeypatch.setattr(Local, "open", opening)
    monkeypatch.setattr(loop, "TrialRunner", Quick(invalid=(lost.id,), reason=f"{STREAM_LOST}: gone"))
    (trial,) = Station("x").serve(given, tmp_path / "block").trials
    assert not trial.valid
    assert seen == [True] * opened


class WithData(Quick):
    """Trials that start from prepared data, each from its own."""

    def prepare(self, trial: PlannedTrial) -> str:  # type: ignore[override]
        super().prepare(trial)
        return f"data of {trial.arm}"


def test_an_arm_whose_data_no_block_has_prepared_yet_has_them_before_its_diagnostic_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a resume nothing but these may be left, and each comes alone."""
    keys: list[str | None] = []

    @contextlib.contextmanager
    def opened(_place: Section, *, disk: Disk, **options: Any) -> Iterator[OpenPlace]:
        if not disk.keep:
            keys.append(disk.key)
        with opening.opened(Section({"local": {"state_directory": str(tmp_path / "state")}}), **options) as found:
            yield found

    quick, station = WithData(), Station("x")
    monkeypatch.setattr(loop, "TrialRunner", quick)
    monkeypatch.setattr(loop, "opened", opened)
    monkeypatch.setattr(loop, "is_fresh", lambda _place: True)
    monkeypatch.setattr(loop.carriers, "fresh", lambda place: place)
    monkeypatch.setattr(loop.carriers, "examine", lambda _place, **_options: [])
    monkeypatch.setattr(loop.probe_checks, "require", lambda _place, _probes: None)
    tiny = tiny_plan()
    for arm in ("a", "b", "a"):
        trial = planned(1, arm).model_copy(update={"diagnostic": True})
        given = order_of(tiny, [trial], run="run", started=[])
        assert station.serve(given, tmp_path / f"{len(keys)}").failure is None
    assert keys == ["data of a", "data of b", "data of a"]
    assert quick.prepared == ["all a", "all b"]
