"""One record in a line: what its files say, and why a damaged one says nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from fairtrial.record.events import RunFinished
from fairtrial.record.models import Clock, PlaceOpened
from fairtrial.record.writer import resume
from fairtrial.serve.overview.run_summary import VerdictCount
from fairtrial.serve.overview.summarising import summarise
from fairtrial.study.resolved import Section

Write = Callable[..., Path]
NO_VERDICTS = VerdictCount("none", "no verdict", 2)


def test_a_finished_run_says_what_its_report_says(write: Write) -> None:
    found = summarise(write("slow", ratio=1.2, size="ci"))
    assert (found.state, found.study, found.size, found.reason) == ("finished", "tiny", "ci", "")
    assert (found.done, found.planned, found.comparisons) == (16, 16, 1)
    assert found.verdicts == (VerdictCount("slower", "slower", 1),)
    assert (found.metric, found.compared) == ("wall time", "b / a")
    assert found.ratio == pytest.approx(1.2, rel=0.02)
    low, high = map(float, found.interval.split(" – "))
    assert low < 1.2 < high
    assert found.change == f"{found.ratio:.3f}"
    assert found.versions == "command 4.2.1"


def test_a_version_of_digits_without_end_is_looked_at_to_its_200th(write: Write) -> None:
    directory = write("r", ratio=1.2)
    path = directory / "report" / "report.json"
    path.write_text(path.read_text(encoding="utf-8").replace("4.2.1", "1" * 20_000 + " 4.2"), encoding="utf-8")
    began = process_time()
    assert summarise(directory).versions.startswith("command tool 1111")
    assert process_time() - began < 1


def test_metrics_that_no_clock_measures_are_better_or_worse(write: Write) -> None:
    from support.records import tiny_plan  # noqa: PLC0415

    metrics = tiny_plan().metrics
    counted = metrics.definitions["elapsed_s"].model_copy(update={"kind": "count"})
    found = summarise(write("n", ratio=0.8, metrics=metrics.model_copy(update={"definitions": {"elapsed_s": counted}})))
    assert [each.word for each in found.verdicts] == ["better"]


@pytest.mark.parametrize(
    ("kept", "verdicts"),
    [(True, (VerdictCount("slower", "slower", 1), VerdictCount("none", "no verdict", 1))), (False, (NO_VERDICTS,))],
)
def test_comparisons_without_values_are_counted_as_in_the_reports_title(
    kept: bool,  # noqa: FBT001
    verdicts: tuple[VerdictCount, ...],
    write: Write,
) -> None:
    directory = write("r", ratio=1.2)
    path = directory / "report" / "report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    (cell,) = report["analysis"]["cells"]
    without = {**cell, "cell": "high", "comparisons": {}}
    report["analysis"]["cells"] = [cell if kept else {**cell, "comparisons": {}}, without]
    path.write_text(json.dumps(report), encoding="utf-8")
    found = summarise(directory)
    assert (found.verdicts, found.comparisons) == (verdicts, 2)


def test_an_unfinished_run_has_no_verdict_and_its_trials_so_far(write: Write) -> None:
    found = summarise(write("r", state="unfinished"))
    assert (found.state, found.done, found.planned, found.verdicts, found.ratio) == ("unfinished", 3, 16, (), None)
    assert found.versions == "command 4.2.1", "of its trials: there is no report"


def test_a_report_written_while_a_run_was_unfinished_is_no_verdict(write: Write) -> None:
    done, unfinished = write("done", ratio=1.2), write("r", state="unfinished")
    (unfinished / "report").mkdir()
    (unfinished / "report" / "report.json").write_bytes((done / "report" / "report.json").read_bytes())
    assert summarise(unfinished).verdicts == ()


def test_places_and_kernels_are_those_that_were_opened(write: Write) -> None:
    directory = write("r", state="unfinished")
    writer = resume(directory)
    for kernel in ("6.1.0", "6.1.0", "6.12.1\x1b[31m"):
        opened = PlaceOpened(
            place=Section({"vm": {"kernel": kernel}}),
            facts={"kernel": kernel},
            agent_sha256="",
            clock=Clock(monotonic_ns=1, realtime_ns=2),
            server_user=None,
        )
        writer.append(opened)
    writer.append(RunFinished())
    writer.close()
    found = summarise(directory)
    assert (found.places, found.kernels) == ("vm", "6.1.0, 6.12.1\\x1b[31m")
    assert "no report" in found.reason


def cut_plan(directory: Path) -> None:
    path = directory / "plan.json"
    path.write_bytes(path.read_bytes()[:200])


def without_plan(directory: Path) -> None:
    (directory / "plan.json").unlink()


def cut_journal(directory: Path) -> None:
    path = directory / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])


def linked_plan(directory: Path) -> None:
    (directory / "plan.json").rename(directory / "elsewhere.json")
    (directory / "plan.json").symlink_to(directory / "elsewhere.json")


def piped_journal(directory: Path) -> None:
    (directory / "journal.jsonl").unlink()
    os.mkfifo(directory / "journal.jsonl")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_plan, "plan.json cannot be read: Invalid JSON"),
        (without_plan, "plan.json is missing"),
        (cut_journal, "journal.jsonl:2: expected sequence number 1, found 2"),
        (linked_plan, "plan.json is not a regular file"),
        (piped_journal, "journal.jsonl is not a regular file"),
    ],
)
def test_a_damaged_record_is_listed_with_the_reason(damage: Callable[[Path], None], reason: str, write: Write) -> None:
    directory = write("r")
    damage(directory)
    found = summarise(directory)
    assert (found.name, found.state) == ("r", "damaged")
    assert found.reason.startswith(reason), found.reason


def test_a_torn_last_line_is_no_damage(write: Write) -> None:
    directory = write("r", state="unfinished")
    with (directory / "journal.jsonl").open("ab") as file:
        file.write(b'{"sequence": 9, "ti')
    assert summarise(directory).state == "unfinished"


@pytest.mark.parametrize("text", ["{", '{"format_version": 1}', '{"analysis": {}, "record": {}}'])
def test_a_run_whose_report_cannot_be_read_is_not_damaged(text: str, write: Write) -> None:
    directory = write("r")
    (directory / "report" / "report.json").write_text(text, encoding="utf-8")
    found = summarise(directory)
    assert (found.state, found.done, found.verdicts) == ("finished", 16, ())
    assert found.reason.startswith("report/report.json cannot be read")


def test_a_report_elsewhere_is_not_followed(write: Write, tmp_path: Path) -> None:
    directory = write("r")
    (directory / "report").rename(tmp_path / "report")
    (directory / "report").symlink_to(tmp_path / "report")
    found = summarise(directory)
    assert (found.verdicts, found.reason.partition(" is not")[0]) == ((), "report")


def test_files_that_do_not_belong_together_are_listed(write: Write) -> None:
    directory = write("r")
    path = directory / "report" / "report.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["analysis"]["roles"] = {"elapsed_s": "primary", "nothing": "primary"}
    document["analysis"]["metrics"] = {}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert summarise(directory).verdicts == ()


@pytest.mark.parametrize("name", ["bell\a", "line\nend", "\udcff"])
def test_a_name_that_no_address_can_have_is_listed(name: str, runs: Path) -> None:
    directory = runs / name
    directory.mkdir()
    (directory / "plan.json").write_text("{}", encoding="utf-8")
    found = summarise(directory)
    assert (found.state, found.reason) == ("damaged", "the directory's name cannot stand in an address")
