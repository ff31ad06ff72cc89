"""A curve as installed: a command whose output follows the Universal Scalability Law, from a study to every report."""

import csv
import io
import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from support.command_line import Desk, desk

SCRIPT = """\
#!/bin/sh
drawn=$(printf %s "$FAIRTRIAL_SEED $LOCK $USERS" | cksum)
awk -v n="$USERS" -v lock="$LOCK" -v r=$((${drawn%% *} % 65536)) 'BEGIN {
  if (lock == "plain") { l = 100; s = 0.03; k = 0.0006 } else { l = 85; s = 0.01; k = 0.0001 }
  print "rate", l * n / (1 + s * (n - 1) + k * n * (n - 1)) * (0.99 + 0.02 * r / 65536) }'
"""
STUDY = """\
study: locks-over-users
workload: {command: {run: "sh SCRIPT", metrics: {rate: {regex: "rate (.+)", unit: /s, better: higher}}}}
factors:
  lock: {plain: {settings: {environment: {LOCK: plain}}}, split: {settings: {environment: {LOCK: split}}}}
  users: {values: ["1", "6", "24", "80"], of: settings.environment.USERS}
arm: lock
curve: {over: users, model: usl}
trials: {blocks: 2, seed: 1}
metrics: {primary: rate}
"""


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found


def test_a_study_over_a_numeric_factor_reports_curves_that_verify(here: Desk) -> None:
    script = here.study(SCRIPT, "law.sh")
    study = here.study(STUDY.replace("SCRIPT", str(script)))
    assert "curve        usl over users" in here.fairtrial("plan", study).stdout
    here.fairtrial("run", study, "--output", "runs", drawn=True)
    here.fairtrial("verify", here.run)
    report = here.run / "report"
    (curve,) = json.loads((report / "report.json").read_text())["analysis"]["curves"]
    plain, split = curve["arms"]
    assert plain["parameters"]["sigma"]["estimate"] == pytest.approx(0.03, abs=0.01)
    assert plain["peak"]["at"]["estimate"] == pytest.approx(40.2, rel=0.1)
    assert split["parameters"]["lambda"]["estimate"] == pytest.approx(85, rel=0.03)
    assert [each["at"] for each in curve["pairs"][0]["crossings"]] == [pytest.approx(8.9, rel=0.2)]
    said = (report / "report.txt").read_text()
    assert "Curves: Universal Scalability Law" in said
    assert "With plain, rate peaks at" in said
    assert (report / "figures" / "curve-rate.svg").exists()
    assert '<section id="curves">' in (report / "report.html").read_text()
    assert "curves <- list(" in (report / "raw_data.r").read_text()
    if (r := shutil.which("Rscript")) is not None:
        printed = subprocess.run([r, str(report / "raw_data.r")], capture_output=True, text=True, check=True).stdout
        rows = csv.DictReader(
            io.StringIO(printed.rpartition("metric\tcell\tarm\twhat")[1] + printed.rpartition("\twhat")[2]),
            delimiter="\t",
        )
        found = {(row["arm"], row["what"]): float(row["estimate"]) for row in rows}
        assert found["split", "kappa"] == pytest.approx(split["free"]["kappa"], rel=1e-6)
        assert found["plain", "peak"] == pytest.approx(plain["peak"]["at"]["estimate"], rel=1e-6)
    damaged = report / "report.json"
    damaged.write_text(damaged.read_text().replace('"spread": "blocks"', '"spread": "repeats"'))
    assert "curves[0].spread" in here.fairtrial("verify", here.run, code=1).stdout


def test_a_table_of_anyone_is_fitted_and_a_column_that_is_not_numeric_is_refused(here: Desk) -> None:
    raytracer = "1,20 4,78 8,130 12,170 16,190 20,200 24,210 28,230 32,260 48,280 64,310"
    table = here.study("processors,rays\n" + raytracer.replace(" ", "\n") + "\n", "raytracer.csv")
    printed = here.fairtrial("analyse", table, "--value", "rays", "--curve", "processors").stdout
    assert "has no peak that these trials show up to 64 processors; one at 59.9 or more is not excluded" in " ".join(
        printed.split()
    )
    assert "0.0564" in printed
    document = json.loads(here.fairtrial("analyse", table, "--value", "rays", "--curve", "processors", "--json").stdout)
    assert document["analysis"]["curves"][0]["spread"] == "scatter"
    words = here.study("size,arm,x\nsmall,a,1\nlarge,a,2\nhuge,a,3\n", "words.csv")
    refused = here.fairtrial("analyse", words, "--value", "x", "--arm", "arm", "--curve", "size", code=2)
    assert "expected a number above 0, found 'small'" in refused.stderr
    unknown = here.fairtrial("analyse", table, "--value", "rays", "--curve", "processors=cubic", code=2)
    assert "expected `usl`, `linear`, `loess`, found 'cubic'" in unknown.stderr
