"""A host's side of a farm: what it knows of its place from block to block, and what it does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import InputError, Problem
from fairtrial.farm.orders import Order
from fairtrial.farm.station import BlockRun, Quiet, Station
from fairtrial.record.models import Cell
from fairtrial.run import Run
from fairtrial.run.trial.outcome import STREAM_LOST
from fairtrial.study.resolved import Section

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


@pytest.mark.parametrize(
    ("boot", "opened"), [({}, 1), ({"boot": {"by": "kexec", "kernel": "debian-6.12"}}, 0)], ids=["stays", "boots"]
)
def test_a_host_that_lost_its_stream_is_restored_unless_that_would_boot_the_kernel_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, boot: dict[str, dict[str, str]], opened: int
) -> None:
    seen: list[Section] = []

    @contextlib.contextmanager
    def opening(_run: BlockRun, at: Section) -> Iterator[None]:
        seen.append(at)
        yield

    monkeypatch.setattr(Run, "_run_trials", lambda _run: None)
    monkeypatch.setattr(BlockRun, "_open", opening)
    at = RESOLVED.model_copy(update={"place": Section({"ssh": {"host": "h", **boot}})})
    plan = tiny_plan().model_copy(update={"resolved": {"all": {"a": at, "b": at}}})
    writer = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": ""})
    lost = trial_record(planned(1, "a"), valid=False)
    writer.begin(lost.trial.id)
    writer.commit(lost.model_copy(update={"invalid_reason": f"{STREAM_LOST}: gone", "resolved": at}))
    with contextlib.closing(writer):
        BlockRun(writer=writer, progress=Quiet())._run_trials()
    assert len(seen) == opened
