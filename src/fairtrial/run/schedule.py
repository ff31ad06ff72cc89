"""Which trial is next: planned trials in order, voided blocks left, replacements joined. Pure.

The state is rebuilt from the journal alone, so a resumed run goes on exactly where a killed one stood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from fairtrial.record.events import Event
from fairtrial.record.models import BlockAdded, BlockVoided, Extended, LookTaken, Plan, PlannedTrial, TrialFinished


class MakeReplacement(Protocol):
    """Makes the trials of a new block; `position` is that of its first trial."""

    def __call__(self, *, cell: str, block: int, round_: int, position: int) -> list[PlannedTrial]:
        """The new block's trials, in order."""


@dataclass
class Schedule:
    """The queue of a run.

    Attributes:
        plan: as stored.
        replacement: makes the trials of a new block (`plan.replacement`).
        queue: every trial of the run in order, whatever became of it, but for diagnostic ones: those come last, belong
            to no block that could be voided and to no round that is looked at, and run whatever was decided.
        finished: trial id → whether it was valid.
        voided: (cell, block) of blocks that lost a trial.
        replaced: (cell, block) of those that another block replaces.
        decided: cells that a stopping rule gives no more blocks.
        blocks: the largest number of a cell, with what the run was extended by.
        looked_at: the last round after which a stopping rule was asked; 0 for none.
        stopped: whether it decided that the run ends.
    """

    plan: Plan
    replacement: MakeReplacement
    queue: list[PlannedTrial] = field(default_factory=list)
    finished: dict[str, bool] = field(default_factory=dict)
    voided: set[tuple[str, int]] = field(default_factory=set)
    replaced: set[tuple[str, int]] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)
    blocks: int = field(init=False)
    looked_at: int = 0
    stopped: bool = False

    def __post_init__(self) -> None:
        self.queue = list(self.plan.trials)
        self.blocks = self.plan.design.blocks

    def replay(self, events: Iterable[Event]) -> None:
        """Brings the schedule to where the journal ends."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Takes one journal entry in."""
        match event:
            case TrialFinished():
                self.finished[event.trial] = event.valid
            case BlockVoided():
                self.voided.add((event.cell, event.block))
            case BlockAdded():
                self.replaced.add((event.cell, event.replaces))
                self._insert(event.trials)
            case Extended():
                if event not in self.plan.extensions:  # a plan that was read has them already
                    self.queue += event.trials
                    self.blocks += event.blocks
            case LookTaken():
                self.looked_at, self.stopped = event.round, event.decision == "stop"
                self.decided |= {look.cell for look in event.cells if look.decision == "stop"}
            case _:
                pass

    def _insert(self, trials: list[PlannedTrial]) -> None:
        """A new block goes to the end of its round."""
        after = [index for index, trial in enumerate(self.queue) if trial.round <= trials[0].round]
        position = after[-1] + 1 if after else 0
        self.queue[position:position] = trials

    def owed(self) -> list[PlannedTrial]:
        """Every trial that is yet to run, in order, diagnostic ones last."""
        return [
            *([] if self.stopped else self._owed_to_estimates()),
            *(trial for trial in self.plan.diagnostics if trial.id not in self.finished),
        ]

    def _owed_to_estimates(self) -> list[PlannedTrial]:
        """Every trial that is neither finished nor part of a voided block or a decided cell, in order."""
        return [
            trial
            for trial in self.queue
            if trial.id not in self.finished
            and (trial.cell, trial.block) not in self.voided
            and trial.cell not in self.decided
        ]

    def next_trial(self) -> PlannedTrial | None:
        """The first trial that is owed."""
        return next(iter(self.owed()), None)

    def repairs(self) -> list[Event]:
        """Entries that a kill kept from the journal: blocks to void, and replacements that are owed."""
        owed: list[Event] = []
        voided = set(self.voided)
        for trial in self.queue:
            if self.finished.get(trial.id) is False and (trial.cell, trial.block) not in voided:
                voided.add((trial.cell, trial.block))
                owed.append(BlockVoided(cell=trial.cell, block=trial.block, reason=f"{trial.id} is invalid"))
        for cell, block in sorted(voided - self.replaced):
            if cell not in self.decided and self.losses(cell, voided) <= self.plan.design.voided_limit:
                owed.append(self.added(cell, block))
                break  # the next one depends on this one's block number: ask again
        return owed

    def losses(self, cell: str, voided: set[tuple[str, int]] | None = None) -> int:
        """How many blocks a cell has lost."""
        return sum(1 for lost, _block in (self.voided if voided is None else voided) if lost == cell)

    def added(self, cell: str, replaces: int) -> BlockAdded:
        """The replacement of a block: a new block of the cell at the end of the next round."""
        lost = next(trial for trial in self.queue if (trial.cell, trial.block) == (cell, replaces))
        block = 1 + max(trial.block for trial in self.queue if trial.cell == cell)
        position = 1 + max(trial.position for trial in self.queue)
        trials = self.replacement(cell=cell, block=block, round_=lost.round + 1, position=position)
        return BlockAdded(cell=cell, block=block, round=lost.round + 1, replaces=replaces, trials=trials)

    def complete_rounds(self) -> int:
        """The last round up to which nothing is left to run; 0 before the first is complete."""
        owed = self._owed_to_estimates()
        if owed:
            return min(trial.round for trial in owed) - 1
        return max((trial.round for trial in self.queue), default=0)
