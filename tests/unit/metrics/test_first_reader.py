"""Another process reads a file first, and ends in this one's place."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from fairtrial.metrics import first_reader
from fairtrial.metrics.first_reader import FirstReader


def _read(path: Path) -> None:
    if path.stem == "ends":
        os.kill(os.getpid(), signal.SIGKILL)
    if path.stem == "torn":
        raise ValueError("torn at byte 7")


def test_what_ends_the_reader_is_told_and_the_next_file_is_read(tmp_path: Path) -> None:
    reader = FirstReader(_read)
    said = [reader.fault(tmp_path / name) for name in ("fine", "torn", "ends", "ends.again", "fine.again")]
    reader.end()
    ended = f"{first_reader.ENDED} (-9)"
    assert said == ["", "torn at byte 7", ended, ended, ""]


def test_without_a_first_reader_nothing_is_asked(tmp_path: Path) -> None:
    assert first_reader.fault(tmp_path / "ends") == ""
