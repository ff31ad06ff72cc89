"""Any history of a record, killed anywhere and taken up again any number of times, ends in a consistent one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import RecordError
from fairtrial.record.events import RunFinished
from fairtrial.record.journal import lines
from fairtrial.record.models import BlockVoided, TrialFinished, TrialStarted

SOURCES = {"study.yaml": "study: tiny\n"}
ARMS = st.sampled_from("ab")
BLOCKS = st.integers(1, 4)
CONTENTS = st.binary(max_size=200)


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill takes nothing from the kernel, so nobody waits here for hundreds of syncs of a disk that may be slow."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def consistent(directory: Path) -> record.Record:
    """What must hold of any record that was resumed."""
    found = record.read(directory)
    assert record.verify_hashes(found) == []
    assert [line.sequence for line in found.journal] == list(range(len(found.journal)))
    assert found.journal[0].entry.event == "run_started"
    finished = [event.trial for event in found.events if isinstance(event, TrialFinished)]
    assert len(finished) == len(set(finished)), "a trial is journalled once"
    assert {path.name for path in (directory / "trials").iterdir()} == set(finished), "no trial is torn or unknown"
    assert [trial.trial.id for trial in found.trials] == finished
    return found


class Killed(RuleBasedStateMachine):
    """A writer that commits, abandons and is killed; the model is what it was told is durable."""

    @initialize()
    def create(self) -> None:
        self.parent = Path(tempfile.mkdtemp(prefix="ft-record-"))
        self.directory = self.parent / "run"
        self.writer = record.create(self.directory, plan=tiny_plan(blocks=8), sources=SOURCES)
        self.durable: dict[str, bytes] = {}
        self.bytes_durable = 0
        self.note()

    def note(self) -> None:
        """Everything appended so far was synced: a kill cannot take it."""
        self.bytes_durable = (self.directory / "journal.jsonl").stat().st_size

    @rule(block=BLOCKS, arm=ARMS, content=CONTENTS, valid=st.booleans())
    def commit(self, *, block: int, arm: str, content: bytes, valid: bool) -> None:
        trial = planned(block, arm)
        if trial.id in self.durable:
            return
        self.writer.append(TrialStarted(trial=trial))
        (self.writer.begin(trial.id) / "raw.bin").write_bytes(content)
        self.writer.commit(trial_record(trial, valid=valid))
        self.durable[trial.id] = content
        self.note()

    @rule(block=BLOCKS, arm=ARMS, content=CONTENTS)
    def abandon(self, block: int, arm: str, content: bytes) -> None:
        trial = planned(block, arm)
        (self.writer.begin(trial.id) / "raw.bin").write_bytes(content)
        self.writer.abandon(trial.id)
        self.note()

    @rule(block=BLOCKS)
    def void(self, block: int) -> None:
        self.writer.append(BlockVoided(cell="all", block=block, reason="broken on purpose"))
        self.note()

    @rule(block=BLOCKS, arm=ARMS, content=CONTENTS, torn=st.binary(max_size=80))
    def kill_while_a_trial_is_collected(self, *, block: int, arm: str, content: bytes, torn: bytes) -> None:
        (self.writer.begin(planned(block, arm).id) / "raw.bin").write_bytes(content)
        self.writer.close()
        with (self.directory / "journal.jsonl").open("ab") as journal:
            journal.write(torn.replace(b"\n", b" "))  # a line that was begun
        self.writer = record.resume(self.directory)
        self.note()

    @precondition(lambda self: self.durable)
    @rule(content=CONTENTS, left=st.integers(0, 400), arm=ARMS, block=st.integers(5, 8))
    def kill_between_rename_and_line(self, *, content: bytes, left: int, arm: str, block: int) -> None:
        """The trial is in its place; of its journal line any number of bytes came to the disk."""
        trial = planned(block, arm)
        if trial.id in self.durable:
            return
        (self.writer.begin(trial.id) / "raw.bin").write_bytes(content)
        self.writer.commit(trial_record(trial))
        self.writer.close()
        journal = self.directory / "journal.jsonl"
        whole = journal.read_bytes()
        journal.write_bytes(whole[: min(self.bytes_durable + left, len(whole))])
        self.writer = record.resume(self.directory)
        self.durable[trial.id] = content
        self.note()

    @rule()
    def stop_and_go_on(self) -> None:
        self.writer.close()
        self.writer = record.resume(self.directory)
        self.note()

    @invariant()
    def nothing_durable_is_lost_and_the_record_is_consistent(self) -> None:
        found = consistent(self.directory) if not list((self.directory / "trials").glob(".*")) else None
        if found is not None:
            assert {trial.trial.id for trial in found.trials} == set(self.durable)
            for identity, content in self.durable.items():
                assert (found.trial_directory(identity) / "raw.bin").read_bytes() == content

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
            shutil.rmtree(self.parent)


TestKilled = Killed.TestCase
TestKilled.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three trials, finished."""
    directory = tmp_path_factory.mktemp("history") / "run"
    writer = record.create(directory, plan=tiny_plan(), sources=SOURCES)
    for block, arm in ((1, "a"), (1, "b"), (2, "b")):
        trial = planned(block, arm)
        writer.append(TrialStarted(trial=trial))
        (writer.begin(trial.id) / "raw.txt").write_text(f"{block}{arm}")
        writer.commit(trial_record(trial))
    writer.append(RunFinished())
    writer.close()
    return directory


def test_a_journal_cut_at_any_byte_is_taken_up_with_every_trial_on_the_disk(history: Path, tmp_path: Path) -> None:
    whole = (history / "journal.jsonl").read_bytes()
    for left in (*range(0, len(whole), 97), len(whole) - 1, len(whole)):
        directory = tmp_path / f"cut-{left}"
        shutil.copytree(history, directory)
        (directory / "journal.jsonl").write_bytes(whole[:left])
        record.resume(directory).close()
        found = consistent(directory)
        assert {trial.trial.id for trial in found.trials} == {"all.b01.a", "all.b01.b", "all.b02.b"}, left
        assert found.finished is (left == len(whole)), "a run that was not finished is not called so"


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_changed_byte_of_a_journal_is_an_error_or_a_line_that_reads_otherwise(
    history: Path, data: st.DataObject
) -> None:
    whole = (history / "journal.jsonl").read_bytes()
    at = data.draw(st.integers(0, len(whole) - 2))
    changed = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 127))]) + whole[at + 1 :]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "journal.jsonl"
        path.write_bytes(changed)
        try:
            read = [line.model_dump_json() for line in lines(path)]
        except RecordError as error:
            assert "journal.jsonl" in str(error), error  # noqa: PT017 - either outcome is right
        else:
            assert "\n".join(read).encode() + b"\n" != whole, "a change is never read as if it were none"


def unreadable_trial(directory: Path) -> None:
    (directory / "trials" / "all.b02.b" / "trial.json").write_text("{")


def trial_of_a_later_version(directory: Path) -> None:
    path = directory / "trials" / "all.b02.b" / "trial.json"
    path.write_text(path.read_text().replace('"valid"', '"valid_since": 2, "valid"'))


def trial_that_is_gone(directory: Path) -> None:
    shutil.rmtree(directory / "trials" / "all.b02.b")


@pytest.mark.parametrize("damage", [unreadable_trial, trial_of_a_later_version, trial_that_is_gone])
def test_a_damaged_trial_is_an_error_that_names_its_file(
    history: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    directory = tmp_path / "run"
    shutil.copytree(history, directory)
    damage(directory)
    with pytest.raises(RecordError, match=r"all\.b02\.b.trial\.json"):
        _ = record.read(directory).trials
    assert any("all.b02.b" in found for found in record.verify_hashes(record.read(directory)))


def test_a_whole_line_that_is_no_event_is_an_error_with_its_number(history: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    kept = (history / "journal.jsonl").read_text().splitlines(keepends=True)
    path.write_text(kept[0] + '{"sequence":1,"time":"x","entry":{"event":"later"}}\n')
    with pytest.raises(RecordError, match=r"journal\.jsonl:2: not a journal line"):
        list(lines(path))
