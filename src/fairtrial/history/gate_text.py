"""A gate's checks as text, as Markdown and as JUnit XML, which continuous integration shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from fairtrial.history.gating import AcceptedRegression, Gate, GateCheck, Status
from fairtrial.report import markdown as marked
from fairtrial.report import numbers
from fairtrial.report.text import columns
from fairtrial.words import printable

SUITE: Final = "fairtrial gate"
_MARK: Final[dict[Status, str]] = {"failed": "✗", "undecided": "?", "accepted": "!", "passed": "✓", "skipped": "–"}


def text(gate: Gate) -> Iterator[str]:
    """A table, then notes."""
    rows = [[each.status, each.series, each.metric, each.message] for each in _ordered(gate)]
    yield from columns.table(["check", "series", "metric", "result"], rows, left=3)
    yield ""
    yield summary(gate)
    for note in gate.notes:
        yield from columns.prose(f"note: {note}", indent="  ")
    for entry in gate.ledger:
        yield from columns.prose(_entry(entry), indent="  ")


def summary(gate: Gate) -> str:
    """`failed against history: 1 of 4 checks failed, 0 skipped`."""
    found = [each.status for each in gate.checks]
    failed, skipped = found.count("failed"), found.count("skipped")
    if not failed and gate.outcome == "failed":
        return f"failed against {gate.against}: nothing could be checked, {skipped} skipped"
    others = [f"{count} {name}" for name in ("undecided", "accepted") if (count := found.count(name))]
    counts = [f"{failed} of {len(found)} checks failed", *others, f"{skipped} skipped"]
    return f"{gate.outcome} against {gate.against}: {', '.join(counts)}"


def markdown(gate: Gate) -> str:
    """For a comment on a change. Whatever somebody else wrote is a code span."""
    head = [f"### {SUITE}: {marked.code(summary(gate))}", "", "| | series | metric | result |", "|---|---|---|---|"]
    rows = [
        f"| {_MARK[each.status]} | {' | '.join(map(marked.cell, (each.series, each.metric, each.message)))} |"
        for each in _ordered(gate)
    ]
    ledger = [
        f"- ledger: {marked.code(_accepted(each))}: {each.state}: {marked.code(each.because)} "
        f"by {marked.code(each.by)} ({marked.code(each.at)})"
        for each in gate.ledger
    ]
    notes = [*(f"- {marked.code(note)}" for note in gate.notes), *ledger]
    return "\n".join([*head, *rows, *([""] if notes else []), *notes]) + "\n"


def _entry(entry: AcceptedRegression) -> str:
    return f"ledger: {_accepted(entry)}: {entry.state}: {entry.because} (by {entry.by}, {entry.at})"


def _accepted(entry: AcceptedRegression) -> str:
    """`elapsed_s of head worse by up to 5 % until 2030-01-31`."""
    series = f" of {entry.series}" if entry.series else ""
    return f"{entry.metric}{series} worse by up to {numbers.percent(entry.worse_by)} until {entry.until}"


def junit(gate: Gate) -> str:
    """One suite, one case per check, its class the series and its name the metric; the suite's output is the ledger."""
    counts = {
        "tests": len(gate.checks),
        "failures": sum(each.status == "failed" for each in gate.checks),
        "skipped": sum(each.status in ("skipped", "undecided") for each in gate.checks),
        "errors": 0,
    }
    attributes = {name: str(count) for name, count in counts.items()}
    root = ET.Element("testsuites", attributes)
    suite = ET.SubElement(root, "testsuite", {"name": SUITE, **attributes})
    for each in gate.checks:
        series, metric, message = map(printable, (each.series, each.metric, each.message))  # XML has no escape for ESC
        case = ET.SubElement(suite, "testcase", {"classname": series, "name": metric, "time": "0"})
        if each.status == "failed":
            ET.SubElement(case, "failure", {"message": message, "type": "slower"}).text = message
        elif each.status in ("skipped", "undecided"):
            ET.SubElement(case, "skipped", {"message": message})
        else:
            ET.SubElement(case, "system-out").text = message
    if gate.ledger:
        ET.SubElement(suite, "system-out").text = "\n".join(printable(_entry(each)) for each in gate.ledger)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _ordered(gate: Gate) -> list[GateCheck]:
    """Failures first."""
    return sorted(gate.checks, key=lambda each: list(_MARK).index(each.status))
