"""A gate's checks as text, as Markdown and as JUnit XML, which continuous integration shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from fairtrial.history.gating import Gate, GateCheck
from fairtrial.report.text import columns

SUITE: Final = "fairtrial gate"
_MARK: Final = {"passed": "✓", "failed": "✗", "skipped": "–"}


def text(gate: Gate) -> Iterator[str]:
    """A table, then notes."""
    rows = [[each.status, each.series, each.metric, each.message] for each in _ordered(gate)]
    yield from columns.table(["check", "series", "metric", "result"], rows, left=3)
    yield ""
    yield summary(gate)
    for note in gate.notes:
        yield from columns.prose(f"note: {note}", indent="  ")


def summary(gate: Gate) -> str:
    """`failed against history: 1 of 4 checks, 0 skipped`."""
    failed = sum(each.status == "failed" for each in gate.checks)
    skipped = sum(each.status == "skipped" for each in gate.checks)
    if not gate.passed and not failed:
        return f"failed against {gate.against}: nothing could be checked, {skipped} skipped"
    result = "passed" if gate.passed else "failed"
    return f"{result} against {gate.against}: {failed} of {len(gate.checks)} checks failed, {skipped} skipped"


def markdown(gate: Gate) -> str:
    """For a comment on a change."""
    head = [f"### {SUITE}: {summary(gate)}", "", "| | series | metric | result |", "|---|---|---|---|"]
    rows = [
        f"| {_MARK[each.status]} | {_cell(each.series)} | `{each.metric}` | {_cell(each.message)} |"
        for each in _ordered(gate)
    ]
    notes = ["", *(f"- {note}" for note in gate.notes)] if gate.notes else []
    return "\n".join([*head, *rows, *notes]) + "\n"


def junit(gate: Gate) -> str:
    """One suite, one case per check; a case's class is its series, its name the metric."""
    counts = {
        "tests": len(gate.checks),
        "failures": sum(each.status == "failed" for each in gate.checks),
        "skipped": sum(each.status == "skipped" for each in gate.checks),
        "errors": 0,
    }
    attributes = {name: str(count) for name, count in counts.items()}
    root = ET.Element("testsuites", attributes)
    suite = ET.SubElement(root, "testsuite", {"name": SUITE, **attributes})
    for each in gate.checks:
        case = ET.SubElement(suite, "testcase", {"classname": each.series, "name": each.metric, "time": "0"})
        if each.status == "failed":
            ET.SubElement(case, "failure", {"message": each.message, "type": "slower"}).text = each.message
        elif each.status == "skipped":
            ET.SubElement(case, "skipped", {"message": each.message})
        else:
            ET.SubElement(case, "system-out").text = each.message
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _ordered(gate: Gate) -> list[GateCheck]:
    """Failures first."""
    return sorted(gate.checks, key=lambda each: ("failed", "passed", "skipped").index(each.status))


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
