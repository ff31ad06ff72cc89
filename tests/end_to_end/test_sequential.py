"""A study that may stop early, on a real SQLite: it does, says why, and everybody who looks again finds the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from support.command_line import Desk

# Fourteen statements against one: slower on any machine.
STUDY = """\
    study: early
    system: {sqlite: {pragmas: {synchronous: "OFF"}}}
    workload: {oltp: {profile: point_select, table_size: 1000, ramp_up: 100ms, duration: 500ms, interval: 100ms}}
    factors:
      profile:
        short: {}
        long: {workload: {oltp: {profile: read_only}}}
    arm: profile
    trials: {blocks: 20, stop: sequential, seed: 3}
    metrics: {primary: throughput_tps}
"""


def stops(run: Path) -> dict[str, tuple[int, str]]:
    """By cell: blocks and reason, as journalled."""
    lines = [json.loads(line)["entry"] for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    looks = [entry for entry in lines if entry["event"] == "looked"]
    return {
        cell["cell"]: (cell["blocks"], cell["reason"])
        for look in looks
        for cell in look["cells"]
        if cell["decision"] == "stop"
    }


def test_a_large_effect_stops_the_run_early_and_every_figure_is_recomputed(here: Desk) -> None:
    study = here.study(STUDY)
    planned = here.fairtrial("plan", study).stdout
    assert "4 to 20 blocks per cell" in planned  # one comparison: three blocks are too few for a first look
    assert "smallest duration" in planned
    assert "largest" in planned
    shown = here.fairtrial("run", study, drawn=True).stdout
    (blocks, reason) = stops(here.run)["all"]
    assert reason == "difference"
    assert 4 <= blocks < 20
    assert f"all stops after {blocks} blocks: a difference is shown" in shown
    analysis: dict[str, Any] = json.loads((here.run / "report" / "report.json").read_bytes())["analysis"]
    assert analysis["finished"]
    assert analysis["counts"]["finished"] == 2 * blocks
    assert analysis["stopping"]["cells"] == [{"cell": "all", "blocks": blocks, "round": blocks, "reason": reason}]
    compared = analysis["cells"][0]["comparisons"]["throughput_tps"][0]
    assert compared["verdict"] == "slower"
    assert compared["p"] > compared["p_once"]
    text = (here.run / "report" / "report.txt").read_text(encoding="utf-8")
    assert f"stopped after {blocks} blocks, in round {blocks}: a difference is shown" in text
    assert "Stopping" in (here.run / "report" / "report.html").read_text(encoding="utf-8")
    here.fairtrial("verify", here.run)

    a_decision_that_the_trials_do_not_give_is_found(here)
    a_look_whose_figures_the_trials_do_not_give_is_found(here)


def a_decision_that_the_trials_do_not_give_is_found(here: Desk) -> None:
    journal = here.run / "journal.jsonl"
    text = journal.read_text(encoding="utf-8")
    assert '"reason":"difference"' in text
    journal.write_text(text.replace('"reason":"difference"', '"reason":"futility"'), encoding="utf-8")
    found = here.fairtrial("verify", here.run, code=1)
    assert "journal.jsonl: cell all stopped with" in found.stdout + found.stderr
    journal.write_text(text, encoding="utf-8")


def a_look_whose_figures_the_trials_do_not_give_is_found(here: Desk) -> None:
    """The decision may be right and what it is said to rest on not."""
    journal = here.run / "journal.jsonl"
    text = journal.read_text(encoding="utf-8")
    changed, times = re.subn(r'"estimate":-?[0-9.e-]+', '"estimate":0.125', text, count=1)
    assert times == 1
    journal.write_text(changed, encoding="utf-8")
    found = here.fairtrial("verify", here.run, code=1)
    assert "estimate is 0.125 but recomputed" in found.stdout + found.stderr
    assert "journal.jsonl: look after round" in found.stdout + found.stderr
