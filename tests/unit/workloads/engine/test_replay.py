"""Recorded times: from a file of seconds to the engine's nanoseconds, exactly."""

from __future__ import annotations

import struct
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.errors import InputError
from fairtrial.workloads.engine import replay


def written(directory: Path, text: str) -> Path:
    path = directory / "times.txt"
    path.write_text(text, encoding="utf-8")
    return path


def nanoseconds(content: bytes) -> list[int]:
    return [time for (time,) in struct.iter_unpack("<q", content)]


def test_times_of_a_log_are_relative_to_the_first_and_lose_no_nanosecond(tmp_path: Path) -> None:
    path = written(tmp_path, "# from a server's log\n1732183200.000000001\n\n1732183200.5\n1732183201.000000002\n")
    recording = replay.recorded(path)
    assert recording.arrivals == 3
    assert nanoseconds(replay.content(recording)) == [0, 499_999_999, 1_000_000_001]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=50))
def test_any_rising_times_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, times_ns: list[int]) -> None:
    rising = sorted(times_ns)
    path = tmp_path_factory.mktemp("times") / "times.txt"
    path.write_text("".join(f"{Decimal(time).scaleb(-9)}\n" for time in rising), encoding="utf-8")
    assert nanoseconds(replay.content(replay.recorded(path))) == [time - rising[0] for time in rising]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0\n1\n0.5\n", r"times\.txt:3: expected times that do not decrease, found 0\.5 after 1"),
        ("0\n1e9\n", r"times\.txt:2: .* more than a year after the first"),
        ("0 1\n", r"times\.txt:1: expected a number of seconds, found '0 1'"),
        ("0\n" + "1" * 200 + "\n", r"times\.txt:2: longer than 100 characters"),
        ("-9e999999\n9e999999\n", r"times\.txt:1: expected a number of seconds, found '-9e999999'"),
        ("inf\n", r"times\.txt:1: expected a number"),
        ("\n\n", "has no times"),
    ],
)
def test_what_is_no_rising_time_is_named_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        replay.recorded(written(tmp_path, text))


def test_more_times_than_the_engine_takes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST", 3)
    with pytest.raises(ValueError, match=r"times\.txt:4: more than 3 times"):
        replay.recorded(written(tmp_path, "0\n1\n2\n3\n"))


def test_a_file_that_changed_after_the_study_was_read_is_an_error(tmp_path: Path) -> None:
    recording = replay.recorded(written(tmp_path, "0\n1\n"))
    written(tmp_path, "0\n2\n")
    with pytest.raises(InputError, match="has changed since the study was read"):
        replay.content(recording)
    (tmp_path / "times.txt").unlink()
    with pytest.raises(InputError, match="is no longer readable"):
        replay.content(recording)
