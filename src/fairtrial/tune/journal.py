"""tune.jsonl: append-only, synced per line, with a lock; a kill can only tear the last line."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from fairtrial.errors import PlaceError, RecordError
from fairtrial.record.files import full_disk_explained, sync_directory
from fairtrial.record.journal import utc_now
from fairtrial.tune.events import TuneEvent, TuneLine

NAME: Final = "tune.jsonl"


def read(directory: Path) -> list[TuneEvent]:
    """The journal's whole lines, in order.

    Raises:
        RecordError: not a tuning's directory, or a damaged one.
    """
    path = directory / NAME
    if not path.exists():
        raise RecordError(f"{path} is missing", hint="give the directory of a tuning, as `fairtrial tune` printed it")
    data = path.read_bytes()
    events: list[TuneEvent] = []
    for raw in data[: data.rfind(b"\n") + 1].splitlines():
        where = f"{path}:{len(events) + 1}"
        hint = "restore the directory from a copy: it was changed after it was written"
        try:
            line = TuneLine.model_validate_json(raw)
        except ValidationError as error:
            raise RecordError(f"{where}: not a line of a tuning's journal: {error}", hint=hint) from error
        if line.sequence != len(events):
            raise RecordError(f"{where}: expected sequence number {len(events)}, found {line.sequence}", hint=hint)
        events.append(line.entry)
    return events


class TuneJournal:
    """The open journal of a tuning that goes on.

    Args:
        directory: the tuning's.
        new: whether it begins here.

    Attributes:
        events: its lines so far.

    Raises:
        PlaceError: another process has it.
    """

    def __init__(self, directory: Path, *, new: bool = False) -> None:
        path = directory / NAME
        self._directory = directory
        self._file = path.open("x+b" if new else "r+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            hint = "wait until it ends, or stop it and continue with --resume"
            raise PlaceError(f"another process is running {directory}", hint=hint) from error
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        self._file.truncate(whole)
        self._file.seek(whole)
        sync_directory(directory)
        self.events = read(directory)

    def append(self, event: TuneEvent) -> None:
        """Writes one event and makes it durable before returning."""
        line = TuneLine(sequence=len(self.events), time=utc_now(), entry=event)
        with full_disk_explained(self._directory):
            self._file.write(line.model_dump_json().encode() + b"\n")
            os.fsync(self._file.fileno())
        self.events.append(event)

    def close(self) -> None:
        """Releases the lock."""
        self._file.close()
