"""Reading a record: what counts as finished, what was planned, and every way in which it is not as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import PlaceError, RecordError
from fairtrial.record import journal
from fairtrial.record.events import RunFinished
from fairtrial.record.models import BlockAdded, BlockVoided, Clock, PlaceOpened, Plan, TrialStarted

SOURCES = {"study.yaml": "study: tiny\n", "parts/base.yaml": "system: {}\n"}


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[record.Writer]:
    made = record.create(tmp_path / "run", plan=tiny_plan(), sources=SOURCES)
    yield made
    made.close()


def commit(writer: record.Writer, block: int, arm: str, *, valid: bool = True) -> None:
    trial = planned(block, arm)
    (writer.begin(trial.id) / "raw.txt").write_text(f"{block}{arm}")
    writer.commit(trial_record(trial, valid=valid))


def opened(host: str, kernel: str) -> PlaceOpened:
    clock = Clock(monotonic_ns=1, realtime_ns=2)
    return PlaceOpened(
        place={"ssh": {"host": host}}, facts={"kernel": kernel}, agent_sha256="ab", clock=clock, server_user=None
    )


def test_the_study_is_kept_as_given_with_its_parts(writer: record.Writer) -> None:
    for name, text in SOURCES.items():
        assert (writer.directory / name).read_text() == text


def test_the_plan_reads_back_equal(writer: record.Writer) -> None:
    assert record.read(writer.directory).plan == tiny_plan()


def test_a_run_is_finished_by_its_last_word_only(writer: record.Writer) -> None:
    for block in (1, 2):
        for arm in "ab":
            commit(writer, block, arm)
    assert not writer.record().finished
    writer.append(RunFinished())
    assert writer.record().finished


def test_a_trial_that_began_is_no_trial(writer: record.Writer) -> None:
    writer.append(TrialStarted(trial=planned(1, "a")))
    (writer.begin(planned(1, "a").id) / "raw.txt").write_text("half")
    assert writer.record().trials == ()
    assert record.verify_hashes(writer.record()) == [], "what is not committed is not looked at"


def test_an_abandoned_trial_leaves_nothing_and_may_begin_again(writer: record.Writer) -> None:
    directory = writer.begin("all.b01.a")
    (directory / "raw.txt").write_text("half")
    writer.abandon("all.b01.a")
    assert not directory.exists()
    writer.abandon("all.b01.a")
    commit(writer, 1, "a")
    assert [trial.trial.id for trial in writer.record().trials] == ["all.b01.a"]


def test_a_trial_that_begins_again_begins_with_nothing(writer: record.Writer) -> None:
    (writer.begin("all.b01.a") / "old.txt").write_text("from before")
    assert [path.name for path in writer.begin("all.b01.a").iterdir()] == ["log"]


def test_added_blocks_are_planned_after_those_of_the_plan(writer: record.Writer) -> None:
    added = [planned(3, "b"), planned(3, "a")]
    writer.append(BlockVoided(cell="all", block=1, reason="the server died"))
    writer.append(BlockAdded(cell="all", block=3, round=3, replaces=1, trials=added))
    found = writer.record()
    assert found.planned == (*tiny_plan().trials, *added)
    assert [event.reason for event in found.voided] == ["the server died"]
    assert [(event.block, event.replaces) for event in found.added] == [(3, 1)]


def test_each_place_counts_as_it_was_opened_last(writer: record.Writer) -> None:
    for host, kernel in (("one", "6.1"), ("two", "6.1"), ("one", "6.2")):
        writer.note_place(opened(host, kernel))
    found = writer.record()
    assert [(place.place.root["ssh"]["host"], place.facts["kernel"]) for place in found.places] == [
        ("one", "6.2"),
        ("two", "6.1"),
    ]
    assert len(json.loads((writer.directory / "places.json").read_bytes())) == 2


def test_a_changed_study_is_named(writer: record.Writer) -> None:
    (writer.directory / "study.yaml").write_text("study: other\n")
    (mismatch,) = record.verify_hashes(writer.record())
    assert mismatch.startswith("study.yaml: changed since it was written (expected SHA-256 ")


def test_a_missing_study_is_named(writer: record.Writer) -> None:
    (writer.directory / "study.yaml").unlink()
    assert record.verify_hashes(writer.record()) == ["study.yaml: missing"]


def test_a_trial_that_is_gone_is_missing_file_by_file(writer: record.Writer) -> None:
    commit(writer, 1, "a")
    found = writer.record()
    for path in (writer.directory / "trials" / "all.b01.a").iterdir():
        if path.is_file():
            path.unlink()
    assert sorted(record.verify_hashes(found)) == [
        "trials/all.b01.a/raw.txt: missing",
        "trials/all.b01.a/trial.json: missing",
    ]


def test_a_trial_that_nobody_committed_is_named_and_how_to_take_it_in(writer: record.Writer) -> None:
    commit(writer, 1, "a")
    (writer.directory / "trials" / "all.b09.a").mkdir()
    (mismatch,) = record.verify_hashes(writer.record())
    assert mismatch == "trials/all.b09.a: not in the journal; --resume adds complete trials"


def test_files_below_folders_of_a_trial_are_hashed_too(writer: record.Writer) -> None:
    directory = writer.begin("all.b01.a")
    (directory / "log" / "server.log").write_text("started")
    writer.commit(trial_record(planned(1, "a")))
    (writer.directory / "trials" / "all.b01.a" / "log" / "server.log").write_text("nothing happened")
    (mismatch,) = record.verify_hashes(writer.record())
    assert mismatch.startswith("trials/all.b01.a/log/server.log: changed")


def test_places_that_nobody_opened_need_no_file(writer: record.Writer) -> None:
    assert not (writer.directory / "places.json").exists()
    assert record.verify_hashes(writer.record()) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"colour": "red"}, "cannot be read: Extra inputs"),
        ({"factors": 7}, "cannot be read: Input should be an object"),
        ({"design": None}, "cannot be read"),
    ],
)
def test_a_plan_that_this_version_does_not_know_is_refused(
    writer: record.Writer, change: dict[str, object], expected: str
) -> None:
    path = writer.directory / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(RecordError, match=expected) as refused:
        record.read(writer.directory)
    assert "a different version of fairtrial" in refused.value.hint


def test_a_missing_trial_json_is_named(writer: record.Writer) -> None:
    commit(writer, 1, "a")
    (writer.directory / "trials" / "all.b01.a" / "trial.json").unlink()
    with pytest.raises(RecordError, match=r"all\.b01\.a/trial\.json is missing"):
        _ = writer.record().trials


def test_a_record_without_a_journal_is_refused(writer: record.Writer) -> None:
    (writer.directory / "journal.jsonl").unlink()
    with pytest.raises(RecordError, match=r"journal\.jsonl is missing"):
        record.read(writer.directory)


@pytest.mark.parametrize("line", ["{}", "nonsense", '{"sequence": 1}', "[]"])
def test_a_line_in_the_middle_that_is_none_is_named_by_its_number(writer: record.Writer, line: str) -> None:
    writer.append(RunFinished())
    path = writer.directory / "journal.jsonl"
    first, last = path.read_text().splitlines()
    path.write_text(f"{first}\n{line}\n{last}\n")
    with pytest.raises(RecordError, match=r"journal\.jsonl:2: not a journal line"):
        record.read(writer.directory)


def test_lines_in_another_order_are_refused(writer: record.Writer) -> None:
    writer.append(RunFinished())
    path = writer.directory / "journal.jsonl"
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[::-1]))
    with pytest.raises(RecordError, match="expected sequence number 0, found 1"):
        record.read(writer.directory)


def test_times_of_the_journal_are_utc_to_the_millisecond_and_in_order(writer: record.Writer) -> None:
    for _ in range(3):
        writer.append(RunFinished())
    times = [line.time for line in writer.record().journal]
    assert times == sorted(times)
    assert all(len(time) == len("2026-01-01T00:00:00.000Z") and time.endswith("Z") for time in times)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PlaceError, match="cannot be created") as refused:
        record.create(tmp_path / "file" / "run", plan=tiny_plan(), sources=SOURCES)
    assert "--output" in refused.value.hint


def test_resuming_what_is_no_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is not a record"):
        record.resume(tmp_path)


def test_every_resumption_is_journalled_by_host_and_process(writer: record.Writer) -> None:
    writer.close()
    for _ in range(2):
        record.resume(writer.directory).close()
    assert [event.event for event in writer.record().events] == ["run_started", "run_resumed", "run_resumed"]
    assert [line.sequence for line in journal.lines(writer.directory / journal.NAME)] == [0, 1, 2]


def test_a_resumed_trial_that_was_cut_is_an_error_and_no_trial(writer: record.Writer) -> None:
    commit(writer, 1, "a")
    writer.close()
    whole = writer.directory / "trials" / "all.b01.a"
    whole.rename(whole.with_name("all.b01.b"))
    (whole.with_name("all.b01.b") / "trial.json").write_text("{")
    for _ in range(2):  # the second time it is as free to be taken up as the first
        with pytest.raises(RecordError, match=r"all\.b01\.b/trial\.json cannot be read"):
            record.resume(writer.directory)


def test_a_plan_written_again_is_the_same_to_the_byte(tmp_path: Path) -> None:
    """Its hash is in the journal."""
    plan: Plan = tiny_plan()
    for name in ("one", "two"):
        record.create(tmp_path / name, plan=plan, sources=SOURCES).close()
    assert (tmp_path / "one" / "plan.json").read_bytes() == (tmp_path / "two" / "plan.json").read_bytes()


def test_a_writer_tells_what_is_new_once(writer: record.Writer) -> None:
    """A rule that looks after each of many rounds does not read all rounds before again."""
    commit(writer, 1, "a")
    first = writer.changes()
    assert [trial.trial.id for trial in first.trials] == ["all.b01.a"]
    (writer.directory / "trials" / "all.b01.a" / "trial.json").unlink()
    commit(writer, 1, "b")
    assert [trial.trial.id for trial in writer.changes().trials] == ["all.b01.b"]
    assert writer.changes().events == ()
