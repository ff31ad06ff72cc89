"""journal.jsonl of a bisection: append-only, synced per line, held by one process.

A kill can only tear the last line. Reading ignores a torn line, opening cuts it off.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pydantic import ValidationError

from fairtrial.bisect.models import Event, JournalLine
from fairtrial.errors import PlaceError, RecordError
from fairtrial.record.files import full_disk_explained
from fairtrial.record.journal import NAME, utc_now


def events(directory: Path) -> list[Event]:
    """Whole lines of a journal, in order.

    Raises:
        RecordError: a line that is not the last cannot be read, or the sequence has a gap.
    """
    path = directory / NAME
    data = path.read_bytes() if path.exists() else b""
    found: list[Event] = []
    for raw in data[: data.rfind(b"\n") + 1].splitlines():
        where, hint = (
            f"{path}:{len(found) + 1}",
            "restore the bisection from a copy: it was changed after it was written",
        )
        try:
            line = JournalLine.model_validate_json(raw)
        except ValidationError as error:
            raise RecordError(f"{where}: not a journal line: {error}", hint=hint) from error
        if line.sequence != len(found):
            raise RecordError(f"{where}: expected sequence number {len(found)}, found {line.sequence}", hint=hint)
        found.append(line.entry)
    return found


class Journal:
    """The open journal of a bisection that goes on.

    Raises:
        PlaceError: another process has it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = (directory / NAME).open("a+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            hint = "wait until it ends, or stop it and continue with --resume"
            raise PlaceError(f"another process continues {directory}", hint=hint) from error
        data = (directory / NAME).read_bytes()
        self._file.truncate(data.rfind(b"\n") + 1)
        self._sequence = len(events(directory))

    def append(self, entry: Event) -> None:
        """Writes one event and makes it durable before returning."""
        line = JournalLine(sequence=self._sequence, time=utc_now(), entry=entry)
        with full_disk_explained(self._directory):
            self._file.write(line.model_dump_json().encode() + b"\n")
            os.fsync(self._file.fileno())
        self._sequence += 1

    def close(self) -> None:
        """Lets others continue."""
        self._file.close()
