"""journal.jsonl: append-only, synced per line; what a resumed run and `verify` believe.

A kill can only tear the last line. Reading ignores a torn line, appending first cuts it off.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from fairtrial.errors import PlaceError, RecordError
from fairtrial.record.events import Event, JournalLine
from fairtrial.record.files import full_disk_explained, sync_directory

NAME = "journal.jsonl"


def utc_now() -> str:
    """Calendar time for people, ISO 8601 in UTC with milliseconds. Intervals never use it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines(path: Path) -> Iterator[JournalLine]:
    """The journal's whole lines, in order.

    Raises:
        RecordError: a line that is not the last cannot be read, or the sequence has a gap.
    """
    yield from JournalReader(path).lines()


_DAMAGED = "restore the record from a copy: it was changed after it was written"


class JournalReader:
    """Reads a journal that may still grow: every whole line once, in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = self._read = 0

    def lines(self) -> Iterator[JournalLine]:
        """The whole lines since the last call.

        Raises:
            RecordError: a line that is not the last cannot be read, or the sequence has a gap.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError as error:
            hint = "give the directory of a run, as `fairtrial run` printed it"
            raise RecordError(f"{self._path} is missing", hint=hint) from error
        for raw in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            yield self._line(raw)
            self._offset += len(raw)
            self._read += 1

    def _line(self, raw: bytes) -> JournalLine:
        where = f"{self._path}:{self._read + 1}"
        try:
            line = JournalLine.model_validate_json(raw)
        except ValidationError as error:
            raise RecordError(f"{where}: not a journal line: {error}", hint=_DAMAGED) from error
        if line.sequence != self._read:
            raise RecordError(f"{where}: expected sequence number {self._read}, found {line.sequence}", hint=_DAMAGED)
        return line


def is_held(directory: Path, process: int) -> bool:
    """Whether a process is this record's controller: it has the journal open, as no process that reads it has for long.

    proc_locks(5) would say who holds the lock, but to read it stops every other process's locking for milliseconds.
    """
    return Holder(directory).holds(process)


class Holder:
    """Asks again and again who is a record's controller; looks first where the journal was open last time."""

    def __init__(self, directory: Path) -> None:
        self._journal = directory / NAME
        self._process = 0
        self._link = Path()

    def holds(self, process: int) -> bool:
        """See `is_held`."""
        try:
            seen = self._journal.stat()
            if self._process == process and self._leads_to(seen):
                return True
            self._process = process
            for self._link in Path(f"/proc/{process}/fd").iterdir():
                if self._leads_to(seen):
                    return True
        except PermissionError:
            return self._is_of_its_owner(process)  # another user's, and only that user shall be believed
        except OSError:
            return False
        return False

    def _is_of_its_owner(self, process: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{process}").stat().st_uid == self._journal.stat().st_uid
        return False

    def _leads_to(self, seen: os.stat_result) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(self._link.stat(), seen)
        return False


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
