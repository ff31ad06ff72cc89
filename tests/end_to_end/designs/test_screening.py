"""A screening of commands as installed: rows run, effects reported, the record verified, the strongest confirmed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import Desk

from fairtrial.record import read

STUDY = r"""
study: screened
question: Which of three variables make this program fast?
workload:
  command:
    run: >-
      awk 'BEGIN { own = ("A" in ENVIRON) + 2 * ("B" in ENVIRON) + 4 * ("C" in ENVIRON);
      srand(ENVIRON["FAIRTRIAL_SEED"] % 99991 + own);
      print "speed " 100 * ("A" in ENVIRON ? 1.5 : 1) * (1 + rand() / 50) }'
    metrics: {speed: {regex: 'speed ([0-9.]+)', unit: 1/s, better: higher}}
factors:
  a: {off: {}, on: {settings: {environment: {A: '1'}}}}
  b: {off: {}, on: {settings: {environment: {B: '1'}}}}
  c: {off: {}, on: {settings: {environment: {C: '1'}}}}
trials: {design: plackett_burman, blocks: 3, seed: 1}
metrics: {primary: speed}
"""


def run_of(here: Desk, study: str) -> Path:
    return next(path for path in here.directory.glob(f"runs/{study}-2*"))


def _same_in_r(run: Path) -> None:
    """Where R is; elsewhere nothing is asked."""
    if shutil.which("Rscript") is None:
        return
    script = ["Rscript", str(run / "report" / "raw_data.r")]
    lines = subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines()
    header, *rows = (line.split("\t") for line in lines)
    document = json.loads((run / "report" / "report.json").read_text(encoding="utf-8"))
    effects = document["analysis"]["screening"]["metrics"][0]["effects"]
    by_option = {row[header.index("option")]: dict(zip(header, row, strict=True)) for row in rows}
    assert len(by_option) == len(rows) == len(effects)
    for effect in effects:  # in whatever order: trials of one second draw one number, so that two may be equally strong
        found = by_option[effect["option"]]
        for name, value in (("ratio", effect["ratio"]), ("low", effect["interval"][0]), ("p", effect["p"])):
            assert float(found[name]) == pytest.approx(value, rel=1e-6)
        if not effect["stands_out"]:  # exchanged trials, which R does not have, only raise what would stand out
            assert float(found["p_adjusted"]) == pytest.approx(effect["p_adjusted"], rel=1e-5)


def test_a_screening_from_its_plan_to_its_confirmation(here: Desk) -> None:
    study = here.study(STUDY)
    planned = here.fairtrial("plan", study).stdout
    assert "3 options in 4 rows, resolution III" in planned
    assert "12 trials (4 rows × 3 replicates)" in planned
    power = here.fairtrial("power", study, "--effect", "4%").stdout
    assert "at 3 %, an effect of 4 % needs" in power
    said = here.fairtrial("run", study).stdout
    assert "In speed 1 of 3 options stands out: a (on instead of off: 1." in " ".join(said.split())
    run = run_of(here, "screened")
    here.fairtrial("verify", run)
    document = json.loads((run / "report" / "report.json").read_text(encoding="utf-8"))
    assert document["analysis"]["screening"]["nominated"][0] == "a"
    assert document["analysis"]["cells"][0]["comparisons"] == {"speed": []}
    record = read(run)
    assert record.plan.screening is not None
    for trial in record.trials:
        on = [
            option.upper() for option, level in record.plan.screening.levels(trial.trial.arm).items() if level == "on"
        ]
        assert trial.resolved.settings == ({"environment": dict.fromkeys(on, "1")} if on else {})
    _same_in_r(run)
    confirmed = here.fairtrial("screen", run, "--confirm", "1", "--blocks", "2").stdout
    assert "study: screened-confirm.yaml, which compares a" in confirmed
    report = (run_of(here, "screened-confirm") / "report" / "report.txt").read_text(encoding="utf-8")
    assert f"nominated by the screening run {run.name}" in " ".join(report.split())
    assert "a.on" in report
    again = here.fairtrial("screen", run, code=2)
    assert "screened-confirm.yaml exists" in again.stderr


def test_an_ordinary_run_cannot_be_confirmed_and_a_screening_has_no_a_a_run(here: Desk) -> None:
    assert "no baseline arm to run against itself" in here.fairtrial("plan", here.study(STUDY), "--aa", code=2).stderr
    ordinary = STUDY.replace("trials: {design: plackett_burman, blocks: 3, seed: 1}", "arm: a\ntrials: {blocks: 1}")
    few = "\n".join(line for line in ordinary.splitlines() if not line.startswith(("  b:", "  c:")))
    here.fairtrial("run", here.study(few))
    assert "is not a screening" in here.fairtrial("screen", run_of(here, "screened"), code=3).stderr
