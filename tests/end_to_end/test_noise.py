"""An A/A run on SQLite, a run of the study after it, and what the second one knows from the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk

STUDY = Path(__file__).parents[2] / "studies" / "sqlite-wal.yaml"
SHORT = ("--size", "ci", "--set", "trials.blocks=3", "--set", "factors.users=null")
SIZED = (*SHORT, "--set", "workload.tpcc.duration=1500ms", "--set", "workload.tpcc.virtual_users=1")


def analysis_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "report" / "report.json").read_bytes())["analysis"]
    return found


@pytest.mark.servers
def test_an_aa_run_measures_the_place_and_later_runs_there_show_its_floor(here: Desk) -> None:
    refused = here.fairtrial("power", STUDY, *SIZED, code=3)
    assert "--aa" in refused.stderr

    assert "nothing differs between the arms" in here.fairtrial("plan", STUDY, *SIZED, "--aa").stdout
    first = here.fairtrial("run", STUDY, *SIZED, "--aa", drawn=True)
    assert "kept for later reports" in first.stdout
    aa = here.run
    assert aa.name.startswith("sqlite-wal-aa-")
    noise = analysis_of(aa)["noise"]
    assert {each["metric"] for each in noise["metrics"]} >= {"throughput_tpm", "latency_ns_p95"}
    assert all(each["blocks"] == 3 and each["floor"] > 0 for each in noise["metrics"])
    assert json.loads((aa / "plan.json").read_bytes())["against_itself"]
    assert "Noise of this place" in (aa / "report" / "report.txt").read_text()
    assert 'id="noise"' in (aa / "report" / "report.html").read_text()
    here.fairtrial("verify", aa)

    second = here.fairtrial("run", STUDY, *SIZED)
    assert "noise floor of this place: ±" in second.stdout
    later = next(run for run in here.runs if run != aa)
    floors = analysis_of(later)["floors"]
    assert {floor["metric"] for floor in floors} >= {"throughput_tpm", "latency_ns_p95"}
    assert all(floor["same_study"] and floor["date"] == noise["date"] for floor in floors)
    assert "Noise floor of this place" in (later / "report" / "report.txt").read_text().replace("\n", " ")

    for profile in (here.state / "noise").iterdir():  # a report never changes after its run
        profile.unlink()
    here.fairtrial("report", later)
    assert analysis_of(later)["floors"] == floors
    here.fairtrial("verify", later)

    asked = here.fairtrial("power", STUDY, *SIZED, "--from", later, "--effect", "50%")
    assert "an effect of 50 %" in asked.stdout
    again = here.fairtrial("run", later, "--resume", "--aa", code=2)
    assert "--aa" in again.stderr
