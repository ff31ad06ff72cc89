"""Kinds in one file of somebody else's package: run, reported, verified, and refused where they cannot be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import FAIRTRIAL, Desk, desk

from fairtrial.errors import PlaceError
from fairtrial.plugins import Kinds
from fairtrial.workloads import WORKLOADS, Workload

PLUGIN = '''
"""Counts letters: a place, a system, a setting and a workload of a third party."""

import json

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.places import ReachedPlace
from fairtrial.places.local import Local, LocalParameters
from fairtrial.programs import Program
from fairtrial.record.models import Window
from fairtrial.settings import Effect, Setting
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.systems import Identity, Instance, System
from fairtrial.workloads import DriveOutcome, Workload


class Nearby(ReachedPlace[LocalParameters]):
    """This machine under another name."""

    name = "nearby"
    summary = "This machine."
    model = LocalParameters

    def connect(self, limits):
        return Local(self.parameters).connect(limits)


class PaperParameters(BaseModel):
    """Which paper."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grade: int = Field(1, description="Of the paper.")


class Paper(System[PaperParameters]):
    """What letters stand on."""

    name = "paper"
    summary = "Paper."
    model = PaperParameters

    def identity(self, place):
        return Identity(version=f"grade {self.parameters.grade}", sha256="0" * 64)

    def start(self, place, launch):
        return Instance(endpoint=None, process=None)


class Spelling(Setting[str]):
    """The locale in which letters are counted."""

    name = "spelling"
    summary = "The locale."
    model = str
    example = "C"

    def effect(self, facts, trial):
        return Effect(environment={"LC_ALL": self.value} if facts.processors else {})


class LettersParameters(BaseModel):
    """Which letters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(description="Counted by wc.")


class Letters(Workload[LettersParameters]):
    """Letters, counted by wc."""

    name = "letters"
    summary = "Counts letters."
    model = LettersParameters
    example = {"text": "abc"}
    programs = (Program("wc", "the workload `letters` runs it", "coreutils"),)
    builds = {"wc_sha256": "wc"}
    announces = False

    def metrics(self):
        letters = MetricDefinition(name="letters", label="letters", unit="letters", better="higher", kind="count")
        return {"letters": letters}

    def drive(self, place, drive):
        start_ns = place.agent.clock().monotonic_ns
        script = 'printf %s "$0" | LC_ALL=$1 wc -m'
        words = ["sh", "-c", script, self.parameters.text, drive.environment["LC_ALL"]]
        counted = place.require(words, hint="install coreutils")
        place.agent.put(str(drive.directory / "letters.json"), json.dumps({"letters": int(counted)}).encode())
        window = Window(start_ns=start_ns, end_ns=place.agent.clock().monotonic_ns)
        return DriveOutcome(window=window, effective={"wc_sha256": "1"})

    def scalars(self, directory, window):
        return {"letters": float(json.loads((directory / "letters.json").read_bytes())["letters"])}

    def contradictions(self, directory):
        found = json.loads((directory / "letters.json").read_bytes())["letters"]
        wanted = len(self.parameters.text)
        return [] if found == wanted else [f"letters.json: {found} of {wanted} letters"]
'''
STUDY = """\
study: letters
question: Are six letters more than three?
place: {nearby: {}}
system: {paper: {grade: 2}}
workload: {letters: {text: abc}}
settings: {spelling: C}
factors:
  text:
    short: {}
    long: {workload: {letters: {text: abcdef}}}
arm: text
trials: {blocks: 6}
metrics: {primary: letters}
"""


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as made:
        made.study(STUDY)
        yield made


def installed(directory: Path, *, point: str = "letters = letters_plugin:Letters") -> Path:
    """A package as pip leaves it: its module, and what it says of its entry points."""
    (directory / "letters_plugin.py").write_text(PLUGIN, encoding="utf-8")
    facts = directory / "letters_plugin-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: letters-plugin\nVersion: 1.0\n", encoding="utf-8")
    kinds = {"places": "nearby = letters_plugin:Nearby", "systems": "paper = letters_plugin:Paper"}
    kinds |= {"settings": "spelling = letters_plugin:Spelling", "workloads": point}
    text = "".join(f"[fairtrial.{group}]\n{each}\n" for group, each in kinds.items())
    (facts / "entry_points.txt").write_text(text, encoding="utf-8")
    return directory


def fairtrial(here: Desk, *arguments: str | Path, plugin: Path | None) -> subprocess.CompletedProcess[str]:
    environment = here.environment if plugin is None else {**here.environment, "PYTHONPATH": str(plugin)}
    command = [FAIRTRIAL, *map(str, arguments)]
    return subprocess.run(command, cwd=here.directory, env=environment, capture_output=True, text=True, check=False)


def test_kinds_of_a_package_are_run_reported_and_verified(here: Desk, tmp_path: Path) -> None:
    plugin = installed(tmp_path)
    ran = fairtrial(here, "run", "study.yaml", "--plain", plugin=plugin)
    assert ran.returncode == 0, ran.stderr
    report = json.loads((here.run / "report" / "report.json").read_text(encoding="utf-8"))
    (comparison,) = report["analysis"]["cells"][0]["comparisons"]["letters"]
    assert (comparison["verdict"], comparison["ratio"]["estimate"]) == ("faster", pytest.approx(2.0))
    text = (here.run / "report" / "report.txt").read_text(encoding="utf-8")
    assert "Place: nearby" in text
    assert "grade 2" in text
    assert fairtrial(here, "verify", here.run, plugin=plugin).returncode == 0
    assert "program wc" in fairtrial(here, "doctor", plugin=plugin).stdout
    without = fairtrial(here, "verify", here.run, plugin=None)
    assert without.returncode == 1
    assert "unknown workload `letters`" in without.stdout


def test_files_of_a_workload_of_a_package_are_held_against_each_other(here: Desk, tmp_path: Path) -> None:
    study = here.study(
        STUDY.replace("{text: abcdef}", "{text: äöü}").replace("blocks: 6", "blocks: 1, voided_limit: 0")
    )
    said = fairtrial(here, "run", study, "--plain", plugin=installed(tmp_path))
    assert said.returncode == 3, "in the C locale wc counts bytes"
    assert "letters.json: 6 of 3 letters" in said.stdout + said.stderr


def test_a_name_that_is_taken_ends_a_command_and_names_its_package(here: Desk, tmp_path: Path) -> None:
    said = fairtrial(here, "plan", "study.yaml", plugin=installed(tmp_path, point="tpcc = letters_plugin:Letters"))
    assert said.returncode == 3
    assert "the name is taken" in " ".join(said.stderr.split())
    assert "letters-plugin" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    "registered",
    [
        ("letters = nothing_there:Letters", "cannot be imported: ModuleNotFoundError"),
        ("letters = letters_plugin:Lettres", "cannot be imported: AttributeError"),
        ("letters = letters_plugin:LettersParameters", "is not a subclass of Workload"),
        ("words = letters_plugin:Letters", "calls itself `letters`"),
    ],
)
def test_what_cannot_be_registered_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: tuple[str, str]
) -> None:
    point, words = registered
    sys.modules.pop("letters_plugin", None)  # another directory's
    monkeypatch.syspath_prepend(installed(tmp_path, point=point))
    with pytest.raises(PlaceError, match=re.escape(words)) as refused:
        _ = Kinds(WORKLOADS.values(), base=Workload, group="fairtrial.workloads").known
    assert "letters-plugin" in str(refused.value)
