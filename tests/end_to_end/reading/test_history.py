"""Histories, gates and audits as installed: on real records of short SQLite runs, on CSV, on claims."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.command_line import Desk

NIGHTLY = """\
study: nightly
question: Does SQLite keep its speed from night to night?
system: {sqlite: {pragmas: {synchronous: "OFF"}}}
workload: {oltp: {table_size: 1000, ramp_up: 100ms, transactions: 100, think_time: 2ms, interval: 100ms}}
factors:
  journal:
    wal: {system: {sqlite: {pragmas: {journal_mode: WAL}}}}
    memory: {system: {sqlite: {pragmas: {journal_mode: MEMORY}}}}
arm: journal
trials: {blocks: 2, seed: 7}
metrics: {primary: throughput_tps}
telemetry: {interval: 50ms}
"""
CSV = "time,commit,tpm\n" + "".join(
    f"2024.01.{day:02d} 3:00:00 +0100,c{day:02d},{(1000 if day < 12 else 800) + day % 4}\n" for day in range(1, 22)
)
CLAIMS = """\
factors: {arm: [a, b]}
metrics: {tpm: {better: higher}}
claims:
  - {where: Table 1, metric: tpm, contrast: arm, cells: [{change: 10.0}]}
  - {where: Figure 2, unchecked: [{what: smoother, because: a graph}]}
"""
RAW = "arm,tpm\na,99\nb,110\na,101\nb,109\na,100\nb,111\n"


def test_real_runs_make_series_and_pass_or_fail_a_gate(here: Desk) -> None:
    study = here.study(NIGHTLY)
    for _ in range(2):
        here.fairtrial("run", study)
    found = json.loads(here.fairtrial("history", "runs", "--json").stdout)
    assert [each["series"] for each in found["series"]] == ["nightly · wal", "nightly · memory"]
    names = [run.name for run in here.runs]
    for each in found["series"]:
        assert (each["runs"], each["ns"], each["unit"]) == (names, [2, 2], "transactions/s")
        assert all(value > 0 for value in each["values"])
        assert all(error >= 0 for error in each["standard_errors"])  # two short trials may count the same
        assert "need at least 8 points" in each["doubts"][0]
    reported = json.loads((here.runs[0] / "report" / "report.json").read_text(encoding="utf-8"))
    (cell,) = reported["analysis"]["cells"]
    wal = next(each for each in cell["summaries"]["throughput_tps"] if each["arm"] == "wal")
    product = wal["values"][0] * wal["values"][1]
    assert found["series"][0]["values"][0] == pytest.approx(product**0.5)

    assert "nothing could be checked" in here.fairtrial("gate", "runs", code=1).stdout
    copy = here.directory / "same"
    shutil.copytree(here.runs[0], copy)
    files = ("--junit", "j.xml", "--markdown", "g.md")
    assert (
        "too few trials for a verdict (2)"
        in here.fairtrial("gate", here.runs[0], "--baseline", copy, *files, code=1).stdout
    )
    (suite,) = ET.parse(here.directory / "j.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["skipped"]) == ("2", "2")
    assert "too few trials" in (here.directory / "g.md").read_text(encoding="utf-8")


def test_a_csv_history_changes_alarms_and_is_acknowledged(here: Desk) -> None:
    (here.directory / "nightly.csv").write_text(CSV, encoding="utf-8")
    assert "change at c12: −20.1 %" in here.fairtrial("history", "nightly.csv").stdout
    shut = here.fairtrial("gate", "nightly.csv", "--junit", "gate.xml", code=1)
    assert "level changed at c12" in shut.stdout
    (failure,) = ET.parse(here.directory / "gate.xml").getroot().iter("failure")
    assert "level changed at c12" in failure.attrib["message"]
    (here.directory / "acknowledged.yaml").write_text("- {run: c12, because: durable by default}\n", encoding="utf-8")
    assert "known: durable by default" in here.fairtrial("gate", "nightly.csv").stdout
    assert "1 change, known" in here.fairtrial("history", "nightly.csv").stdout


def test_an_audit_exits_with_one_only_where_a_claim_is_contradicted(here: Desk) -> None:
    claims = here.study(CLAIMS, name="claims.yaml")
    (here.directory / "raw.csv").write_text(RAW, encoding="utf-8")
    shown = here.fairtrial("audit", claims, "--data", "raw.csv").stdout
    assert "2 claims: 1 confirmed, 0 contradicted, 0 not decided, 1 not checkable" in shown
    here.study(CLAIMS.replace("10.0", "12.0"), name="claims.yaml")
    found = json.loads(here.fairtrial("audit", claims, "--data", "raw.csv", "--json", code=1).stdout)
    assert [each["verdict"] for each in found["findings"]] == ["contradicted", "not checkable"]
    assert (found["findings"][0]["printed"], found["findings"][0]["computed"]) == ("12.0", "10.0")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("history", "nowhere"), "expected a run or a directory of runs"),
        (("history", "none.csv"), "cannot read the file"),
        (("history", "nightly.csv", "--alpha", "five"), "--alpha"),
        (("history", "nightly.csv", "--alpha", "0"), "expected a share between 0 and 1, found 0"),
        (("history", "nightly.csv", "--metric", "speed"), "unknown column of numbers `speed`"),
        (("gate", "nightly.csv", "other.csv", "--baseline", "run"), "compares one run: found 2 paths"),
        (("audit", "nowhere.yaml"), "cannot read the file"),
    ],
)
def test_mistakes_are_refused_with_a_hint(arguments: tuple[str, ...], expected: str, here: Desk) -> None:
    (here.directory / "nightly.csv").write_text(CSV, encoding="utf-8")
    refused = here.fairtrial(*arguments, code=2).stderr
    assert expected in refused
    assert "hint:" in refused


def test_a_report_that_cannot_be_written_says_where(here: Desk) -> None:
    (here.directory / "nightly.csv").write_text(CSV, encoding="utf-8")
    refused = here.fairtrial("gate", "nightly.csv", "--junit", str(Path("nowhere") / "gate.xml"), code=3).stderr
    assert "cannot write nowhere/gate.xml" in refused
