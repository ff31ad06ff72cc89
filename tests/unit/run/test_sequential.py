"""A run that may stop early, with the real rule: what is decided, resumed and killed at every place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.progress import Told
from support.records import RESOLVED, planned, tiny_plan
from support.trials import Quick

from fairtrial import record
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.record import Writer
from fairtrial.record.events import RunFinished
from fairtrial.record.models import Cell, LookTaken, Plan, PlannedTrial, TrialRecord
from fairtrial.run import Run, loop

BLOCKS = 8
# Seconds of arm b by block, of arm a they are 1: a cell with a large effect, and one without that is noisy.
ELAPSED = {
    "clear": (0.50, 0.51, 0.49, 0.50, 0.52, 0.50, 0.49, 0.50),
    "noisy": (1.30, 0.80, 1.10, 0.70, 1.25, 0.90, 1.20, 0.75),
}


def plan() -> Plan:
    base = tiny_plan()
    design = {"blocks": BLOCKS, "stop": "sequential", "min_blocks": 3, "spending": "pocock", "voided_limit": 3}
    cells = [Cell(name=name, levels={"load": name}) for name in ELAPSED]
    trials = [planned(block, arm, cell=cell) for block in range(1, BLOCKS + 1) for cell in ELAPSED for arm in "ab"]
    return base.model_copy(
        update={
            "factors": {"arm": ["a", "b"], "load": list(ELAPSED)},
            "cells": cells,
            "resolved": {cell.name: {"a": RESOLVED, "b": RESOLVED} for cell in cells},
            "design": base.design.model_copy(update={**design, "futility": True, "equivalence": True}),
            "trials": [each.model_copy(update={"position": slot}) for slot, each in enumerate(trials)],
        }
    )


class Killed(Exception):  # noqa: N818 - what SIGKILL does to a process, as far as a test can see it
    pass


class Measured(Quick):
    """Trials with the values above; dies after so many."""

    def __init__(self, *, dies_after: int) -> None:
        super().__init__()
        self.dies_after = dies_after

    def run(self, trial: PlannedTrial, *, has_started: bool) -> TrialRecord:
        if len(self.ran) == self.dies_after:
            raise Killed
        return super().run(trial, has_started=has_started)

    def finished(self, found: TrialRecord) -> TrialRecord:
        trial = found.trial
        elapsed = 1.0 if trial.arm == "a" else ELAPSED[trial.cell][trial.block - 1]
        return found.model_copy(
            update={"levels": {"arm": trial.arm, "load": trial.cell}, "scalars": {"elapsed_s": elapsed}}
        )


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill takes nothing from the kernel, so nobody waits here for hundreds of syncs of a disk that may be slow."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    record.create(tmp_path / "run", plan=plan(), sources={"study.yaml": "study: tiny\n"}).close()
    return tmp_path / "run"


def go(directory: Path, monkeypatch: pytest.MonkeyPatch, *, dies_after: int = 1000) -> tuple[list[str], list[str]]:
    """Resumes the run until it ends or is killed; returns the trials it ran and what it said."""
    measured, told = Measured(dies_after=dies_after), Told()
    monkeypatch.setattr(loop, "TrialRunner", measured)
    writer = record.resume(directory)
    try:
        Run(writer=writer, progress=told, stopping=stopping_rule(writer.plan)).execute()
    except Killed:
        pass
    finally:
        writer.close()
    return measured.ran, told.notes


def looks(directory: Path) -> list[LookTaken]:
    return [event for event in record.read(directory).events if isinstance(event, LookTaken)]


def test_each_cell_stops_by_itself_and_says_why(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, said = go(directory, monkeypatch)
    found = record.read(directory)
    assert isinstance(found.events[-1], RunFinished)
    stops = {cell.cell: cell for look in looks(directory) for cell in look.cells if cell.decision == "stop"}
    assert stops["clear"].reason == "difference"
    assert stops["noisy"].reason == "futility"
    assert stops["clear"].blocks < stops["noisy"].blocks < BLOCKS
    assert sum(name.startswith("clear") for name in ran) == 2 * stops["clear"].blocks
    assert any("clear stops after" in text and "a difference is shown" in text for text in said)
    last = looks(directory)[-1].cells[0].comparisons[0]
    assert (last.metric, last.arm, last.n) == ("elapsed_s", "b", stops["noisy"].blocks)
    assert last.boundary is not None
    assert abs(last.t or 0) < last.boundary


def test_a_run_killed_after_any_trial_decides_the_same(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = go(directory, monkeypatch)
    for cut in (1, 5, len(whole) // 2, len(whole) - 1):
        other = tmp_path / f"cut-{cut}"
        record.create(other, plan=plan(), sources={"study.yaml": "study: tiny\n"}).close()
        before, _ = go(other, monkeypatch, dies_after=cut)
        after, _ = go(other, monkeypatch)
        assert before + after == whole
        assert looks(other) == looks(directory)


def test_a_kill_between_the_look_and_its_line_in_the_journal_repeats_the_look(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = go(directory, monkeypatch)
    other = tmp_path / "other"
    record.create(other, plan=plan(), sources={"study.yaml": "study: tiny\n"}).close()
    append = Writer.append

    def dies_at_the_decision(self: Writer, event: Any) -> None:
        if isinstance(event, LookTaken) and any(cell.decision == "stop" for cell in event.cells):
            raise Killed
        append(self, event)

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "append", dies_at_the_decision)
        before, _ = go(other, patched)
    assert not any(cell.decision == "stop" for look in looks(other) for cell in look.cells)
    after, _ = go(other, monkeypatch)
    assert before + after == whole
    assert looks(other) == looks(directory)


def test_a_plan_that_runs_all_its_blocks_has_no_rule() -> None:
    assert stopping_rule(tiny_plan()) is None
