"""journal.jsonl: append-only, synced per line; what a resumed run and `verify` believe.

A kill can only tear the last line. Reading ignores a torn line, appending first cuts it off.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from fairtrial.errors import PlaceError, RecordError
from fairtrial.record.files import full_disk_explained, sync_directory
from fairtrial.record.models import Event, JournalLine

NAME = "journal.jsonl"


def utc_now() -> str:
    """Calendar time for people, ISO 8601 in UTC with milliseconds. Intervals never use it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines(path: Path) -> Iterator[JournalLine]:
    """The journal's whole lines, in order.

    Raises:
        RecordError: a line that is not the last cannot be read, or the sequence has a gap.
    """
    if not path.exists():
        raise RecordError(f"{path} is missing", hint="give the directory of a run, as `fairtrial run` printed it")
    data = path.read_bytes()
    for expected, raw in enumerate(data[: data.rfind(b"\n") + 1].splitlines()):
        try:
            line = JournalLine.model_validate_json(raw)
        except ValidationError as error:
            raise RecordError(f"{path}:{expected + 1}: not a journal line: {error}", hint=_DAMAGED) from error
        if line.sequence != expected:
            raise RecordError(
                f"{path}:{expected + 1}: expected sequence number {expected}, found {line.sequence}", hint=_DAMAGED
            )
        yield line


_DAMAGED = "restore the record from a copy: it was changed after it was written"


class Journal:
    """The open journal of a running run. Holds the run's lock: one controller per record.

    Raises:
        PlaceError: another process is running this record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a+b", buffering=0)  # nothing may linger in a buffer after a broken append
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise PlaceError(
                f"another process is running {path.parent}",
                hint="wait until it ends, or stop it and continue with --resume",
            ) from error
        self._sequence = 0
        self._known = False  # whether `_sequence` is what the file says: not at first, nor after a broken append
        self._look()
        sync_directory(path.parent)

    def _look(self) -> None:
        self._cut_torn_line()
        self._sequence = sum(1 for _ in lines(self._path))
        self._known = True

    def _cut_torn_line(self) -> None:
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            self._file.truncate(whole)
            os.fsync(self._file.fileno())

    def append(self, entry: Event) -> None:
        """Writes one event and makes it durable before returning."""
        with full_disk_explained(self._path.parent):
            if not self._known:
                self._look()
            line = JournalLine(sequence=self._sequence, time=utc_now(), entry=entry)
            self._known = False  # Ctrl-C can fall between any two of the next lines
            data = line.model_dump_json().encode() + b"\n"
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, "only part of the line was written")
            os.fsync(self._file.fileno())
            self._sequence += 1
            self._known = True

    def close(self) -> None:
        """Releases the run's lock."""
        self._file.close()
