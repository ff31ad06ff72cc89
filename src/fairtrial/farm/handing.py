"""What every run does whose blocks other processes run: hands them out, and takes their trials into the record whole.

This process alone writes the record.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairtrial.farm import adopting
from fairtrial.farm.executor import Executor
from fairtrial.farm.orders import Order, order
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.run.conducting import Conductor

SCRATCH: Final = ".farm"  # below the record, for what comes back: it is renamed into place


@dataclass
class HandingRun(Conductor):
    """A run whose trials come back from other processes.

    Attributes:
        farm: makes the back end, given a directory for what comes back.
        executor: what it made.
        taken: trials of blocks that came back, those included that are taken in now.
    """

    farm: Callable[[Path], Executor] | None = None
    executor: Executor = field(init=False)
    began_s: float = field(default_factory=time.monotonic)
    taken: int = 0

    def _run_trials(self) -> None:
        assert self.farm is not None  # noqa: S101 - given by whoever makes it
        for cell, block in self.schedule.torn():
            self._void(cell, block, "the controller ended while it took the block in")
        scratch = self.writer.directory / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        self.executor = self.farm(scratch)
        try:
            self._conduct()
        finally:
            for name in self.executor.close():
                self.progress.note(f"the process `{name}` was killed: its host may not be as it was; resume the run")
            self._closed()
            shutil.rmtree(scratch, ignore_errors=True)

    def _conduct(self) -> None:
        """Hands out every block that is owed, and takes in what comes of it."""
        raise NotImplementedError

    def _closed(self) -> None:
        """Notes what is known once nothing is out any more."""

    def _order(self, trials: Sequence[PlannedTrial]) -> Order:
        """For trials of one block."""
        cell = trials[0].cell
        arms = [arm for known, arm in sorted(self.started) if known == cell]
        return order(self.writer.plan, trials, run=self.writer.directory.name, started=arms)

    def _commit(self, trial: TrialRecord, directory: Path) -> None:
        owed = max(1, self.schedule.count)  # a block may come back after its cell was decided
        left_s = (time.monotonic() - self.began_s) / self.taken * owed  # by whole blocks, as they come
        number = len(self.schedule.finished) + 1
        self.progress.trial_started(trial.trial, number=number, total=number - 1 + owed, left_s=left_s)
        adopting.adopt(self.writer, trial, directory)
        self.schedule.finish(trial.trial.id, valid=trial.valid)
        if trial.window is not None:
            self.started.add((trial.trial.cell, trial.trial.arm))
        self.progress.trial_finished(trial)
