"""Progress that only a test reads: what the loop and its trials tell a user, kept in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import PlannedTrial, TrialRecord

Accept = Callable[[TrialRecord], None]  # what a run asks of every trial before it is committed


class Told:
    """Everything that was told.

    Attributes:
        counted: of every trial that started, its number and how many there are.
        left_s: of every trial that started, the time that was thought to be left.
    """

    def __init__(self) -> None:
        self.counted: list[tuple[int, int]] = []
        self.left_s: list[float] = []
        self.phases: list[str] = []
        self.lines: list[ProgressLine] = []
        self.log_directories: list[Path] = []
        self.finished: list[TrialRecord] = []
        self.notes: list[str] = []
        self.pauses: list[bool] = []

    def trial_started(self, _trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        self.counted.append((number, total))
        self.left_s.append(left_s)

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def logs(self, directory: Path) -> None:
        self.log_directories.append(directory)

    def load(self, line: Any) -> None:
        self.lines.append(line)

    def trial_finished(self, trial: TrialRecord) -> None:
        self.finished.append(trial)

    def paused(self, *, waits: bool) -> None:
        self.pauses.append(waits)

    def note(self, text: str) -> None:
        self.notes.append(text)
