"""A bisection's journal: one process at a time, and a kill costs the torn line only."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.bisect.journal import Journal, events
from fairtrial.bisect.models import Gap, Ready
from fairtrial.errors import PlaceError, RecordError


def test_what_was_appended_is_read_and_a_torn_line_is_cut(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(Ready(version=0, seconds=1.5))
    journal.close()
    path = tmp_path / "journal.jsonl"
    with path.open("a") as file:
        file.write('{"sequence": 1, "tim')
    assert events(tmp_path) == [Ready(version=0, seconds=1.5)]
    again = Journal(tmp_path)
    again.append(Gap(version=3, reason="it does not build"))
    again.close()
    assert events(tmp_path) == [Ready(version=0, seconds=1.5), Gap(version=3, reason="it does not build")]


def test_two_processes_cannot_continue_one_bisection(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(PlaceError, match="another process"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_a_line_that_was_taken_out_is_noticed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for version in range(3):
        journal.append(Ready(version=version, seconds=0.0))
    journal.close()
    path = tmp_path / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[2])
    with pytest.raises(RecordError, match="expected sequence number 1, found 2"):
        events(tmp_path)
