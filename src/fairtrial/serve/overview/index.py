"""What is known of every run below a directory, kept between processes: ten thousand records are read once.

Loads nothing but the standard library until a record has to be read, so that a list is there as soon as the process is.
A run is read again when its plan, journal or report changes. Nothing is analysed here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fairtrial.caching import cache_directory
from fairtrial.serve.loading import load
from fairtrial.serve.overview.run_summary import RunSummary, VerdictCount

Stamp = tuple[int, ...]

FILES: Final = ("plan.json", "journal.jsonl", "report/report.json")  # what a summary is made from
JOURNAL_INODE: Final = 5  # in a stamp
ABSENT: Final = (0, 0, 0)
FORMAT: Final = 2  # of the stored index, and of what it counts; another one is made anew
FRESH_S: Final = 1.0  # between two looks at the directory
REST: Final = 20.0  # after a look, as a multiple of the time it took
AFTER_S: Final = 0.2  # a look that takes long begins when whoever asked has the answer
SAVED_S: Final = 20.0  # between two writings of the index
FIRST_WAIT_S: Final = 0.4  # for a list that nothing is known of yet
WAIT_S: Final = 0.1  # for a directory that is looked through faster than that
SMALL_S: Final = 0.05  # of such a look
LOOK_S: Final = 2e-5  # that a look takes for each run, before one was timed
DIGITS: Final = 24
LOCKS: Final = Path("/proc/locks")
HELD: Final = re.compile(r"\bFLOCK\b.*?\s\S+:(\d+)\s")


FIELDS: Final = tuple(each.name for each in dataclasses.fields(RunSummary))
VERDICTS: Final = FIELDS.index("verdicts")


@dataclass
class Index:
    """Runs directly below a directory.

    Attributes:
        runs: the directory.
        left: runs that still have to be read; None before the first look.
        links: symbolic links, which are not followed.
    """

    runs: Path
    left: int | None = None
    links: int = 0
    _known: dict[str, tuple[Stamp, RunSummary]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None
    _looked_at: float = -math.inf
    _took_s: float = 0.0
    _saved_at: float = 0.0
    _loaded: bool = False

    def summaries(self) -> list[RunSummary]:
        """What is known now, in no order."""
        return [summary for _stamp, summary in list(self._known.values())]

    def look(self) -> None:
        """Has what changed read in a thread, and waits a moment for it where that is worth while."""
        with self._lock:
            self._load()
            running = self._thread is not None and self._thread.is_alive()
            if not running and time.monotonic() - self._looked_at >= max(FRESH_S, REST * self._took_s):
                self._thread = threading.Thread(target=self._refresh_after, daemon=True, name="index of runs")
                self._thread.start()
            thread = self._thread
        if thread is not None and (not self._known or self._took_s <= SMALL_S):
            thread.join(WAIT_S if self._known else FIRST_WAIT_S)

    def _refresh_after(self) -> None:
        if self._known and self._took_s > SMALL_S:
            time.sleep(AFTER_S)
        self.refresh()

    def refresh(self) -> None:
        """Reads every run that is new or changed, the newest first."""
        began = time.monotonic()
        found, self.links = _stamps(self.runs)
        changed = [name for name, stamp in found.items() if self._known.get(name, ((),))[0] != stamp]
        gone = self._known.keys() - found.keys()
        for name in gone:
            del self._known[name]
        self.left = len(changed)
        if changed:
            self._read({name: found[name] for name in sorted(changed, key=lambda each: found[each][3], reverse=True)})
        if changed or gone:
            self._save(every_s=SAVED_S if len(changed) + len(gone) < len(found) / 10 else 0.0)
        self._looked_at = time.monotonic()
        self._took_s = self._looked_at - began

    def _read(self, stamps: dict[str, Stamp]) -> None:
        load()
        from fairtrial.serve.overview.summarising import summarise  # noqa: PLC0415 - see the module's docstring

        for left, (name, stamp) in enumerate(stamps.items(), start=1 - len(stamps)):
            self._known[name] = stamp, summarise(self.runs / name)
            self.left = -left
            self._save(every_s=SAVED_S)

    def running(self, summaries: Iterable[RunSummary]) -> set[str]:
        """Names of those that a process runs now."""
        unfinished = [each.name for each in summaries if each.state in {"unfinished", "not started"}]
        held = _held() if unfinished else frozenset()
        known = dict(self._known)  # a look in the other thread may forget one
        candidates = [name for name in unfinished if name in known and known[name][0][JOURNAL_INODE] in held]
        if not candidates:
            return set()
        from fairtrial.record.live import controller  # noqa: PLC0415 - see the module's docstring

        return {name for name in candidates if controller(self.runs / name) is not None}

    @property
    def _file(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.runs.resolve())).hexdigest()[:DIGITS]
        return cache_directory() / "runs" / f"{digest}.json"

    def _load(self) -> None:
        """What an earlier process knew; nothing where that cannot be read."""
        if self._loaded:
            return
        self._loaded = True
        with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
            stored = json.loads(self._file.read_bytes())
            if stored["format"] == FORMAT:
                self._known = {row[0]: (tuple(stamp), _summary(row)) for stamp, row in stored["runs"]}
                self._took_s = LOOK_S * len(self._known)

    def _save(self, *, every_s: float) -> None:
        """Keeps what is known; a cache that cannot be written costs time, and nothing else."""
        if time.monotonic() - self._saved_at < every_s:
            return
        path = self._file
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        rows = [(stamp, _row(summary)) for stamp, summary in list(self._known.values())]
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({"format": FORMAT, "runs": rows}), encoding="ascii")
            temporary.replace(path)
        self._saved_at = time.monotonic()


def _row(summary: RunSummary) -> list[object]:
    """Values in the order of the fields: names would be half of the file."""
    return [_plain(getattr(summary, name)) for name in FIELDS]


def _plain(value: object) -> object:
    return [dataclasses.astuple(each) for each in value] if isinstance(value, tuple) else value


def _summary(row: list[Any]) -> RunSummary:
    row[VERDICTS] = tuple(VerdictCount(*each) for each in row[VERDICTS])
    return RunSummary(*row)


def _stamps(runs: Path) -> tuple[dict[str, Stamp], int]:
    """When and how large each run's files are, by name, and how many links were left alone."""
    found: dict[str, Stamp] = {}
    links = 0
    with contextlib.suppress(OSError), os.scandir(runs) as entries:
        for entry in entries:
            if entry.is_symlink():
                links += 1
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                stamp = tuple(number for name in FILES for number in _stamp(f"{entry.path}/{name}"))
                if any(stamp[: 2 * len(ABSENT)]):
                    found[entry.name] = stamp
    return found, links


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        seen = os.lstat(path)
    except OSError:
        return ABSENT
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _held() -> frozenset[int]:
    """Inodes of files that are locked, on whichever device: proc_locks(5)."""
    try:
        return frozenset(int(inode) for inode in HELD.findall(LOCKS.read_text(encoding="ascii")))
    except OSError:
        return frozenset()
