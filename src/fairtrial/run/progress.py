"""What a run tells while it runs: to a person, and to live.json and the feed for anyone who looks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self

from fairtrial.protocol.progress import ProgressLine
from fairtrial.record import live
from fairtrial.record.journal import utc_now
from fairtrial.record.live import Feed, Live, LiveTrial
from fairtrial.record.models import PlannedTrial, TrialRecord


class Progress(Protocol):
    """Gets told what happens. Nothing here may fail the run."""

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """A trial begins; `left_s` is the time that the rest is expected to take, it included."""

    def phase(self, name: str) -> None:
        """The trial enters a phase: `prepare`, `restore`, `settle`, `start`, `drive`, `check`, `stop`, `collect`."""

    def logs(self, directory: Path) -> None:
        """Where on this machine the trial's logs grow."""

    def load(self, line: ProgressLine) -> None:
        """A progress line of the load."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """A trial was committed."""

    def paused(self, *, waits: bool) -> None:
        """The run begins or ends to wait between two trials."""

    def note(self, text: str) -> None:
        """Something worth a line: a voided block, a place cleaned up."""


class LiveProgress:
    """Mirrors progress for whoever looks on, while it is `shown`: see `fairtrial.record.live`."""

    def __init__(self, directory: Path, inner: Progress) -> None:
        self._directory = directory
        self._inner = inner
        self._live = Live(process=os.getpid())
        self._feed = Feed(directory)

    def _write(self, **changes: object) -> None:
        self._live = self._live.model_copy(update=changes)
        live.write(self._directory, self._live)

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `Progress`."""
        self._feed.begin()
        now = LiveTrial(id=trial.id, number=number, total=total, left_s=round(left_s), began=utc_now())
        self._write(trial=now, logs=None)
        self._inner.trial_started(trial, number=number, total=total, left_s=left_s)

    def phase(self, name: str) -> None:
        """See `Progress`."""
        if (trial := self._live.trial) is not None:
            self._write(trial=trial.model_copy(update={"phase": name, "phase_began": utc_now()}))
        self._inner.phase(name)

    def logs(self, directory: Path) -> None:
        """See `Progress`."""
        self._write(logs=str(directory))
        self._inner.logs(directory)

    def load(self, line: ProgressLine) -> None:
        """See `Progress`. Goes to memory alone: once per second would be I/O in the window."""
        trial = self._live.trial
        self._feed.say("" if trial is None else trial.id, line, at_s=time.time())
        self._inner.load(line)

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `Progress`."""
        self._write(logs=None)
        self._inner.trial_finished(trial)

    def paused(self, *, waits: bool) -> None:
        """See `Progress`."""
        self._write(paused=waits)
        self._inner.paused(waits=waits)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._live = live.note(self._live, text)
        self._write()
        self._inner.note(text)

    @contextlib.contextmanager
    def shown(self) -> Iterator[Self]:
        """Somebody runs it, from here to the end."""
        try:
            self._write()
            yield self
        finally:
            self._feed.end()
            (self._directory / live.NAME).unlink(missing_ok=True)
