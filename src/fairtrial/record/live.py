"""What a run says of itself while it runs: live.json in its record, and a feed in memory. Nobody believes it later.

live.json is written between the phases of a trial and never synced. What comes every second goes to a file that has no
disk below it, so that looking costs the measured window no I/O; it begins anew with every trial.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import Field, ValidationError

from fairtrial import foreign
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.journal import Holder, is_held, utc_now
from fairtrial.record.models import RecordModel

NAME: Final = "live.json"
MOST_BYTES: Final = 1 << 20
MOST_NOTES: Final = 100
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of the user's own below it, closed to others
REQUESTS: Final = ".requests"
NEW: Final = ".new"  # of a feed that is not locked yet
DIGITS: Final = 24  # of a record's path as a hash: no two runs of one user share a feed
PRIVATE: Final = 0o700


class Note(RecordModel):
    """Something that was worth a line."""

    time: str
    text: str


class LiveTrial(RecordModel):
    """The trial that runs. `left_s`: what the run was expected to take from its beginning on, this trial included."""

    id: str
    number: int
    total: int
    left_s: float
    began: str
    phase: str = ""
    phase_began: str = ""


class Live(RecordModel):
    """live.json.

    Attributes:
        process: the controller's.
        trial: the one that runs, or ran last; null before the first.
        paused: it waits between two trials until somebody lets it go on.
        notes: the newest, oldest first.
        logs: of the running trial: a directory that this machine can read, if there is one.
    """

    process: int
    trial: LiveTrial | None = None
    paused: bool = False
    notes: tuple[Note, ...] = ()
    logs: str | None = None


class FeedLine(RecordModel):
    """One line of the feed. `at_s`: Unix time."""

    trial: str
    at_s: float
    said: ProgressLine = Field(discriminator="progress")


def read(directory: Path) -> Live | None:
    """What a run says now; None if it says nothing, or nothing that this version understands."""
    try:
        return Live.model_validate_json(foreign.read(directory / NAME, most_bytes=MOST_BYTES))
    except (OSError, ValidationError):
        return None


class LiveReader:
    """Reads live.json again and again: only when it has changed, and believes it while its process runs the record."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / NAME
        self._holder = Holder(directory)
        self._version = (0, 0)
        self._said: Live | None = None

    def read(self) -> Live | None:
        """What the run says now; None unless somebody runs it."""
        try:
            seen = self._path.stat()
        except OSError:
            return None
        version = (seen.st_ino, seen.st_mtime_ns)
        if version != self._version:
            self._version, self._said = version, read(self._directory)
        return self._said if self._said is not None and self._holder.holds(self._said.process) else None


def controller(directory: Path) -> int | None:
    """The process that runs this record now; None if nobody does."""
    live = read(directory)
    return live.process if live is not None and is_held(directory, live.process) else None


def write(directory: Path, live: Live) -> None:
    """Says it. A full disk ends the run where it matters, not here."""
    path = directory / NAME
    temporary = path.with_suffix(".tmp")
    with contextlib.suppress(OSError):
        temporary.write_text(live.model_dump_json(), encoding="utf-8")
        temporary.replace(path)


def feed_path(directory: Path) -> Path | None:
    """Where the feed of a run is, in a directory of this user's alone; None where there is no memory to keep it in."""
    home = _private(MEMORY / f"fairtrial-{os.geteuid()}")
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:DIGITS]
    return None if home is None else home / f"{name}.jsonl"


def requests_path(directory: Path, *, process: int) -> Path | None:
    """Where requests to a process that runs a record are, beside its feed: none is for one that takes it up later."""
    feed = feed_path(directory)
    return None if feed is None else feed.with_name(f"{feed.stem}.{process}{REQUESTS}")


def _private(directory: Path) -> Path | None:
    """A directory that nobody else can have put anything into, made if it is not there."""
    try:
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        seen = directory.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not stat.S_IMODE(seen.st_mode) & 0o077
    return directory if own else None


def _forget(home: Path) -> None:
    """Takes away what controllers that were killed left: feeds whose lock nobody holds, requests that nobody reads."""
    for path in home.glob("*.jsonl"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # or its run has put another there
                path.unlink()
    for path in home.glob(f"*{REQUESTS}"):
        if not Path("/proc", path.name.split(".")[1]).exists():
            path.unlink(missing_ok=True)


class Feed:
    """The feed of a run, being written: one line for everything that the load says. Locked for as long as it lives."""

    def __init__(self, directory: Path) -> None:
        self._path = feed_path(directory)
        self._file: BinaryIO | None = None
        if self._path is not None:
            _forget(self._path.parent)

    def begin(self) -> None:
        """A new trial: what was said of the one before is in its files by now. A reader sees another file."""
        if self._path is not None:
            new = self._path.with_suffix(NEW)  # before it is locked, a run that begins would take it for a left one
            try:
                file = open(  # noqa: SIM115 - `end` closes it
                    new, "ab", buffering=0, opener=lambda path, flags: os.open(path, flags, mode=0o600)
                )
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new.replace(self._path)
            except OSError:
                self.end()
                return
            if self._file is not None:
                self._file.close()  # only now: readers tell files by their inodes, which go to the next that is made
            self._file = file

    def say(self, trial: str, line: ProgressLine, *, at_s: float) -> None:
        """Adds a line."""
        if self._file is not None:
            text = json.dumps({"trial": trial, "at_s": at_s, "said": line.model_dump(mode="json")})
            with contextlib.suppress(OSError):
                self._file.write(f"{text}\n".encode())

    def end(self) -> None:
        """Takes it away."""
        if self._file is not None and self._path is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


class FeedReader:
    """Reads a feed on: every line once, from the beginning where the file is another one."""

    def __init__(self, directory: Path) -> None:
        self._path = feed_path(directory)
        self._inode, self._offset = 0, 0

    def lines(self) -> Iterator[FeedLine]:
        """What was said since the last call, whole lines only; lines that cannot be read are left out."""
        if self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode or os.fstat(file.fileno()).st_size < self._offset:
                    self._inode, self._offset = inode, 0
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for raw in data[:whole].splitlines():
            with contextlib.suppress(ValidationError):
                yield FeedLine.model_validate_json(raw)


def note(live: Live, text: str) -> Live:
    """With a line more."""
    return live.model_copy(update={"notes": (*live.notes, Note(time=utc_now(), text=text))[-MOST_NOTES:]})
