"""How fit a place was: in the text, on the page, in report.json, worst first."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fairtrial.analyse.models import Analysis
from fairtrial.record import Record
from fairtrial.record.events import JournalLine
from fairtrial.record.models import Finding, PlaceOpened
from fairtrial.report import document, page, text
from fairtrial.report.background import background
from fairtrial.report.scene import Scene

FINDINGS = (
    Finding(name="numa", value="one node", grade="fine", why="memory of another node is slower"),
    Finding(name="boost", value="not shown", grade="unknown", why="it adds noise", fix="look at the host"),
    Finding(name="swap", value="2 GiB <used>", grade="caution", why="it is read back", fix="empty it"),
    Finding(name="steal", value="12 % of 200 ticks", grade="unfit", why="it is counted", fix="rent", of_host=True),
)


@pytest.fixture
def examined(record: Record) -> Record:
    """The record, with findings of its place."""
    journal = tuple(
        JournalLine(
            sequence=line.sequence, time=line.time, entry=line.entry.model_copy(update={"findings": list(FINDINGS)})
        )
        if isinstance(line.entry, PlaceOpened)
        else line
        for line in record.journal
    )
    return replace(record, journal=journal)


def test_what_is_not_fine_comes_worst_first(examined: Record) -> None:
    (place,) = background(examined, contrast="journal").places
    assert [finding["name"] for finding in place.cautions] == ["steal", "swap", "boost"]
    assert len(place.findings) == len(FINDINGS)


def test_the_text_names_what_was_seen_and_counts_what_was_not(examined: Record, analysis: Analysis) -> None:
    rendered = text.render(Scene(examined, analysis))
    assert "Fitness before the run: 4 findings, 1 unknown" in rendered
    assert "* unfit: host's steal: 12 % of 200 ticks. rent" in rendered
    assert "* caution: swap: 2 GiB <used>. empty it" in rendered
    assert "boost" not in rendered
    assert "numa" not in rendered


def test_a_record_without_findings_says_nothing_of_them(record: Record, analysis: Analysis) -> None:
    assert "Fitness" not in text.render(Scene(record, analysis))
    assert "Fitness" not in page.render(Scene(record, analysis), ratios=[], cells=[])


def test_the_page_folds_them_beside_the_environment_and_trusts_no_value(examined: Record, analysis: Analysis) -> None:
    html = page.render(Scene(examined, analysis), ratios=[], cells=[])
    assert "Fitness before the run: 3 of 4 findings need attention" in html
    assert "<td>host’s steal</td><td>unfit</td>" in html
    assert "2 GiB &lt;used&gt;" in html
    assert "2 GiB <used>" not in html


def test_report_json_has_every_finding_whole(examined: Record, analysis: Analysis) -> None:
    found = json.loads(document.render(Scene(examined, analysis)))["record"]["places"][0]["findings"]
    assert found == [finding.model_dump(mode="json") for finding in FINDINGS]
