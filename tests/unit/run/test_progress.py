"""live.json and the feed tell whoever looks where a run is, and cost nothing while a load is measured."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

import pytest
from support.progress import Told
from support.records import planned, trial_record

from fairtrial.protocol.generated import RateProgress
from fairtrial.record import live
from fairtrial.record.live import FeedReader
from fairtrial.run.progress import LiveProgress


@pytest.fixture(autouse=True)
def memory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each test's own: every run that begins beside this one looks for feeds that nobody holds."""
    monkeypatch.setattr(live, "MEMORY", tmp_path_factory.mktemp("memory"))


def test_it_holds_the_trial_its_phase_its_logs_and_what_was_noted(tmp_path: Path) -> None:
    told = Told()
    with LiveProgress(tmp_path, told).shown() as progress:
        progress.trial_started(planned(1, "a"), number=1, total=4, left_s=12.4)
        progress.logs(tmp_path / "log")
        progress.phase("drive")
        progress.note("a block is void")
        seen = live.read(tmp_path)
        assert seen is not None
        assert seen.trial is not None
        assert seen.process == os.getpid()
        where = (seen.trial.id, seen.trial.number, seen.trial.total, seen.trial.left_s, seen.trial.phase)
        assert where == ("all.b01.a", 1, 4, 12, "drive")
        assert (seen.logs, [note.text for note in seen.notes]) == (str(tmp_path / "log"), ["a block is void"])
        progress.trial_finished(trial_record(planned(1, "a"), valid=False))
        after = live.read(tmp_path)
        assert after is not None
        assert after.logs is None
    assert (told.counted, told.phases, told.notes, len(told.finished)) == ([(1, 4)], ["drive"], ["a block is void"], 1)
    assert list(tmp_path.iterdir()) == []  # nothing is left of a run that ended


def test_what_comes_every_second_goes_to_memory_and_not_to_the_record(tmp_path: Path) -> None:
    told = Told()
    with LiveProgress(tmp_path, told).shown() as progress:
        reader = FeedReader(tmp_path)
        progress.trial_started(planned(1, "a"), number=1, total=1, left_s=1)
        before = (tmp_path / live.NAME).stat().st_mtime_ns
        progress.load(RateProgress(per_s=5, errors=0))
        assert (tmp_path / live.NAME).stat().st_mtime_ns == before
        assert [(line.trial, line.said) for line in reader.lines()] == [("all.b01.a", told.lines[0])]
        assert list(reader.lines()) == []
        path = live.feed_path(tmp_path)
        assert path is not None
        assert path.stat().st_mode & 0o077 == 0
        progress.trial_started(planned(1, "b"), number=1, total=1, left_s=1)  # a feed of its own
        progress.load(RateProgress(per_s=6, errors=0))
        assert [line.trial for line in reader.lines()] == ["all.b01.b"]
    assert not path.exists()


def test_a_directory_that_others_may_write_to_holds_no_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MEMORY", tmp_path)
    home = tmp_path / f"fairtrial-{os.geteuid()}"
    home.mkdir(mode=0o700)
    assert live.feed_path(tmp_path) is not None
    home.chmod(0o777)
    assert live.feed_path(tmp_path) is None


def test_a_disk_that_takes_nothing_does_not_end_the_run_here(tmp_path: Path) -> None:
    told = Told()
    with LiveProgress(tmp_path / "gone", told).shown() as progress:
        progress.phase("drive")
    assert told.phases == ["drive"]


def test_what_a_killed_controller_left_in_memory_goes_when_the_next_run_begins(tmp_path: Path) -> None:
    (tmp_path / "next").mkdir()
    path = live.feed_path(tmp_path)
    requests = live.requests_path(tmp_path, process=os.getpid())
    orphan = live.requests_path(tmp_path, process=2**22 + 1)  # beyond the largest process id
    assert path is not None
    assert requests is not None
    assert orphan is not None
    try:
        with LiveProgress(tmp_path, Told()).shown() as goes_on:
            goes_on.trial_started(planned(1, "a"), number=1, total=1, left_s=1)
            requests.touch()
            orphan.touch()
            with LiveProgress(tmp_path / "next", Told()).shown():
                assert path.exists()
                assert (requests.exists(), orphan.exists()) == (True, False)
        path.touch()  # as a kill leaves it: nobody holds its lock
        with LiveProgress(tmp_path / "next", Told()).shown():
            assert not path.exists()
            assert requests.exists(), "it may be for a run that has no feed yet"
    finally:
        path.unlink(missing_ok=True)
        requests.unlink(missing_ok=True)


def test_a_feed_that_just_begins_is_not_taken_for_one_that_a_kill_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, feed, reader = fcntl.flock, live.Feed(tmp_path), FeedReader(tmp_path)

    def late(file: BinaryIO, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        live.Feed(tmp_path / "next")  # another run begins beside this one
        lock(file, how)

    for trial in ("all.b01.a", "all.b01.b"):
        monkeypatch.setattr(fcntl, "flock", late)
        feed.begin()
        feed.say(trial, RateProgress(per_s=5, errors=0), at_s=1.0)
        assert [line.trial for line in reader.lines()] == [trial]
    feed.end()
