"""What is known of many runs: read once, read again when it changes, kept between processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial.record import live
from fairtrial.record.journal import NAME, Journal
from fairtrial.record.live import Live
from fairtrial.serve.overview import index as indexing
from fairtrial.serve.overview import summarising
from fairtrial.serve.overview.index import Index
from fairtrial.serve.overview.run_summary import RunSummary

Write = Callable[..., Path]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that were read."""
    names: list[str] = []
    summarise = summarising.summarise

    def counted(directory: Path) -> RunSummary:
        names.append(directory.name)
        return summarise(directory)

    monkeypatch.setattr(summarising, "summarise", counted)
    return names


def states(index: Index) -> dict[str, str]:
    return {each.name: each.state for each in index.summaries()}


def test_runs_are_read_once_and_again_when_they_change(runs: Path, write: Write, reads: list[str]) -> None:
    for name in ("r1", "r2"):
        write(name)
    index = Index(runs)
    index.refresh()
    index.refresh()
    assert sorted(reads) == ["r1", "r2"]
    path = runs / "r1" / NAME
    path.write_bytes(path.read_bytes() + b"{")
    index.refresh()
    assert reads[2:] == ["r1"]
    assert states(index) == {"r1": "finished", "r2": "finished"}
    assert index.left == 0


def test_a_report_that_is_written_later_is_read(runs: Path, write: Write) -> None:
    write("r", state="finished")
    index = Index(runs)
    index.refresh()
    (before,) = index.summaries()
    shutil.rmtree(runs / "r")
    write("r")
    index.refresh()
    (after,) = index.summaries()
    assert ("no report" in before.reason, before.verdicts, len(after.verdicts)) == (True, (), 1)


def test_a_run_that_is_gone_is_forgotten(runs: Path, write: Write) -> None:
    write("r")
    index = Index(runs)
    index.refresh()
    shutil.rmtree(runs / "r")
    index.refresh()
    assert index.summaries() == []


def test_another_process_reads_nothing_again(runs: Path, write: Write, reads: list[str]) -> None:
    write("r", ratio=1.2)
    Index(runs).refresh()
    other = Index(runs)
    other.look()
    other.refresh()
    assert reads == ["r"]
    first, second = Index(runs), Index(runs)
    first.refresh()
    second.look()
    assert second.summaries() == other.summaries() == first.summaries()


@pytest.mark.parametrize("text", ["", "{", '{"format": 0, "runs": []}', '{"format": 2, "runs": [[[1], ["r"]]]}'])
def test_a_stored_index_that_cannot_be_used_is_made_anew(text: str, write: Write, cache: Path) -> None:
    runs = write("r").parent
    Index(runs).refresh()
    (stored,) = cache.rglob("*.json")
    good = json.loads(stored.read_bytes())
    stored.write_text(text, encoding="utf-8")
    index = Index(runs)
    index.look()
    index.refresh()
    assert states(index) == {"r": "finished"}
    assert json.loads(stored.read_bytes()) == good


def test_a_cache_that_cannot_be_written_costs_nothing_else(runs: Path, write: Write, cache: Path) -> None:
    write("r")
    cache.write_text("in the way", encoding="utf-8")
    index = Index(runs)
    index.refresh()
    assert states(index) == {"r": "finished"}


def test_links_out_hidden_directories_and_others_are_not_runs(runs: Path, write: Write, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(write("r"), elsewhere)
    (runs / "out").symlink_to(elsewhere)
    (runs / "notes").mkdir()
    (runs / "file").write_text("", encoding="utf-8")
    shutil.copytree(elsewhere, runs / ".being-made")
    index = Index(runs)
    index.refresh()
    assert (index.summaries(), index.links) == ([], 1)


def test_a_directory_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    index = Index(tmp_path / "none")
    index.refresh()
    assert (index.summaries(), index.left) == ([], 0)


def test_whoever_says_so_and_has_the_journal_open_runs(runs: Path, write: Write) -> None:
    held, free = write("held", state="unfinished"), write("free", state="unfinished")
    index = Index(runs)
    index.refresh()
    assert index.running(index.summaries()) == set()
    for directory in (held, free):
        live.write(directory, Live(process=os.getpid()))
    journal = Journal(held / NAME)
    try:
        index.refresh()
        assert index.running(index.summaries()) == {"held"}  # the other was killed, and another process has its number
    finally:
        journal.close()
    assert index.running(index.summaries()) == set()


def test_looking_waits_for_a_small_directory(runs: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FIRST_WAIT_S", 60.0)
    write("r")
    index = Index(runs)
    index.look()
    assert states(index) == {"r": "finished"}


def test_a_list_needs_no_models() -> None:
    """It is there before anything else is loaded; importing the models takes seconds on a busy machine."""
    code = "import sys, fairtrial.serve.overview.runs_list; print('pydantic' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
