"""Trials without a place, in the stead of a runner's: what the loop decides is seen without waiting for any."""

from __future__ import annotations

from typing import Any, Self

import pytest

from fairtrial.record import Writer
from fairtrial.record.models import PlannedTrial, TrialData, TrialRecord
from fairtrial.run import Run, loop
from support.progress import Accept, Told
from support.records import just_ended, trial_record


class Quick:
    """Trials that are committed at once, valid unless named.

    Attributes:
        ran: ids, in order.
        had_started: of each, whether an earlier process had begun it.
        prepared: cells and arms.
        opened: how often a place was.
    """

    def __init__(self, *, invalid: tuple[str, ...] = (), reason: str = "broken on purpose", content: str = "") -> None:
        self.invalid, self.reason, self.content = invalid, reason, content
        self.ran: list[str] = []
        self.had_started: list[bool] = []
        self.prepared: list[str] = []
        self.opened = 0

    def __call__(self, *, writer: Writer, accept: Accept, **_others: Any) -> Self:
        self.writer, self.accept = writer, accept
        self.opened += 1
        return self

    def prepare(self, trial: PlannedTrial) -> None:
        assert not self.ran or self.opened > 1, "data are prepared before the first trial"
        self.prepared.append(f"{trial.cell} {trial.arm}")

    def run(self, trial: PlannedTrial, *, has_started: bool) -> TrialRecord:
        self.had_started.append(has_started)
        self.ran.append(trial.id)
        found = just_ended(trial_record(trial, valid=trial.id not in self.invalid))
        data = TrialData(content_sha256=f"{self.content}{trial.arm}" if self.content else None)
        reason = "" if found.valid else self.reason
        resolved = self.writer.plan.resolved[trial.cell][trial.arm]
        found = self.finished(found.model_copy(update={"resolved": resolved, "data": data, "invalid_reason": reason}))
        self.writer.begin(trial.id)
        self.accept(found)
        self.writer.commit(found)
        return found

    def finished(self, found: TrialRecord) -> TrialRecord:
        """What a test has to say of a trial that ended."""
        return found


def run(writer: Writer, quick: Quick, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Told:
    """A run of such trials, to its end."""
    monkeypatch.setattr(loop, "TrialRunner", quick)
    progress = Told()
    Run(writer=writer, progress=progress, **options).execute()
    return progress
