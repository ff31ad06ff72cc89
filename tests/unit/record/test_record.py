"""A record's life as a story: written, torn by a kill, taken up again, damaged, found out."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.records import planned, trial_record

from fairtrial import record
from fairtrial.errors import PlaceError, RecordError
from fairtrial.record import writer as writing
from fairtrial.record.events import RunFinished
from fairtrial.record.journal import Journal, lines
from fairtrial.record.models import BlockVoided, Clock, PlaceOpened, Plan

SOURCES = {"study.yaml": "study: tiny\n"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "tiny-run"


def opened(kernel: str) -> PlaceOpened:
    clock = Clock(monotonic_ns=1, realtime_ns=2)
    return PlaceOpened(
        place={"local": {}}, facts={"kernel": kernel}, agent_sha256="ab" * 32, clock=clock, server_user=None
    )


def commit(writer: record.Writer, block: int, arm: str, *, valid: bool = True) -> None:
    trial = planned(block, arm)
    (writer.begin(trial.id) / "raw.txt").write_text(f"{block}{arm}")
    writer.commit(trial_record(trial, valid=valid))


def test_what_is_written_is_read_in_the_order_it_ran(directory: Path, plan: Plan) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    commit(writer, 1, "b")
    commit(writer, 1, "a", valid=False)
    writer.append(RunFinished())
    writer.close()

    found = record.read(directory)
    assert found.plan == plan
    assert [trial.trial.id for trial in found.trials] == ["all.b01.b", "all.b01.a"]
    assert [trial.valid for trial in found.trials] == [True, False]
    assert found.finished
    assert (found.trial_directory("all.b01.a") / "raw.txt").read_text() == "1a"
    assert record.verify_hashes(found) == []


def test_a_run_is_not_started_over_another(directory: Path, plan: Plan) -> None:
    record.create(directory, plan=plan, sources=SOURCES).close()
    with pytest.raises(PlaceError, match="already exists"):
        record.create(directory, plan=plan, sources=SOURCES)


def test_runs_that_begin_in_one_second_get_names_that_sort_by_time(directory: Path, plan: Plan) -> None:
    names = []
    for _ in range(11):
        writer = record.create(directory, plan=plan, sources=SOURCES, numbered=True)
        writer.close()
        names.append(writer.directory.name)
    assert names == [directory.name, *(f"{directory.name}-{number:02}" for number in range(2, 12))]
    assert names == sorted(names)
    assert record.read(directory.with_name(names[-1])).plan == plan


def test_of_runs_that_begin_at_once_no_two_get_one_name(directory: Path, plan: Plan) -> None:
    def begun(_number: int) -> Path:
        writer = record.create(directory, plan=plan, sources=SOURCES, numbered=True)
        writer.close()
        return writer.directory

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(begun, range(8)))
    assert len(set(made)) == len(made)
    assert all(len(record.read(each).journal) == 1 for each in made)


def test_a_second_has_room_for_a_limited_number_of_runs(
    directory: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_OF_A_NAME", 2)
    for _ in range(2):
        record.create(directory, plan=plan, sources=SOURCES, numbered=True).close()
    with pytest.raises(PlaceError, match="already exists"):
        record.create(directory, plan=plan, sources=SOURCES, numbered=True)


def test_two_controllers_cannot_write_one_record(directory: Path, plan: Plan) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    with pytest.raises(PlaceError, match="another process is running"):
        record.resume(directory)
    writer.close()
    record.resume(directory).close()


def test_a_run_does_not_go_on_by_another_plan_than_it_began_with(directory: Path, plan: Plan) -> None:
    record.create(directory, plan=plan, sources=SOURCES).close()
    stored = directory / "plan.json"
    text = stored.read_text(encoding="utf-8")
    stored.write_text(plan.model_copy(update={"study": "another"}).model_dump_json(indent=1) + "\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"plan\.json was changed since the run began"):
        record.resume(directory)
    stored.write_text(text, encoding="utf-8")
    record.resume(directory).close()


@pytest.mark.parametrize("is_finished", [False, True])
def test_what_another_process_commits_until_it_lets_go_of_the_lock_is_known(
    directory: Path, *, plan: Plan, monkeypatch: pytest.MonkeyPatch, is_finished: bool
) -> None:
    first = record.create(directory, plan=plan, sources=SOURCES)

    def late(path: Path) -> Journal:
        commit(first, 1, "a")
        if is_finished:
            first.append(RunFinished())
        first.close()
        return Journal(path)

    monkeypatch.setattr(writing, "Journal", late)
    if is_finished:
        with pytest.raises(RecordError, match="is finished") as refused:
            record.resume(directory)
        assert "fairtrial report" in refused.value.hint
    else:
        record.resume(directory).close()
    assert [trial.trial.id for trial in record.read(directory).trials] == ["all.b01.a"]
    Journal(directory / "journal.jsonl").close()  # its lock is free again


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_last_line_is_cut_and_nothing_before_it_is_lost(directory: Path, plan: Plan, cut: int) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    commit(writer, 1, "a")
    writer.append(BlockVoided(cell="all", block=1, reason="a line long enough to be cut in several places"))
    writer.close()
    journal = directory / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])

    assert len(record.read(directory).trials) == 1
    resumed = record.resume(directory)
    resumed.append(RunFinished())
    resumed.close()
    entries = [line.entry.event for line in lines(journal)]
    assert entries == ["run_started", "trial_finished", "run_resumed", "run_finished"]


def test_a_kill_between_rename_and_journal_line_loses_no_trial(directory: Path, plan: Plan) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    commit(writer, 1, "a")
    before = (directory / "journal.jsonl").read_bytes()
    commit(writer, 1, "b")
    writer.begin(planned(2, "a").id)
    writer.close()
    (directory / "journal.jsonl").write_bytes(before)

    record.resume(directory).close()
    found = record.read(directory)
    assert [trial.trial.id for trial in found.trials] == ["all.b01.a", "all.b01.b"]
    assert record.verify_hashes(found) == []
    assert not list((directory / "trials").glob(".partial-*"))


def test_a_kill_before_the_first_journal_line_can_be_resumed(directory: Path, plan: Plan) -> None:
    record.create(directory, plan=plan, sources=SOURCES).close()
    (directory / "journal.jsonl").unlink()
    record.resume(directory).close()
    assert [event.event for event in record.read(directory).events] == ["run_started", "run_resumed"]


@pytest.mark.parametrize("damage", ["change", "truncate", "delete", "add"])
def test_every_damage_to_a_trial_is_named(directory: Path, plan: Plan, damage: str) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    commit(writer, 1, "a")
    writer.close()
    raw = directory / "trials" / "all.b01.a" / "raw.txt"
    match damage:
        case "change":
            raw.write_text("2a")
        case "truncate":
            raw.write_text("1")
        case "delete":
            raw.unlink()
        case "add":
            raw.with_name("extra.txt").write_text("x")
    (mismatch,) = record.verify_hashes(record.read(directory))
    assert ("extra.txt" if damage == "add" else "raw.txt") in mismatch


def test_a_changed_plan_is_named(directory: Path, plan: Plan) -> None:
    record.create(directory, plan=plan, sources=SOURCES).close()
    path = directory / "plan.json"
    path.write_text(path.read_text().replace('"margin": 0.02', '"margin": 0.05'))
    assert any("plan.json" in mismatch for mismatch in record.verify_hashes(record.read(directory)))


def test_a_changed_study_is_named_as_given_and_as_it_ran(directory: Path, plan: Plan) -> None:
    sources = {**SOURCES, "study.merged.yaml": "study: tiny\n"}
    record.create(directory, plan=plan, sources=sources).close()
    assert record.verify_hashes(record.read(directory)) == []
    for name in sources:
        (directory / name).write_text("study: other\n", encoding="utf-8")
    given, merged = record.verify_hashes(record.read(directory))
    assert given.startswith("study.yaml: changed since it was written")
    assert merged.startswith("study.merged.yaml: changed since it was written")


def test_a_journal_without_its_first_line_vouches_for_no_plan(directory: Path, plan: Plan) -> None:
    directory.mkdir()
    (directory / "plan.json").write_text(plan.model_dump_json(), encoding="utf-8")
    journal = Journal(directory / "journal.jsonl")
    journal.append(RunFinished())
    journal.close()
    (found,) = record.verify_hashes(record.read(directory))
    assert found.startswith("journal.jsonl: run_started is missing")


def test_every_opening_of_a_place_is_journalled_and_the_last_one_counts(directory: Path, plan: Plan) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    for kernel in ("6.1", "6.2"):
        writer.note_place(opened(kernel))
    writer.close()
    found = record.read(directory)
    assert [event.facts["kernel"] for event in found.events if isinstance(event, PlaceOpened)] == ["6.1", "6.2"]
    assert [place.facts["kernel"] for place in found.places] == ["6.2"]
    assert [place["facts"]["kernel"] for place in json.loads((directory / "places.json").read_bytes())] == ["6.2"]


def test_the_file_of_places_is_written_as_ever(directory: Path, plan: Plan) -> None:
    """Its bytes are compared with the journal's, so with another layout every earlier record would look changed."""
    writer = record.create(directory, plan=plan, sources=SOURCES)
    writer.note_place(opened("6.1"))
    writer.close()
    written = (directory / "places.json").read_text(encoding="utf-8")
    assert written.startswith('[\n {\n  "')
    assert written == json.dumps(json.loads(written), indent=1, sort_keys=True) + "\n"


@pytest.mark.parametrize("damage", ["change", "remove"])
def test_a_place_made_to_look_like_another_is_named(directory: Path, plan: Plan, damage: str) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    writer.note_place(opened("6.1"))
    writer.append(RunFinished())
    writer.close()
    path = directory / "places.json"
    path.write_text(path.read_text().replace("6.1", "6.8")) if damage == "change" else path.unlink()
    (mismatch,) = record.verify_hashes(record.read(directory))
    assert mismatch.startswith("places.json: changed" if damage == "change" else "places.json: missing")


def killed_before_the_file(directory: Path, plan: Plan, *, before: list[str]) -> Path:
    """A run whose last opening is in the journal only; its file of places."""
    writer = record.create(directory, plan=plan, sources=SOURCES)
    for kernel in before:
        writer.note_place(opened(kernel))
    writer.append(opened("6.3"))
    writer.close()
    return directory / "places.json"


@pytest.mark.parametrize("before", [[], ["6.1"], ["6.1", "6.2"]])
def test_a_kill_between_the_journal_and_the_file_of_places_is_no_mismatch_and_resuming_writes_it(
    directory: Path, plan: Plan, before: list[str]
) -> None:
    killed_before_the_file(directory, plan, before=before)
    assert record.verify_hashes(record.read(directory)) == []
    writer = record.resume(directory)
    writer.append(RunFinished())
    writer.close()
    assert record.verify_hashes(record.read(directory)) == []


@pytest.mark.parametrize("damage", ["change", "remove"])
def test_places_that_no_kill_leaves_are_named_in_an_unfinished_run(directory: Path, plan: Plan, damage: str) -> None:
    path = killed_before_the_file(directory, plan, before=["6.1", "6.2"])
    path.write_text(path.read_text().replace("6.2", "6.1")) if damage == "change" else path.unlink()
    (mismatch,) = record.verify_hashes(record.read(directory))
    assert mismatch.startswith("places.json: changed" if damage == "change" else "places.json: missing")


def test_a_cut_trial_json_is_an_error_that_names_the_file(directory: Path, plan: Plan) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    commit(writer, 1, "a")
    writer.close()
    path = directory / "trials" / "all.b01.a" / "trial.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RecordError, match=r"trial\.json"):
        _ = record.read(directory).trials


def test_a_gap_in_the_journal_is_an_error(directory: Path, plan: Plan) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)
    commit(writer, 1, "a")
    commit(writer, 1, "b")
    writer.close()
    journal = directory / "journal.jsonl"
    kept = journal.read_text().splitlines(keepends=True)
    journal.write_text(kept[0] + kept[2])
    with pytest.raises(RecordError, match="expected sequence number 1, found 2"):
        record.read(directory)


def test_a_directory_that_is_no_record_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is not a record"):
        record.read(tmp_path)


def test_a_full_disk_says_what_to_do(directory: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = record.create(directory, plan=plan, sources=SOURCES)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlaceError, match="no space left") as caught:
        commit(writer, 1, "a")
    assert "--resume" in caught.value.hint
    writer.close()


KILLED = textwrap.dedent(
    """
    import signal
    import sys
    from pathlib import Path
    sys.path.insert(0, {support!r})
    from fairtrial import record
    from support.records import planned, tiny_plan, trial_record
    writer = record.create(Path({directory!r}), plan=tiny_plan(blocks=1000), sources={sources!r})
    print("ready", flush=True)
    for block in range(1, 1001):
        for arm in "ab":
            trial = planned(block, arm)
            (writer.begin(trial.id) / "raw.txt").write_text("x" * 5000)
            writer.commit(trial_record(trial))
            print(trial.id, flush=True)
    signal.pause()
    """
)


def test_sigkill_at_any_instant_loses_no_reported_trial(tmp_path: Path) -> None:
    for attempt in range(8):
        directory = tmp_path / f"run-{attempt}"
        script = KILLED.format(
            support=str(Path(__file__).parents[2]),
            directory=str(directory),
            sources=SOURCES,
        )
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            reported = [process.stdout.readline().strip() for _ in range(3 + attempt)][1:]
            process.send_signal(signal.SIGKILL)
            reported += [line.strip() for line in process.stdout if line.endswith("\n")]
        record.resume(directory).close()
        found = record.read(directory)
        assert {trial.trial.id for trial in found.trials} >= set(reported)
        assert record.verify_hashes(found) == []


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_the_journal_goes_on_after_an_append_broken_anywhere(
    directory: Path, *, plan: Plan, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    record.create(directory, plan=plan, sources=SOURCES).close()
    journal = Journal(directory / "journal.jsonl")

    class Broken:
        """The journal's file, with one call that Ctrl-C interrupts after it took effect."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def __getattr__(self, name: str) -> Any:
            if name != failing:
                return getattr(self._file, name)

            def interrupted(*arguments: Any) -> None:
                getattr(self._file, name)(*arguments)
                raise KeyboardInterrupt

            return interrupted

    def interrupted_sync(_descriptor: int) -> None:
        raise KeyboardInterrupt

    real = journal._file
    journal._file = Broken(real)  # type: ignore[assignment]
    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", interrupted_sync)
    with pytest.raises(KeyboardInterrupt):
        journal.append(RunFinished())
    monkeypatch.undo()
    journal._file = real
    journal.append(RunFinished())
    journal.close()
    assert [line.sequence for line in lines(directory / "journal.jsonl")] in ([0, 1], [0, 1, 2])
