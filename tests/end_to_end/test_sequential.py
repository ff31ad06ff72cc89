"""A study that may stop early, on a real SQLite: it does, says why, and everybody who looks again finds the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk, desk

# Fourteen statements against one: slower on any machine.
STUDY = """\
    study: early
    system: {sqlite: {pragmas: {synchronous: "OFF"}}}
    workload: {oltp: {profile: point_select, table_size: 1000, ramp_up: 100ms, transactions: 20000, interval: 100ms}}
    factors:
      profile:
        short: {}
        long: {workload: {oltp: {profile: read_only, transactions: 1000}}}
    arm: profile
    trials: {blocks: 20, stop: sequential, seed: 3}
    metrics: {primary: throughput_tps}
"""


@pytest.fixture(scope="module")
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found
        assert found.processes() == {}, "processes were left behind"


@pytest.fixture(scope="module")
def shown(here: Desk) -> str:
    """What the run of the study printed."""
    return here.fairtrial("run", here.study(STUDY), drawn=True).stdout


def verified(here: Desk, journal: str) -> str:
    """What `verify` finds in the run with another journal."""
    path = here.run / "journal.jsonl"
    own = path.read_text(encoding="utf-8")
    path.write_text(journal, encoding="utf-8")
    try:
        found = here.fairtrial("verify", here.run, code=1)
    finally:
        path.write_text(own, encoding="utf-8")
    return found.stdout + found.stderr


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


def test_a_large_effect_stops_the_run_early_and_every_figure_is_recomputed(here: Desk, shown: str) -> None:
    planned = here.fairtrial("plan", here.study(STUDY)).stdout
    assert "4 to 20 blocks per cell" in planned  # one comparison: three blocks are too few for a first look
    assert "shortest duration" in planned
    assert "longest" in planned
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


@pytest.mark.usefixtures("shown")
def test_a_decision_that_the_trials_do_not_give_is_found(here: Desk) -> None:
    text = (here.run / "journal.jsonl").read_text(encoding="utf-8")
    assert '"reason":"difference"' in text
    found = verified(here, text.replace('"reason":"difference"', '"reason":"futility"'))
    assert "journal.jsonl: cell all stopped with" in found


@pytest.mark.usefixtures("shown")
def test_a_look_whose_figures_the_trials_do_not_give_is_found(here: Desk) -> None:
    """The decision may be right and what it is said to rest on not."""
    text = (here.run / "journal.jsonl").read_text(encoding="utf-8")
    changed, times = re.subn(r'"estimate":-?[0-9.e-]+', '"estimate":0.125', text, count=1)
    assert times == 1
    found = verified(here, changed)
    assert "estimate is 0.125 but recomputed" in found
    assert "journal.jsonl: look after round" in found
