"""The gate of packaging/ci: both templates measure and judge by the same lines, and no input becomes a script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ci_gate import script  # benches/ci_gate.py
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
OWN = "# From here on"


def template(name: str) -> Any:
    return YAML(typ="safe").load((ROOT / "packaging" / "ci" / name).read_text(encoding="utf-8"))


ACTION, JOB = template("action.yml"), template("gitlab.yml")[".fairtrial-gate"]


def shared(lines_of: str) -> list[str]:
    """The lines that every template has."""
    lines = lines_of.partition(OWN)[0].splitlines()
    return [line for line in lines if not line.startswith("# The same lines")]


def test_both_templates_measure_and_judge_alike() -> None:
    assert shared(JOB["script"][-1]) == shared(script())
    assert len(shared(script())) > 5
    assert JOB["allow_failure"] == {"exit_codes": [5]}


def test_no_input_of_the_action_becomes_text_of_a_script() -> None:
    steps = ACTION["runs"]["steps"]
    assert len(steps) == 3
    assert [step["run"] for step in steps if "${{" in step["run"]] == []
    used = set(re.findall(r"inputs\.([a-z]+)", str(steps)))
    assert used == set(ACTION["inputs"])


def test_the_guide_has_every_input_and_variable() -> None:
    page = (ROOT / "docs/guides/continuous-integration.md").read_text(encoding="utf-8")
    names = [*ACTION["inputs"], *(name for name in JOB["variables"] if name != "GIT_DEPTH")]
    assert [name for name in names if f"`{name}`" not in page] == []
