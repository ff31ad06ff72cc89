"""What became of every planned trial so far: the grid that fills in. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairtrial.record.events import BlockLeased, Event
from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    Extended,
    LookTaken,
    Plan,
    PlannedTrial,
    TrialFinished,
    TrialStarted,
)

Fate = Literal["planned", "running", "valid", "invalid", "void", "stopped"]


@dataclass(frozen=True)
class Slot:
    """One planned trial.

    Attributes:
        fate: `void` is a valid trial, or one not run, of a block that lost another; `stopped` will not be run.
        number: in the order in which trials were planned; its address on the page.
        reason: why it is invalid, void or stopped; empty otherwise.
    """

    trial: PlannedTrial
    number: int
    fate: Fate
    reason: str = ""


@dataclass
class Slots:
    """Slots of a run by trial id, as the journal tells of them.

    Attributes:
        planned: every trial planned at the start or added since, in order.
        looks: what the stopping rule said, by round.
        running: the trial that this machine runs.
        out: trials that hosts of a farm have.
    """

    plan: Plan
    planned: dict[str, PlannedTrial] = field(default_factory=dict)
    finished: dict[str, TrialFinished] = field(default_factory=dict)
    voided: dict[tuple[str, int], str] = field(default_factory=dict)
    looks: list[LookTaken] = field(default_factory=list)
    running: str = ""
    out: set[str] = field(default_factory=set)
    over: bool = False
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plan([*self.plan.trials, *self.plan.diagnostics])

    def _plan(self, trials: Iterable[PlannedTrial]) -> None:
        for trial in trials:
            self._numbers.setdefault(trial.id, len(self._numbers))
            self.planned[trial.id] = trial

    def apply(self, event: Event) -> None:
        """Takes one journal entry in."""
        match event:
            case TrialStarted():
                self.running = event.trial.id
            case TrialFinished():
                self.finished[event.trial] = event
                self.running = ""
                self.out.discard(event.trial)
            case BlockLeased():
                self.out.update(event.trials)
            case BlockVoided():
                self.voided[event.cell, event.block] = event.reason
                self.out = {name for name in self.out if not self._is_of(name, event)}
            case BlockAdded() | Extended():
                self._plan(event.trials)
            case LookTaken():
                self.looks.append(event)
            case _:
                if event.event.startswith("run_"):
                    self.running, self.out = "", set()
                self.over |= event.event == "run_finished"

    def _is_of(self, name: str, voided: BlockVoided) -> bool:
        trial = self.planned.get(name)
        block = None if trial is None or trial.diagnostic else (trial.cell, trial.block)
        return block == (voided.cell, voided.block)

    def slots(self) -> list[Slot]:
        """Every planned trial, those with probes last."""
        stopped = {cell.cell: cell.reason for look in self.looks for cell in look.cells if cell.decision == "stop"}
        ended = any(look.decision == "stop" for look in self.looks)
        return [
            Slot(trial, self.number(trial.id), *self._fate(trial, stopped=stopped, ended=ended))
            for trial in self.planned.values()
        ]

    def number(self, trial: str) -> int:
        """Of a planned trial."""
        return self._numbers[trial]

    def _fate(self, trial: PlannedTrial, *, stopped: Mapping[str, str], ended: bool) -> tuple[Fate, str]:
        done = self.finished.get(trial.id)
        lost = None if trial.diagnostic else self.voided.get((trial.cell, trial.block))
        if done is not None and not done.valid:
            return "invalid", done.invalid_reason
        if lost is not None:
            return "void", lost
        if done is not None:
            return "valid", ""
        if trial.id == self.running or trial.id in self.out:
            return "running", ""
        if not trial.diagnostic and (trial.cell in stopped or ended):
            return "stopped", stopped.get(trial.cell, "")
        return ("stopped" if self.over else "planned"), ""
