"""What a run tells while it runs: to a person, and to live.json for anyone who looks."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Protocol

from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import PlannedTrial, TrialRecord


class Progress(Protocol):
    """Gets told what happens. Nothing here may fail the run."""

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """A trial begins; `left_s` is the time that the rest is expected to take, it included."""

    def phase(self, name: str) -> None:
        """The trial enters a phase: `prepare`, `restore`, `settle`, `start`, `drive`, `check`, `stop`, `collect`."""

    def load(self, line: ProgressLine) -> None:
        """A progress line of the load."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """A trial was committed."""

    def note(self, text: str) -> None:
        """Something worth a line: a voided block, a place cleaned up."""


class LiveFile:
    """Mirrors progress into live.json: unsynced, so that it costs no I/O inside a measured window."""

    def __init__(self, path: Path, inner: Progress) -> None:
        self._path = path
        self._inner = inner
        self._state: dict[str, object] = {}

    def _write(self, **changes: object) -> None:
        self._state |= changes
        temporary = self._path.with_suffix(".tmp")
        with contextlib.suppress(OSError):  # a full disk ends the run where it matters, not here
            temporary.write_text(json.dumps(self._state), encoding="utf-8")
            temporary.replace(self._path)

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `Progress`."""
        self._write(trial=trial.id, round=trial.round, number=number, total=total, left_s=round(left_s))
        self._inner.trial_started(trial, number=number, total=total, left_s=left_s)

    def phase(self, name: str) -> None:
        """See `Progress`."""
        self._write(phase=name)
        self._inner.phase(name)

    def load(self, line: ProgressLine) -> None:
        """See `Progress`. Rates are passed on but not written: once per second would be I/O in the window."""
        self._inner.load(line)

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `Progress`."""
        self._write(last={"trial": trial.trial.id, "valid": trial.valid, "reason": trial.invalid_reason})
        self._inner.trial_finished(trial)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._inner.note(text)
