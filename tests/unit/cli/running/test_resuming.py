"""Which run `--resume` takes up: the newest unfinished one of that very study, with the plan it began with."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.running.resuming import STAMPED, as_given, directory_name, resumed
from fairtrial.errors import InputError, PlaceError, RecordError
from fairtrial.record.events import KEPT_VARIABLE, RunFinished, RunResumed

STUDY = """\
study: tiny
workload: {command: {run: "true"}}
factors: {arm: {a: {}, b: {workload: {command: {run: "true b"}}}}}
arm: arm
trials: {blocks: 2}
metrics: {primary: elapsed_s}
sizes: {ci: {trials: {blocks: 3}}}
"""


class Desk:
    """A study file and runs of it."""

    def __init__(self, directory: Path) -> None:
        self.output = directory / "runs"
        self.study = directory / "study.yaml"
        self.study.write_text(STUDY)
        self.console = Console(file=io.StringIO(), width=60)

    def begin(self, name: str, *, finished: bool = False, size: str | None = None, sets: Sequence[str] = ()) -> Path:
        loaded = language.load(self.study, catalogue=catalogue(), size=size, overrides=sets)
        sources = {"study.yaml": self.study.read_text(), "study.merged.yaml": language.dump(loaded)}
        writer = record.create(self.output / name, plan=planning.make(loaded, catalogue=catalogue()), sources=sources)
        if finished:
            writer.append(RunFinished())
        writer.close()
        return self.output / name

    def resume(self, study: Path | None = None, *, size: str | None = None, sets: Sequence[str] = ()) -> Path:
        writer = resumed(study or self.study, size=size, overrides=sets, output=self.output, console=self.console)
        writer.close()
        return writer.directory

    @property
    def said(self) -> str:
        assert isinstance(self.console.file, io.StringIO)
        return self.console.file.getvalue()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_new_runs_directory_is_one_that_resume_finds() -> None:
    assert re.fullmatch(f"tiny-{STAMPED}", directory_name("tiny"))


def test_of_two_runs_begun_in_one_second_the_second_is_the_newer(desk: Desk) -> None:
    desk.begin("tiny-20260101T000000Z")
    wanted = desk.begin("tiny-20260101T000000Z-02")
    desk.begin("tiny-20260101T000000Z-03", finished=True)
    assert desk.resume() == wanted


def test_the_newest_unfinished_run_is_taken_up(desk: Desk) -> None:
    desk.begin("tiny-20260101T000000Z")
    wanted = desk.begin("tiny-20260102T000000Z")
    desk.begin("tiny-20260103T000000Z", finished=True)
    assert desk.resume() == wanted
    assert isinstance(record.read(wanted).events[-1], RunResumed)
    assert desk.said == ""


def test_a_study_whose_name_only_begins_alike_is_another(desk: Desk) -> None:
    wanted = desk.begin("tiny-20260101T000000Z")
    (desk.output / "tiny-wal-20260102T000000Z").mkdir()
    (desk.output / "tiny-wal-20260102T000000Z" / "plan.json").write_text("{}")
    assert desk.resume() == wanted


def test_a_run_killed_before_its_journal_began_goes_on(desk: Desk) -> None:
    wanted = desk.begin("tiny-20260101T000000Z")
    (wanted / "journal.jsonl").unlink()
    assert desk.resume() == wanted


def test_a_study_that_changed_goes_on_with_its_stored_plan_and_a_note(desk: Desk) -> None:
    wanted = desk.begin("tiny-20260101T000000Z")
    desk.study.write_text(STUDY.replace("blocks: 2", "blocks: 9"))
    assert desk.resume() == wanted
    assert "has changed since tiny-20260101T000000Z began; the run continues with its original plan" in desk.said
    assert record.read(wanted).plan.design.blocks == 2


def test_size_and_values_choose_among_runs(desk: Desk) -> None:
    small = desk.begin("tiny-20260101T000000Z", size="ci")
    seeded = desk.begin("tiny-20260102T000000Z", sets=["trials.seed=5"])
    desk.begin("tiny-20260103T000000Z")
    assert desk.resume(size="ci") == small
    assert desk.resume(sets=["trials.seed=5"]) == seeded
    with pytest.raises(RecordError, match="no unfinished run of tiny with this --size and --set"):
        desk.resume(sets=["trials.seed=6"])


def test_a_run_that_is_named_is_taken_as_it_is(desk: Desk) -> None:
    first = desk.begin("tiny-20260101T000000Z")
    desk.begin("tiny-20260102T000000Z")
    assert desk.resume(first) == first
    with pytest.raises(InputError, match="these have no effect"):
        desk.resume(first, size="ci")


def test_what_is_finished_or_was_never_begun_is_refused(desk: Desk) -> None:
    with pytest.raises(RecordError, match="no unfinished run of tiny in"):
        desk.resume()
    done = desk.begin("tiny-20260101T000000Z", finished=True)
    with pytest.raises(RecordError, match="is finished") as refused:
        desk.resume(done)
    assert "fairtrial report" in refused.value.hint


def test_a_damaged_plan_of_another_run_of_the_study_is_named(desk: Desk) -> None:
    plan = desk.begin("tiny-20260101T000000Z") / "plan.json"
    plan.write_text("")
    with pytest.raises(RecordError, match=re.escape(str(plan))):
        desk.resume()


def test_a_study_that_came_through_a_pipe_is_kept_as_it_was_merged(desk: Desk, tmp_path: Path) -> None:
    loaded = language.load(desk.study, catalogue=catalogue())
    assert as_given(desk.study, loaded) == STUDY
    os.mkfifo(tmp_path / "pipe")
    assert as_given(tmp_path / "pipe", loaded) == language.dump(loaded)


@pytest.mark.parametrize(
    ("began", "now", "way_out"),
    [
        ("*", None, "export FAIRTRIAL_ENVIRONMENT='*'"),
        ("JAVA_HOME", "", "export FAIRTRIAL_ENVIRONMENT=JAVA_HOME"),
        (None, "*", "unset FAIRTRIAL_ENVIRONMENT"),
    ],
)
def test_a_run_whose_programs_would_see_other_variables_than_before_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, began: str | None, now: str | None, way_out: str
) -> None:
    def is_set_to(names: str | None) -> None:
        monkeypatch.delenv(KEPT_VARIABLE, raising=False)
        if names is not None:
            monkeypatch.setenv(KEPT_VARIABLE, names)

    is_set_to(began)
    wanted = desk.begin("tiny-20260101T000000Z")
    assert ("environment" in (wanted / "journal.jsonl").read_text()) == (began is not None)
    before = (wanted / "journal.jsonl").read_bytes()
    is_set_to(now)
    with pytest.raises(InputError, match=r"FAIRTRIAL_ENVIRONMENT: .*tiny-20260101T000000Z began with") as refused:
        desk.resume(wanted)
    assert f"`{way_out}`, then resume" in refused.value.hint
    assert (wanted / "journal.jsonl").read_bytes() == before
    is_set_to(began)
    assert desk.resume(wanted) == wanted


def test_a_run_that_another_process_runs_is_refused(desk: Desk) -> None:
    writer = record.resume(desk.begin("tiny-20260101T000000Z"))
    with pytest.raises(PlaceError, match="another process is running"):
        desk.resume()
    writer.close()
