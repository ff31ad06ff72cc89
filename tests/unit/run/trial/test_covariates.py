"""Covariates in one trial with a real agent: before anything of the arm, and only where the study wants them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.facts import facts_of
from support.machines.places import place_here
from support.machines.stage import Stage, Staged
from support.progress import Told
from support.records import tiny_plan

from fairtrial import record
from fairtrial.run.trial import runner
from fairtrial.settings import Effect
from fairtrial.settings.steps.shared import write_file


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    staged, progress = Staged(), Told()
    monkeypatch.setattr(runner, "parts_of", lambda _resolved: staged.parts)
    writer = record.create(tmp_path / "run", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    with place_here(tmp_path) as place:
        place.facts = facts_of(processors=[0, 1, 2])  # and not root: nobody's caches are dropped
        own = runner.TrialRunner(place, writer, progress, runner.ExistingServers(place, "a test"))
        yield Stage(staged, own, writer, progress, monkeypatch, tmp_path)
    writer.close()


def test_covariates_are_measured_before_anything_of_the_arm_is_in_effect(stage: Stage) -> None:
    plan = stage.writer.plan
    covariates = plan.metrics.model_copy(update={"covariates": ["calibration_loop_ns"]})
    stage.monkeypatch.setattr(stage.writer, "plan", plan.model_copy(update={"metrics": covariates}))
    (stage.directory / "place").write_text("old\n")
    step = write_file(str(stage.directory / "place"), "new", name="place", normalise="trim")
    stage.effect(Effect(steps=(("place", step),)))
    times: list[int] = []

    def look(_: Any) -> None:
        (measured,) = (stage.directory / "state" / "work").glob("*/out/covariates.json")
        times.extend(path.stat().st_mtime_ns for path in (measured, stage.directory / "place"))

    stage.staged.at["start"] = look
    found = stage.run()
    assert times == sorted(times)
    assert found.scalars["calibration_loop_ns"] > 1e6
    assert found.scalars["time_since_boot_s"] > 0


def test_a_study_without_covariates_measures_none(stage: Stage) -> None:
    assert "calibration_loop_ns" not in stage.run().scalars
