"""Somebody else's record is read and reported without a file outside it being read or written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.command_line import desk

from fairtrial import record, report
from fairtrial.analyse.analysis import analyse
from fairtrial.errors import RecordError

LINKS = ["report", "report/report.txt", "trials/{trial}/trial.json", "journal.jsonl", "plan.json", "trials/{trial}/log"]


def edited(path: Path, change: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("way", [record.read, record.resume])
def test_a_link_anywhere_in_a_record_is_refused(real_copy: Path, tmp_path: Path, *, link: str, way: Any) -> None:
    outside = tmp_path / "outside"
    trial = next((real_copy / "trials").iterdir()).name
    path = real_copy / link.format(trial=trial)
    if path.exists():
        path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(RecordError, match="is a symbolic link"):
        way(real_copy)


@pytest.mark.parametrize("way", [record.read, record.resume])
def test_what_has_no_end_is_not_read(real_copy: Path, way: Any) -> None:
    trial = next((real_copy / "trials").iterdir())
    os.mkfifo(trial / "log" / "pipe")  # nothing opens it: a test of a file that is read would wait for its writer
    with pytest.raises(RecordError, match=r"log/pipe is a pipe, a socket or a device"):
        way(real_copy)


def test_a_report_does_not_change_a_file_that_is_also_elsewhere(real_copy: Path, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", real_copy / "report" / "report.txt"
    outside.write_text("mine")
    inside.unlink()
    inside.hardlink_to(outside)
    found = record.read(real_copy)
    report.write(found, analyse(found.plan, found.committed), real_copy / "report", drawn=False)
    assert outside.read_text() == "mine"
    assert inside.stat().st_nlink == 1


def test_a_report_is_not_written_through_a_link(real_copy: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (real_copy / "report").rename(home)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    (real_copy / "report").symlink_to(home)
    with desk() as here:
        done = here.fairtrial("report", real_copy, code=None)
    assert done.returncode == RecordError.exit_code
    assert "is a symbolic link" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


@pytest.mark.parametrize("name", ["../../start-up", "..", "", "a/b", "a\nb", "x" * 256])
def test_a_factor_is_one_component_of_a_path(real_copy: Path, name: str) -> None:
    def rename(plan: dict[str, Any]) -> None:
        plan["factors"][name] = plan["factors"].pop(plan["arm"])
        plan["arm"] = name

    edited(real_copy / "plan.json", rename)
    with pytest.raises(RecordError, match="expected a valid file name"):
        record.read(real_copy)


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere"])
@pytest.mark.parametrize("field", ["trial", "files"])
def test_the_journal_names_nothing_outside_the_record(real_copy: Path, name: str, field: str) -> None:
    journal = real_copy / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    entry = next(line["entry"] for line in lines if line["entry"]["event"] == "trial_finished")
    entry[field] = name if field == "trial" else {name: "0" * 64}
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(RecordError, match="expected a valid file name"):
        record.read(real_copy)


def test_a_format_of_another_version_is_refused(real_copy: Path) -> None:
    edited(real_copy / "plan.json", lambda plan: plan.update(format_version=99, unknown="field"))
    with pytest.raises(RecordError, match=r"plan\.json .* expected format version 1, found 99 at format_version"):
        record.read(real_copy)


def test_a_trial_of_another_version_is_refused(real_copy: Path) -> None:
    trial = next((real_copy / "trials").iterdir())
    edited(trial / "trial.json", lambda document: document.update(format_version=2))
    with pytest.raises(RecordError, match=r"trial\.json .* found 2 at format_version") as refused:
        assert record.read(real_copy).trials
    assert "newer one" in refused.value.hint
