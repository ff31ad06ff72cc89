"""Findings of places in a record: kept with every opening, and read as the worst of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.records import tiny_plan

from fairtrial import record
from fairtrial.record.models import Clock, Finding, Grade, PlaceOpened
from fairtrial.record.reader import worst


def finding(name: str, grade: Grade, value: str = "", *, of_host: bool = False) -> Finding:
    return Finding(name=name, value=value, grade=grade, why="it matters", of_host=of_host)


def opened(*findings: Finding, host: str = "one") -> PlaceOpened:
    return PlaceOpened(
        place={"ssh": {"host": host}},
        facts={"kernel": "6.1"},
        agent_sha256="ab",
        clock=Clock(monotonic_ns=1, realtime_ns=2),
        server_user=None,
        findings=list(findings),
    )


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[record.Writer]:
    made = record.create(tmp_path / "run", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    yield made
    made.close()


def test_findings_read_back_as_they_were_written(writer: record.Writer) -> None:
    writer.note_place(opened(finding("steal", "fine", "0 %"), finding("swap", "unknown")))
    (place,) = record.read(writer.directory).places
    assert [(each.name, each.grade, each.value) for each in place.findings] == [
        ("steal", "fine", "0 %"),
        ("swap", "unknown", ""),
    ]


def test_a_run_that_was_resumed_on_a_busy_machine_is_told_so(writer: record.Writer) -> None:
    for grade in ("fine", "unfit", "caution"):
        writer.note_place(opened(finding("steal", grade, grade), finding("swap", "fine")))
    (place,) = writer.record().places
    assert [(each.name, each.value) for each in place.findings] == [("steal", "unfit"), ("swap", "")]


def test_an_opening_without_findings_forgets_none(writer: record.Writer) -> None:
    """A place that boots for every trial is looked at in its first boot only."""
    writer.note_place(opened(finding("steal", "caution")))
    writer.note_place(opened())
    (place,) = writer.record().places
    assert [each.grade for each in place.findings] == ["caution"]


def test_places_keep_their_own_findings(writer: record.Writer) -> None:
    writer.note_place(opened(finding("steal", "caution"), host="one"))
    writer.note_place(opened(finding("steal", "fine"), host="two"))
    assert [place.findings[0].grade for place in writer.record().places] == ["caution", "fine"]


def test_what_was_seen_says_more_than_what_was_not() -> None:
    assert [each.grade for each in worst([finding("a", "unknown"), finding("a", "fine")])] == ["fine"]
    assert [each.grade for each in worst([finding("a", "fine"), finding("a", "unknown")])] == ["fine"]


def test_a_guest_and_its_host_have_findings_of_one_name() -> None:
    found = worst([finding("steal", "fine"), finding("steal", "unfit", of_host=True)])
    assert [(each.grade, each.of_host) for each in found] == [("fine", False), ("unfit", True)]
