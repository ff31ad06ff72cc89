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
    return Tails().read(directory)


class Tails:
    """Reads the ends of a directory's logs again and again: only of those that have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}

    def read(self, directory: Path) -> list[tuple[str, str]]:
        """As `tails`."""
        known, self._known = self._known, {}
        try:
            with os.scandir(directory) as entries:
                logs = [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries if _is_log(entry)]
        except OSError:
            return []
        for path, seen in sorted(logs):
            version = (seen.st_ino, seen.st_size, seen.st_mtime_ns)
            self._known[path] = known[path] if known.get(path, ((), ""))[0] == version else (version, tail(Path(path)))
        return [(Path(path).name, text) for path, (_version, text) in self._known.items() if text]


def _is_log(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".log") and not entry.name.startswith(".")


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
