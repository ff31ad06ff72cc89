"""`fairtrial tune` as installed, on a program whose best options are known: search, kills, confirmation, `verify`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, desk
from support.machines.apart import apart
from support.machines.terminal import killed_once_drawn

# The score has a peak of 1.35 times the default's at x = 32, and noise of about 1 % that seed and x decide. The seed of
# the search makes it propose 16, 230, which fails, and 2, which breaches the guardrail.
SURFACE = """
BEGIN {
    srand(ENVIRON["FAIRTRIAL_SEED"] % 1000003 + 7919 * x)
    for (i = 0; i < 12; i++) noise += rand()
    printf "score = %.3f\\n", 1000 * exp(0.3 * exp(-(log(x / 32) ^ 2) / 2) + 0.01 * (noise - 6))
    print "lag = " (x == 2 ? 9 : 1)
    exit x > 200
}
"""
STUDY = """
study: known-surface
question: Which x gives the highest score?
workload:
  command:
    run: awk -v x={{x}} -f {program}
    metrics:
      score: {{regex: 'score = ([\\d.]+)', better: higher}}
      lag: {{regex: 'lag = (\\d+)', better: lower}}
tune:
  options: {{x: {{from: 1, to: 256, scale: log, default: 1}}}}
  budget: 12
  again: {{best: 2, blocks: 2}}
  confirm: {{blocks: 6}}
metrics: {{primary: score, guardrails: [lag]}}
trials: {{seed: 2}}
"""


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        program = found.directory / "surface.awk"
        program.write_text(SURFACE, encoding="utf-8")
        found.study(STUDY.format(program=program))
        yield found


def committed(tuning: Path) -> dict[str, int]:
    """Committed trials, and when each was written."""
    return {
        str(path.relative_to(tuning)): path.stat().st_mtime_ns
        for path in tuning.glob("**/trials/[!.]*/trial.json")
        if ".partial" not in str(path)
    }


def events(tuning: Path) -> list[dict[str, object]]:
    return [json.loads(line)["entry"] for line in (tuning / "tune.jsonl").read_text().splitlines()]


def test_a_tuning_survives_a_kill_finds_the_peak_and_is_recomputed(here: Desk) -> None:
    # It is over in seconds, and waits for no test.
    with apart(killed_once_drawn, str(here.directory), r"p(\d+) of 3", 1, "tune", "study.yaml", "--plain"):
        pass
    kept = committed(here.run)
    assert kept
    told = [event for event in events(here.run) if event["event"] != "tuning_started"]

    done = here.fairtrial("tune", "study.yaml", "--resume", "--plain")

    after = committed(here.run)
    assert {name: after.get(name) for name in kept} == kept
    assert [event for event in events(here.run) if event["event"] != "tuning_started"][: len(told)] == told
    assert "claim: p001 against the default is faster" in done.stdout
    assert "flattered by a factor of" in " ".join(done.stdout.split())
    result = json.loads((here.run / "report" / "tune.json").read_text())
    assert [(each["values"]["x"], each["state"]) for each in result["proposals"]] == [
        (16, "measured"),
        (230, "failed"),
        (2, "infeasible"),
    ]
    assert result["proposals"][2]["reason"] == "lag"
    assert (result["finished"], result["trials"], result["confirmed"]["verdict"]) == (True, len(after), "faster")
    assert result["confirmed"]["low"] < 1.265 < result["confirmed"]["high"]
    assert result["options"] == [{"name": "x", "of": None, "default": 1, "best": 16}]

    journal = here.run / "tune.jsonl"
    lines = journal.read_text().splitlines()
    here.fairtrial("verify", here.run)
    changed = json.loads(lines[2])
    changed["entry"]["gain"] += 0.1
    journal.write_text("\n".join([*lines[:2], json.dumps(changed), *lines[3:]]) + "\n")
    assert "proposal 1: gain is" in here.fairtrial("verify", here.run, code=1).stdout


def test_what_would_run_is_shown_and_run_refuses_the_study(here: Desk) -> None:
    shown = here.fairtrial("tune", "study.yaml", "--dry-run").stdout
    for expected in ("1 to 256, log", "3 proposals", "the best 2 and the default, 2", "6 blocks"):
        assert expected in shown
    assert here.fairtrial("plan", "study.yaml").stdout == shown
    assert not here.runs
    assert "use `fairtrial tune study.yaml`" in here.fairtrial("run", "study.yaml", code=2).stderr
