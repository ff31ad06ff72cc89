"""A gate as text, Markdown and JUnit XML."""

import json
from xml.etree import ElementTree as ET

import pytest

from fairtrial.history import gate_text as report
from fairtrial.history.gating import Gate, GateCheck

GATE = Gate(
    against="history",
    checks=(
        GateCheck(series="a · wal", metric="tpm", status="passed", message="+0.1 %"),
        GateCheck(series='b <"&|', metric="tpm", status="failed", message="−9.8 %; worse & <worse>"),
        GateCheck(series="c", metric="tpm", status="skipped", message="too few runs (4)"),
    ),
    notes=("a note",),
)


def test_junit_is_read_by_the_standard_library_with_counts_and_messages() -> None:
    root = ET.fromstring(report.junit(GATE))
    (suite,) = root.findall("testsuite")
    counts = {"tests": "3", "failures": "1", "skipped": "1", "errors": "0"}
    assert {name: suite.attrib[name] for name in counts} == counts
    assert {name: root.attrib[name] for name in counts} == counts
    cases = suite.findall("testcase")
    assert [(case.attrib["classname"], case.attrib["name"]) for case in cases] == [
        (check.series, check.metric) for check in GATE.checks
    ]
    assert [[child.tag for child in case] for case in cases] == [["system-out"], ["failure"], ["skipped"]]
    assert cases[1][0].attrib["message"] == "−9.8 %; worse & <worse>"


def test_what_xml_cannot_hold_is_an_escape_sequence() -> None:
    check = GateCheck(series="a\x1b[1m", metric="tpm", status="failed", message="accepted up to 5 %: \x00")
    (case,) = ET.fromstring(report.junit(Gate(against="base", checks=(check,)))).iter("testcase")
    assert (case.attrib["classname"], case[0].text) == (r"a\x1b[1m", r"accepted up to 5 %: \x00")


def test_markdown_has_a_row_for_each_check_failures_first() -> None:
    lines = report.markdown(GATE).splitlines()
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert [row.split()[1] for row in rows] == ["✗", "✓", "–"]
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)
    assert lines[-1] == "- `a note`"


def test_nothing_that_somebody_wrote_is_markup() -> None:
    name = "`<b>\n# [x](y)|@team"
    checks = (GateCheck(series=name, metric=name, status="failed", message=name),)
    lines = report.markdown(GATE.model_copy(update={"against": name, "checks": checks, "notes": (name,)})).splitlines()
    assert len(lines) == 7
    assert lines[4] == "| ✗ |" + 3 * r" `` `<b> # [x](y)\|@team `` |"
    assert lines[6] == "- `` `<b> # [x](y)|@team ``"


def test_text_says_how_many_failed() -> None:
    text = "\n".join(report.text(GATE))
    assert "failed against history: 1 of 3 checks failed, 1 skipped" in text
    assert text.index("failed") < text.index("passed")


def test_a_gate_without_any_check_made_says_so() -> None:
    empty = GATE.model_copy(update={"checks": GATE.checks[2:]})
    assert report.summary(empty) == "failed against history: nothing could be checked, 1 skipped"


@pytest.mark.parametrize(("checks", "outcome"), [(GATE.checks, "failed"), (GATE.checks[:1], "passed")])
def test_json_holds_the_outcome(checks: tuple[GateCheck, ...], outcome: str) -> None:
    assert json.loads(GATE.model_copy(update={"checks": checks}).model_dump_json())["outcome"] == outcome
