"""The gate for continuous integration on two commits of a repository, and as a job runs it: the action's own script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ci_gate import script  # benches/ci_gate.py
from support.command_line import Desk, desk

# Prints what it "took": the commit says how much, and a counter beside it gives both arms the same little noise.
WORK = 'n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count; echo "took = $((MS + n % 3))"\n'
BUILD = "echo '#!/bin/sh' >work; cat work.sh >>work; chmod +x work"
STUDY = """\
study: gate
workload: {command: {run: ./work, directory: '{build}', metrics: {took: {regex: 'took = (\\d+)'}}}}
trials: {blocks: 6, margin: 2%}
metrics: {primary: [took]}
"""
LEDGER = "- {metric: took, worse_by: 8 %, because: a better plan, by: Ada, until: 2999-12-31}\n"
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A repository whose second commit takes 6 % longer."""
    with desk() as found:
        monkeypatch.setenv("FAIRTRIAL_CACHE_DIRECTORY", str(found.state / "cache"))
        subprocess.run([*GIT, "init", "-q", "-b", "main"], cwd=found.directory, check=True)
        (found.directory / ".gitignore").write_text("state\n")
        for milliseconds in (1000, 1060):
            (found.directory / "work.sh").write_text(WORK.replace("MS", str(milliseconds)))
            for words in (("add", "."), ("commit", "-q", "-m", f"{milliseconds} ms")):
                subprocess.run([*GIT, *words], cwd=found.directory, check=True)
        (found.directory / "work.sh").unlink()  # what is not committed is not measured
        yield found


def test_a_slower_commit_fails_until_its_regression_is_accepted(here: Desk) -> None:
    commits = ("--base", "HEAD^1", "--head", "HEAD", "--build", BUILD)
    here.fairtrial("run", here.study(STUDY), *commits, "--output", "runs")
    ledger = here.directory / "fairtrial-accepted.yaml"
    failed = here.fairtrial("gate", "runs", "--arms", "--markdown", "gate.md", "--junit", "gate.xml", code=1)
    assert "failed against base: 1 of 1 checks failed, 0 skipped" in failed.stdout
    assert "| ✗ | `head` | `took` | `+" in (here.directory / "gate.md").read_text()
    (failure,) = ET.parse(here.directory / "gate.xml").getroot().iter("failure")
    assert ": slower" in failure.attrib["message"]
    ledger.write_text(LEDGER)
    found = json.loads(here.fairtrial("gate", "runs", "--arms", "--json").stdout)
    assert [(each["status"], each["series"]) for each in found["checks"]] == [("accepted", "head")]
    assert [each["state"] for each in found["ledger"]] == ["used"]
    ledger.write_text(LEDGER.replace("8 %", "eight"))
    refused = here.fairtrial("gate", "runs", "--arms", code=2).stderr
    assert "fairtrial-accepted.yaml:1:28: 0.worse_by: expected a share" in refused


@pytest.mark.long
def test_the_jobs_script_measures_judges_and_says_so(here: Desk) -> None:
    """By `compare`, with the report that `--output` keeps: the test above has its cheaper parts."""
    variables = {
        "COMMAND": "./work",
        "STUDY": "",
        "BUILD": BUILD,
        "BASE": "HEAD^1",
        "HEAD": "HEAD",
        "OPTIONS": r"--metric took\s=\s(\d+) --blocks 6 --stop fixed --warm-up 0",
        "LEDGER": "fairtrial-accepted.yaml",
        "UNDECIDED": "pass",
    }
    environment = {
        **here.environment,
        **{f"FAIRTRIAL_GATE_{name}": value for name, value in variables.items()},
        "GITHUB_OUTPUT": str(here.state / "output"),
        "GITHUB_STEP_SUMMARY": str(here.state / "summary"),
        "PATH": f"{Path(sys.executable).parent}:{here.environment['PATH']}",
    }
    for ledger, code, outcome in (("", 1, "failed"), (LEDGER, 0, "passed")):
        (here.directory / "fairtrial-accepted.yaml").write_text(ledger)
        done = subprocess.run(
            ["sh", "-c", script()], cwd=here.directory, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        assert f"{outcome} against base: " in done.stdout
        assert (here.state / "output").read_text().splitlines()[-1] == f"outcome={outcome}"
        assert (here.state / "summary").read_text().endswith((here.directory / "fairtrial-gate.md").read_text())
