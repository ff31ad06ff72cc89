"""Where the controller of a farm says that a study is wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from support.instant_farm import InstantFarm
from support.progress import Told

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.farm.controller import FarmRun
from fairtrial.farm.orders import Failure, Order, Outcome
from fairtrial.study.resolved import Section

STUDY = """
study: two-arms
question: which?
place: {local: {}}
system: {command: {run: null}}
factors:
  arm:
    a: {workload: {command: {run: "true"}}}
    b:
      workload: {command: {run: "true --flag"}}
arm: arm
trials: {blocks: 2}
metrics: {primary: elapsed_s}
"""


def refused(directory: Path, farm: InstantFarm, **place: Any) -> str:
    """Where a run of `STUDY` says that it is wrong."""
    (directory / "s.yaml").write_text(STUDY, encoding="utf-8")
    study = language.load(directory / "s.yaml", catalogue=catalogue())
    made = planning.make(study, catalogue=catalogue())
    if place:
        moved = {
            cell: {arm: trial.model_copy(update={"place": Section(place)}) for arm, trial in arms.items()}
            for cell, arms in made.resolved.items()
        }
        made = made.model_copy(update={"resolved": moved})
    writer = record.create(directory / "run", plan=made, sources={"study.yaml": STUDY})
    with contextlib.closing(writer), pytest.raises(InputError) as raised:
        FarmRun(writer=writer, progress=Told(), farm=farm, study=lambda: study).execute()
    (problem,) = raised.value.problems
    return f"{Path(problem.file).name}:{problem.line} {problem.field}"


def test_a_mistake_of_one_arm_is_shown_at_its_line(tmp_path: Path) -> None:
    def fate(_host: str, order: Order, outcome: Outcome) -> Outcome | str:
        (mistaken,) = (trial.id for trial in order.trials if trial.arm == "b")
        problem = {"message": "no such option", "file": "the study", "field": "workload.command.run"}
        failure = {"message": "", "hint": "fix it", "problems": [problem], "trial": mistaken}
        return outcome.model_copy(update={"failure": Failure.model_validate(failure)})

    assert refused(tmp_path, InstantFarm("x", fate=fate)) == "s.yaml:10 workload.command.run"


def test_what_a_farm_refuses_by_itself_is_shown_at_its_line(tmp_path: Path) -> None:
    assert refused(tmp_path, InstantFarm("x"), ssh={"host": "z"}) == "s.yaml:4 place"
