"""How long the rest of a run will take: as its finished trials did, before that as the plan expects. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from fairtrial.record.models import PlannedTrial, TrialRecord


@dataclass
class Pace:
    """What trials took, by cell and arm.

    Attributes:
        expected_s: of one trial, before any has finished: the plan's own estimate.
        taken_s: of finished trials, in seconds, without making data: that happens once.
    """

    expected_s: float
    taken_s: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def note(self, trial: TrialRecord) -> None:
        """Takes a finished trial in. An invalid one may have ended early and probes slow theirs: they say nothing."""
        if trial.valid and not trial.trial.diagnostic:
            whole = datetime.fromisoformat(trial.finished) - datetime.fromisoformat(trial.started)
            taken = whole.total_seconds() - trial.phases_s.get("prepare", 0.0)
            self.taken_s[trial.trial.cell, trial.trial.arm].append(max(0.0, taken))

    def left_s(self, owed: Iterable[PlannedTrial]) -> float:
        """Seconds that trials will take: each as its like did, else as any did, else as the plan expects."""
        every = [taken for trials in self.taken_s.values() for taken in trials]
        otherwise = fmean(every) if every else self.expected_s
        like = {where: fmean(trials) for where, trials in self.taken_s.items()}
        return sum(like.get((trial.cell, trial.arm), otherwise) for trial in owed)
