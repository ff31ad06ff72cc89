"""The ends of logs. A log may have any size and hold any bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

BYTES: Final = 16_384
LINES: Final = 60
LINE_CHARACTERS: Final = 500


def tails(directory: Path) -> list[tuple[str, str]]:
    """Name and last lines of every log in a directory that has any, by name; links are not followed."""
    return [(path.name, text) for path in sorted(directory.glob("*.log")) if (text := tail(path))]


def tail(path: Path) -> str:
    """The last lines of a log, long ones cut, control characters shown as `\N{REPLACEMENT CHARACTER}`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        data = os.pread(descriptor, BYTES, max(0, size - BYTES)) if size else b""
        del file
    text = data.decode(errors="replace")
    lines = text.split("\n")[-LINES - 1 :]
    return "\n".join(_shown(line) for line in lines).strip("\n")


def _shown(line: str) -> str:
    cut = line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}" for each in cut)
