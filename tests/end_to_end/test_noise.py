"""An A/A run on SQLite, a run of the study after it, and what the second one knows from the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk

STUDY = """\
study: journals
system: {sqlite: {pragmas: {synchronous: "OFF"}}}
workload: {oltp: {table_size: 500, ramp_up: 100ms, transactions: 100, think_time: 5ms, interval: 100ms}}
factors:
  journal:
    delete: {system: {sqlite: {pragmas: {journal_mode: DELETE}}}}
    wal: {system: {sqlite: {pragmas: {journal_mode: WAL}}}}
arm: journal
trials: {blocks: 3, seed: 7}
metrics: {primary: throughput_tps, secondary: [latency_ns_p95]}
telemetry: {interval: 100ms}
"""


def analysis_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "report" / "report.json").read_bytes())["analysis"]
    return found


@pytest.mark.servers
def test_an_aa_run_measures_the_place_and_later_runs_there_show_its_floor(here: Desk) -> None:
    study = here.study(STUDY)
    refused = here.fairtrial("power", study, code=3)
    assert "--aa" in refused.stderr

    assert "nothing differs between the arms" in here.fairtrial("plan", study, "--aa").stdout
    first = here.fairtrial("run", study, "--aa", drawn=True)
    assert "kept the noise floor of this place" in first.stdout
    aa = here.run
    assert aa.name.startswith("journals-aa-")
    noise = analysis_of(aa)["noise"]
    assert {each["metric"] for each in noise["metrics"]} >= {"throughput_tps", "latency_ns_p95"}
    assert all(each["blocks"] == 3 and each["floor"] > 0 for each in noise["metrics"])
    assert json.loads((aa / "plan.json").read_bytes())["against_itself"]
    assert "Noise of this place" in (aa / "report" / "report.txt").read_text()
    assert 'id="noise"' in (aa / "report" / "report.html").read_text()
    here.fairtrial("verify", aa)

    second = here.fairtrial("run", study)
    assert "noise floor of this place: ±" in second.stdout
    later = next(run for run in here.runs if run != aa)
    floors = analysis_of(later)["floors"]
    assert {floor["metric"] for floor in floors} >= {"throughput_tps", "latency_ns_p95"}
    assert all(floor["same_study"] and floor["date"] == noise["date"] for floor in floors)
    assert "Noise floor of this place" in (later / "report" / "report.txt").read_text().replace("\n", " ")

    for profile in (here.state / "noise").iterdir():  # a report never changes after its run
        profile.unlink()
    here.fairtrial("report", later)
    assert analysis_of(later)["floors"] == floors
    here.fairtrial("verify", later)

    asked = here.fairtrial("power", study, "--from", later, "--effect", "50%")
    assert "an effect of 50 %" in asked.stdout
    again = here.fairtrial("run", later, "--resume", "--aa", code=2)
    assert "--aa" in again.stderr
