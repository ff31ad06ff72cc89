"""Arms that look for one bare name on different paths are refused; of a path that all share, the plan warns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.records import RESOLVED

from fairtrial import plan, study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.plan.search_paths import warnings
from fairtrial.record.models import Plan
from fairtrial.study.resolved import ResolvedTrial, Section

STUDY = """\
study: paths
question: Is the newer interpreter faster?
place: {local: {}}
system: {SYSTEM: {run: RUN}}
workload: {command: {run: "true"}}
factors:
  interpreter:
    old: {settings: {environment: {PATH: /opt/1/bin}}}
    new: {settings: {environment: NEW}}
arm: interpreter
trials: {blocks: 10, margin: 2 %}
metrics: {primary: elapsed_s}
"""


def made(directory: Path, *, system: str = "service", run: str = "stored -f", new: str) -> Plan:
    text = STUDY.replace("SYSTEM", system).replace("RUN", run).replace("NEW", new)
    path = directory / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return plan.make(study.load(path, catalogue=catalogue()), catalogue=catalogue())


@pytest.mark.parametrize("system", ["service", "command"])
@pytest.mark.parametrize("new", ["{PATH: /opt/2/bin}", "{PATH: ''}", "{LANG: C, PATH: null}"])
def test_arms_that_look_for_a_bare_name_on_different_paths_are_refused(tmp_path: Path, system: str, new: str) -> None:
    with pytest.raises(InputError, match="found different ones: by it `stored` is found") as refused:
        made(tmp_path, system=system, new=new)
    assert [problem.field for problem in refused.value.problems] == ["settings.environment.PATH"]


def test_a_full_path_is_what_it_is_whatever_the_search_path(tmp_path: Path) -> None:
    assert made(tmp_path, run="/opt/stored -f", new="{PATH: /opt/2/bin}").warnings == []


def test_of_a_path_that_all_arms_share_the_plan_warns(tmp_path: Path) -> None:
    said = made(tmp_path, new="{PATH: /opt/1/bin, LANG: C}").warnings
    assert len(said) == 1
    assert said[0].startswith("settings.environment.PATH: by it `stored` is found, and the record names the one on the")


@pytest.mark.parametrize("system", [{"service": {"at": {"host": "h"}}}, {"command": {}}, {"files": {}}])
def test_what_starts_no_program_of_the_studys_has_none_to_look_for(system: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"environment": {"PATH": "/opt/1/bin"}}
    trial = RESOLVED.model_copy(update={"system": Section.model_validate(system), "settings": settings})
    assert isinstance(trial, ResolvedTrial)
    assert warnings({"one": {"a": trial}}) == []
