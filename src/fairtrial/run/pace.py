"""How long the rest of a run will take: as its finished trials did, before that as the plan expects. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fairtrial.record.models import TrialRecord

Kind = tuple[str, str]  # cell, arm


@dataclass
class Pace:
    """What trials took, by cell and arm.

    Attributes:
        expected_s: of one trial, before any has finished: the plan's own estimate.
        taken_s: of finished trials together, in seconds, without making data: that happens once.
        finished: how many these are.
        run_here: trials that this process has run.
        opened_s: what opening places took since the first of these: a host or guest may boot for each trial.
    """

    expected_s: float
    taken_s: dict[Kind, float] = field(default_factory=dict)
    finished: Counter[Kind] = field(default_factory=Counter)
    run_here: int = 0
    opened_s: float = 0.0

    def note(self, trial: TrialRecord) -> None:
        """Takes a finished trial in. An invalid one may have ended early and probes slow theirs: they say nothing."""
        if trial.valid and not trial.trial.diagnostic:
            whole = datetime.fromisoformat(trial.finished) - datetime.fromisoformat(trial.started)
            taken = whole.total_seconds() - trial.phases_s.get("prepare", 0.0)
            kind = trial.trial.cell, trial.trial.arm
            self.taken_s[kind] = self.taken_s.get(kind, 0.0) + max(0.0, taken)
            self.finished[kind] += 1

    def note_run(self, trial: TrialRecord) -> None:
        """The same of a trial that this process has run."""
        self.run_here += 1
        self.note(trial)

    def note_opened(self, seconds: float) -> None:
        """Takes the opening of a place in; those before the first trial happen once."""
        if self.run_here:
            self.opened_s += seconds

    def left_s(self, owed: Mapping[Kind, int]) -> float:
        """Seconds that so many trials will take: each as its like did, else as any did, else as the plan expects."""
        whole = self.finished.total()
        otherwise = sum(self.taken_s.values()) / whole if whole else self.expected_s
        like = {kind: taken / self.finished[kind] for kind, taken in self.taken_s.items()}
        opening = self.opened_s / self.run_here if self.run_here else 0.0
        return sum(count * (like.get(kind, otherwise) + opening) for kind, count in owed.items())
