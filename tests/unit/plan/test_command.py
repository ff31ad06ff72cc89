"""`fairtrial plan` and `fairtrial schema` as installed: exit codes, and nothing is started."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.command_line import FAIRTRIAL
from support.forking import forked

STUDIES = Path(__file__).parents[3] / "studies"


def fairtrial(*arguments: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
    return forked([*map(str, arguments)], cwd=directory, environment=os.environ, program=FAIRTRIAL)


PLANNED = [path for path in sorted(STUDIES.glob("*.yaml")) if "\ntune:" not in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("study", PLANNED, ids=lambda path: path.stem)
def test_a_ready_study_is_planned_and_leaves_nothing_behind(study: Path, tmp_path: Path) -> None:
    done = fairtrial("plan", study, "--set", "trials.blocks=2", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "what differs between the arms" in done.stdout or "options, screened together" in done.stdout
    assert "expected duration" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_mistakes_end_with_exit_code_2_and_every_line(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("study: a b\nsystem: {mariadbb: {}}\nworkload: {tpcc: {duration: 5 parsecs}}\n", encoding="utf-8")
    done = fairtrial("plan", study, directory=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    for position in (":1:8: study:", ":2:10: system.mariadbb:", ":3:29: workload.tpcc.duration:", "factors: required"):
        assert position in done.stderr
    assert "hint:" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]


def test_the_schema_is_json(tmp_path: Path) -> None:
    done = fairtrial("schema", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["title"] == "fairtrial study"
