"""The section on fidelity, in text, page and JSON, and what happens to it when a record is unfaithful or changed."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.records import change_workload

from fairtrial import verify
from fairtrial.analyse.models import Analysis
from fairtrial.metrics.fidelity import of_record
from fairtrial.record import Record, read
from fairtrial.report import document, fidelity, terminal, text, write
from fairtrial.report.scene import Scene
from fairtrial.report.text.columns import WIDTH


@pytest.fixture
def copy(record: Record, tmp_path: Path) -> Record:
    """A copy of the record to change."""
    shutil.copytree(record.directory, tmp_path / "copy")
    return read(tmp_path / "copy")


def change(path: Path, key: str, value: int) -> None:
    content = json.loads(path.read_bytes())
    content["drawn"][key] = value
    path.write_text(json.dumps(content), encoding="utf-8")


def never_by_name(record: Record) -> None:
    for trial in record.trials:
        change(record.trial_directory(trial.trial.id) / "result.json", "payment_by_last_name", 0)


def test_a_faithful_record_has_a_section_for_each_workload_and_no_doubt(record: Record) -> None:
    first, second = fidelity.sections(record, of_record(record))
    assert first.title == "low · delete; low · wal"
    assert first.summary.startswith("17 of 17 points kept. ")
    assert (first.shown, second.shown) == (True, False), "the second says the same in one line"
    assert [row[5] for row in first.rows] == ["kept"] * 17
    assert "no keying or thinking times (clause 5.2.5)" in first.deviations
    assert fidelity.doubts(of_record(record)) == ()


def test_an_unfaithful_record_says_so_in_text_page_and_json(copy: Record, analysis: Analysis) -> None:
    never_by_name(copy)
    codes = {doubt.code for doubt in fidelity.doubts(of_record(copy))}
    assert codes == {"unfaithful"}
    rendered = text.render(Scene(copy, analysis))
    assert "* unfaithful" in rendered
    assert "broken: payment by last name" in rendered
    assert max(map(len, rendered.splitlines())) <= WIDTH
    write(copy, analysis, copy.directory / "report")
    page = (copy.directory / "report" / "report.html").read_text(encoding="utf-8")
    assert '<section id="fidelity">' in page
    assert "BROKEN (12 of the trials)" in page
    stored = json.loads((copy.directory / "report" / "report.json").read_bytes())["record"]["fidelity"]
    broken = [point["name"] for each in stored for point in each["points"] if point["verdict"] == "broken"]
    assert broken == ["payment by last name"] * 2


def test_the_terminal_doubts_an_unfaithful_record(copy: Record, analysis: Analysis) -> None:
    never_by_name(copy)
    console = Console(file=io.StringIO(), width=200)
    console.print(terminal(analysis, copy))
    assert isinstance(console.file, io.StringIO)
    assert "payment by last name" in console.file.getvalue()


def test_a_record_without_tpcc_has_no_section(copy: Record, analysis: Analysis) -> None:
    change_workload(copy.directory, lambda _: {"command": {"run": "true"}})
    other = read(copy.directory)
    assert fidelity.sections(other, of_record(other)) == ()
    assert "Fidelity" not in text.render(Scene(other, analysis))
    assert document.document(Scene(other, analysis))["record"]["fidelity"] == []


def test_a_flattered_report_is_found(real_copy: Path) -> None:
    path = real_copy / "report" / "report.json"
    content: Any = json.loads(path.read_bytes())
    content["record"]["fidelity"][0]["points"][1]["count"] += 1
    path.write_text(json.dumps(content), encoding="utf-8")
    (found,) = verify.recompute(read(real_copy))
    assert "fidelity[0].points[1].count is " in found


def test_counts_changed_in_a_raw_file_no_longer_give_the_report(real_copy: Path) -> None:
    trial = read(real_copy).trials[0].trial.id
    change(real_copy / "trials" / trial / "result.json", "payment", 0)
    found = verify.recompute(read(real_copy))
    assert any("payment ended, but only 0 were drawn" in text for text in found)
    assert any(text.startswith("report/report.json: fidelity") for text in found)
