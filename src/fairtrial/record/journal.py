"""journal.jsonl: append-only, synced per line; what a resumed run and `verify` believe. And journals like it.

A kill can only tear the last line. Reading ignores a torn line, appending first cuts it off.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from fairtrial import foreign
from fairtrial.errors import PlaceError, RecordError
from fairtrial.record.events import JournalLine, Line
from fairtrial.record.files import disk_explained, sync_directory
from fairtrial.record.models import RecordModel

NAME = "journal.jsonl"
MOST_BYTES: Final = 1 << 30  # read at once; a hundred thousand trials leave a fifth of it
LineT = TypeVar("LineT", bound=Line)


@dataclass(frozen=True)
class Kind(Generic[LineT]):
    """What a journal is of.

    Attributes:
        line: of it.
        of: what its directory is, and `whole`, what is restored from a copy.
        command: that printed the directory.
    """

    line: type[LineT]
    of: str
    whole: str
    command: str


RUN: Final = Kind(JournalLine, of="run", whole="record", command="fairtrial run")


def utc_now() -> str:
    """Time of day, ISO 8601 in UTC with milliseconds. No measurement uses it: the clock may be set meanwhile."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines(path: Path) -> Iterator[JournalLine]:
    """The journal's whole lines, in order.

    Raises:
        RecordError: a line that is not the last cannot be read, or the sequence has a gap.
    """
    yield from JournalReader(path).lines()


class LineReader(Generic[LineT]):
    """Reads a journal that may still grow: every whole line once, in order."""

    def __init__(self, path: Path, kind: Kind[LineT]) -> None:
        self._path, self._kind = path, kind
        self._offset = self._read = 0

    def lines(self) -> Iterator[LineT]:
        """The whole lines since the last call.

        Raises:
            RecordError: a line that is not the last cannot be read, or the sequence has a gap.
        """
        try:
            data = foreign.read(self._path, most_bytes=MOST_BYTES, offset=self._offset)
        except FileNotFoundError as error:
            hint = f"give the directory of a {self._kind.of}, as `{self._kind.command}` printed it"
            raise RecordError(f"{self._path} is missing", hint=hint) from error
        except OSError as error:
            hint = f"restore the {self._kind.whole} from a copy"
            raise RecordError(f"{self._path} cannot be read: {error.strerror}", hint=hint) from error
        for raw in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            yield self._line(raw)
            self._offset += len(raw)
            self._read += 1

    def _line(self, raw: bytes) -> LineT:
        where = f"{self._path}:{self._read + 1}"
        hint = f"restore the {self._kind.whole} from a copy: it was changed after it was written"
        try:
            line = self._kind.line.model_validate_json(raw)
        except ValidationError as error:
            raise RecordError(f"{where}: not a journal line: {error}", hint=hint) from error
        if line.sequence != self._read:
            raise RecordError(f"{where}: expected sequence number {self._read}, found {line.sequence}", hint=hint)
        return line


class JournalReader(LineReader[JournalLine]):
    """Of a run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, RUN)


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
            own = Path(f"/proc/{process}")
            state = (own / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            # What a process that is dead and not waited for had open may be looked at by root alone, too.
            return state not in "ZX" and own.stat().st_uid == self._journal.stat().st_uid
        return False

    def _leads_to(self, seen: os.stat_result) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(self._link.stat(), seen)
        return False


class Journal:
    """The open journal of what goes on, a run by default. Holds its lock: one controller per record.

    Raises:
        PlaceError: another process is running it.
    """

    def __init__(self, path: Path, kind: Kind[Any] = RUN) -> None:
        self._path, self._kind = path, kind
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
        self._sequence = sum(1 for _ in LineReader(self._path, self._kind).lines())
        self._known = True

    def _cut_torn_line(self) -> None:
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            self._file.truncate(whole)
            os.fsync(self._file.fileno())

    def append(self, entry: RecordModel) -> None:
        """Writes one event and makes it durable before returning."""
        with disk_explained(self._path.parent):
            if not self._known:
                self._look()
            line = self._kind.line(sequence=self._sequence, time=utc_now(), entry=entry)
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
