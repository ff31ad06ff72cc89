"""What became of every planned trial so far: the grid that fills in. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairtrial.record.events import BlockLeased, Event, HostLeft
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
        fate: `void` is a valid trial, or one not run, of a block that lost another; `stopped` will not be run, or was
            begun by a host of a farm before the rule stopped its cell, and does not count.
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
        out: trials that hosts of a farm have, or halves of this machine.
        leased: whether a farm has been given a block.
    """

    plan: Plan
    planned: dict[str, PlannedTrial] = field(default_factory=dict)
    finished: dict[str, TrialFinished] = field(default_factory=dict)
    voided: dict[tuple[str, int], str] = field(default_factory=dict)
    looks: list[LookTaken] = field(default_factory=list)
    running: str = ""
    out: set[str] = field(default_factory=set)
    leased: bool = False
    over: bool = False
    _at: dict[str, str] = field(default_factory=dict)  # by trial, the host that was given it last
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
                self._idle(event.host)
                self.out.update(event.trials)
                self._at.update(dict.fromkeys(event.trials, event.host))
                self.leased |= self.plan.design.order != "duet"
            case HostLeft():
                self._idle(event.host)
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

    def _idle(self, host: str) -> None:
        """A host has one block at a time: one that it did not begin is out no longer."""
        if host:
            self.out = {name for name in self.out if self._at.get(name) != host}

    def _is_of(self, name: str, voided: BlockVoided) -> bool:
        trial = self.planned.get(name)
        block = None if trial is None or trial.diagnostic else (trial.cell, trial.block)
        return block == (voided.cell, voided.block)

    def slots(self) -> list[Slot]:
        """Every planned trial, those with probes last."""
        stops = {
            cell.cell: (look.round, cell.reason)
            for look in self.looks
            for cell in look.cells
            if cell.decision == "stop"
        }
        ended = any(look.decision == "stop" for look in self.looks)
        return [
            Slot(trial, self.number(trial.id), *self._fate(trial, stops=stops, ended=ended))
            for trial in self.planned.values()
        ]

    def number(self, trial: str) -> int:
        """Of a planned trial."""
        return self._numbers[trial]

    def _fate(self, trial: PlannedTrial, *, stops: Mapping[str, tuple[int, str]], ended: bool) -> tuple[Fate, str]:
        last_round, why = (math.inf, "") if trial.diagnostic else stops.get(trial.cell, (math.inf, ""))
        done = self.finished.get(trial.id)
        lost = None if trial.diagnostic else self.voided.get((trial.cell, trial.block))
        if done is not None and not done.valid:
            return "invalid", done.invalid_reason
        if lost is not None:
            return "void", lost
        if done is not None:
            return ("stopped", why) if trial.round > last_round else ("valid", "")
        if trial.id == self.running or trial.id in self.out:
            return "running", ""
        if not trial.diagnostic and (trial.cell in stops or ended):
            return "stopped", why
        return ("stopped" if self.over else "planned"), ""
