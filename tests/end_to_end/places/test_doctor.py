"""`fairtrial doctor` as installed, on this machine, and what a run keeps of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk
from support.machines.ssh_host import SSHD, host

from fairtrial import record
from fairtrial.record.models import PlaceOpened
from fairtrial.studies.ready import bundled

STUDY = """\
study: nap
workload: {command: {run: sleep 0.01}}
factors:
  length:
    short: {}
    long: {workload: {command: {run: sleep 0.02}}}
arm: length
trials: {blocks: 2, seed: 5}
metrics: {primary: elapsed_s}
"""
GRADES = {"fine", "caution", "unfit", "unknown"}


def asked(here: Desk, *words: str | Path) -> list[dict[str, Any]]:
    """What the command says as JSON; its exit code follows from it, whatever this machine is doing."""
    done = here.fairtrial("doctor", *words, "--json", code=None)
    assert done.returncode in {0, 1}, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["places"]
    unfit = [finding for place in found for finding in place["findings"] if finding["grade"] == "unfit"]
    assert (done.returncode == 1) == bool(unfit)
    return found


def test_this_machine_as_json(here: Desk) -> None:
    (found,) = asked(here)
    assert found["place"] == {"local": {"state_directory": None}}
    findings = {finding["name"]: finding for finding in found["findings"]}
    assert {finding["grade"] for finding in findings.values()} <= GRADES
    assert {"frequency_scaling", "other_load", "disk_space", "cgroups", "kvm", "program fio"} <= set(findings)
    assert all(finding["why"] for finding in findings.values())
    assert all(finding["fix"] for finding in findings.values() if finding["grade"] != "fine")
    server = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert (findings["program mariadbd"]["grade"] == "fine") == (server is not None)
    studies = {study["study"]: study for study in found["studies"]}
    assert set(studies) == {file.stem for file in bundled()}
    assert studies["sqlite-wal"]["can_run"] is True
    assert studies["mariadb-oltp"]["can_run"] == (server is not None)
    assert all(study["lacks"] for study in studies.values() if not study["can_run"])


def test_this_machine_as_tables(here: Desk) -> None:
    done = here.fairtrial("doctor", code=None)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("place local: ")
    assert lines[0].startswith("place local: unfit") == (done.returncode == 1)
    graded = [line.split()[1] for line in lines if line.split()[:1] and line.split()[0] in GRADES]
    assert {"steal", "memory_pressure", "reflink", "perf"} <= set(graded)
    assert any(line.split()[1:2] == ["sqlite-wal"] for line in lines)
    assert list(here.state.glob(".doctor*")) == []


@pytest.mark.skipif(SSHD is None, reason="no OpenSSH server on this machine")
def test_a_study_is_asked_about_at_each_of_its_places(here: Desk) -> None:
    with host(here) as far:
        there = f"{{ssh: {{host: far, config: {far.config}, state_directory: {here.state}}}}}"
        study = here.study(f"place: {there}\n{STUDY}")
        (found,) = asked(here, study)
    assert found["place"]["ssh"]["host"] == "far"
    assert {study["study"]: study["can_run"] for study in found["studies"]}["nap"] is True


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("locl", "did you mean `local`?"),
        ("{vm: {}}", "vm.kernel"),
        ("missing.yaml", "missing.yaml"),
    ],
)
def test_a_place_that_is_none_is_bad_input(here: Desk, word: str, said: str) -> None:
    done = here.fairtrial("doctor", word, code=2)
    assert said in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""


def test_a_host_that_cannot_be_reached_is_the_environments_fault(here: Desk) -> None:
    done = here.fairtrial("doctor", "ssh://127.0.0.1:1", code=3)
    assert "ssh cannot log in to 127.0.0.1" in done.stderr


def test_every_run_keeps_what_it_found_reports_it_and_is_verified(here: Desk) -> None:
    here.fairtrial("run", here.study(STUDY))
    found = record.read(here.run)
    openings = [event for event in found.events if isinstance(event, PlaceOpened)]
    assert [bool(event.findings) for event in openings] == [True]
    findings = openings[0].findings
    assert {"steal", "other_load", "swap"} <= {finding.name for finding in findings}
    report = json.loads((here.run / "report/report.json").read_text(encoding="utf-8"))
    assert report["record"]["places"][0]["findings"] == [finding.model_dump(mode="json") for finding in findings]
    doubtful = [each for each in findings if each.biases and each.grade in ("caution", "unfit")]
    doubts = [each for each in report["analysis"]["doubts"] if each["code"] == "place_unfit"]
    assert [each["advice"] for each in doubts] == [each.fix for each in doubtful]
    assert "Fitness before the run" in (here.run / "report/report.txt").read_text(encoding="utf-8")
    here.fairtrial("verify", here.run)


def test_a_finding_that_somebody_removes_is_missed_by_verify(here: Desk) -> None:
    here.fairtrial("run", here.study(STUDY))
    path = here.run / "report/report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    report["record"]["places"][0]["findings"].pop()
    path.write_text(json.dumps(report), encoding="utf-8")
    done = here.fairtrial("verify", here.run, code=1)
    assert "report.json: record.places[0].findings (length) is" in done.stdout
