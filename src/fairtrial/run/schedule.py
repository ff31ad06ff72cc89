"""Which trial is next: planned trials in order, voided blocks left, replacements joined. Pure.

The state is rebuilt from the journal alone, so a resumed run goes on exactly where a killed one stood.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from fairtrial.plan import screening
from fairtrial.record.events import Event
from fairtrial.record.models import BlockAdded, BlockVoided, Extended, LookTaken, Plan, PlannedTrial, TrialFinished


class MakeReplacement(Protocol):
    """Makes the trials of a new block; `position` is that of its first trial."""

    def __call__(self, *, cell: str, block: int, round_: int, position: int) -> list[PlannedTrial]:
        """The new block's trials, in order."""


@dataclass
class Schedule:
    """The queue of a run. What is asked for every trial takes no longer the more trials there were.

    Attributes:
        plan: as stored.
        replacement: makes the trials of a new block (`plan.replacement`).
        finished: trial id → whether it was valid.
        voided: (cell, block) of blocks that lost a trial, or waited too long for their next.
        excused: those of them that `voided_limit` does not count.
        replaced: (cell, block) of those that another block replaces.
        decided: cells that a stopping rule gives no more blocks.
        blocks: the largest number of a cell, with what the run was extended by.
        looked_at: the last round after which a stopping rule was asked; 0 for none.
        stopped: whether it decided that the run ends.
    """

    plan: Plan
    replacement: MakeReplacement
    finished: dict[str, bool] = field(default_factory=dict)
    voided: set[tuple[str, int]] = field(default_factory=set)
    excused: set[tuple[str, int]] = field(default_factory=set)
    replaced: set[tuple[str, int]] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)
    blocks: int = field(init=False)
    looked_at: int = 0
    stopped: bool = False
    _members: dict[tuple[str, int], list[PlannedTrial]] = field(default_factory=dict)  # of every block
    _left: dict[int, dict[str, PlannedTrial]] = field(default_factory=dict)  # by round, then id: yet to run
    _planned: dict[str, PlannedTrial] = field(default_factory=dict)
    _diagnostics: dict[str, PlannedTrial] = field(default_factory=dict)  # yet to run
    _kinds: Counter[tuple[str, str]] = field(default_factory=Counter)  # how many of `_left`, by cell and arm
    _broken: list[str] = field(default_factory=list)  # invalid trials whose blocks are not void yet
    _last_block: dict[str, int] = field(default_factory=dict)  # by cell
    _last_position: int = -1
    _first_round: int = 1  # none before it has a trial left
    _last_round: int = 0

    def __post_init__(self) -> None:
        self._add(self.plan.trials)
        self._diagnostics = {trial.id: trial for trial in self.plan.diagnostics}
        self.blocks = self.plan.design.blocks

    def _add(self, trials: Iterable[PlannedTrial]) -> None:
        """New trials go to the end of their round."""
        for trial in trials:
            self._planned[trial.id] = trial
            self._members.setdefault((trial.cell, trial.block), []).append(trial)
            if trial.cell not in self.decided:
                self._left.setdefault(trial.round, {})[trial.id] = trial
                self._kinds[trial.cell, trial.arm] += 1
            self._last_block[trial.cell] = max(trial.block, self._last_block.get(trial.cell, 0))
            self._last_position = max(trial.position, self._last_position)
            self._first_round = min(trial.round, self._first_round)
            self._last_round = max(trial.round, self._last_round)

    def replay(self, events: Iterable[Event]) -> None:
        """Brings the schedule to where the journal ends."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Takes one journal entry in."""
        match event:
            case TrialFinished():
                self.finish(event.trial, valid=event.valid)
            case BlockVoided():
                self.voided.add((event.cell, event.block))
                if not event.counts:
                    self.excused.add((event.cell, event.block))
                self._drop(self._members.get((event.cell, event.block), ()))
            case BlockAdded():
                self.replaced.add((event.cell, event.replaces))
                self._add(event.trials)
            case Extended():
                if event not in self.plan.extensions:  # a plan that was read has them already
                    self._add(event.trials)
                    self.blocks += event.blocks
            case LookTaken():
                self.looked_at, self.stopped = event.round, event.decision == "stop"
                for cell in {look.cell for look in event.cells if look.decision == "stop"} - self.decided:
                    self.decided.add(cell)
                    self._drop(trial for trial in self._planned.values() if trial.cell == cell)
            case _:
                pass

    def finish(self, trial: str, *, valid: bool) -> None:
        """A trial is over."""
        self.finished[trial] = valid
        self._diagnostics.pop(trial, None)
        if (planned := self._planned.get(trial)) is not None:
            self._drop([planned])
            if not valid:
                self._broken.append(trial)

    def _drop(self, trials: Iterable[PlannedTrial]) -> None:
        for trial in trials:
            if self._left.get(trial.round, {}).pop(trial.id, None) is not None:
                self._kinds[trial.cell, trial.arm] -= 1

    @property
    def queue(self) -> list[PlannedTrial]:
        """Every trial of the run in order, whatever became of it, but for diagnostic ones.

        Those come last, belong to no block that could be voided and to no round that is looked at, and run whatever
        was decided.
        """
        return self._in_order(self._planned.values())

    def owed(self) -> list[PlannedTrial]:
        """Every trial that is yet to run, in order, diagnostic ones last."""
        return [*self.left()]

    def left(self) -> Iterator[PlannedTrial]:
        """The same, one by one."""
        if not self.stopped:
            rounds = (self._left.get(each, {}) for each in range(self.complete_rounds() + 1, self._last_round + 1))
            trials = itertools.chain.from_iterable(each.values() for each in rounds)
            yield from self._in_order(trials) if self.is_sequential else trials
        yield from self._diagnostics.values()

    def _in_order(self, trials: Iterable[PlannedTrial]) -> list[PlannedTrial]:
        """By round, later additions later in it; of order `sequential`, one arm after the other across rounds."""
        return sorted(trials, key=lambda trial: trial.position if self.is_sequential else trial.round)

    @property
    def is_sequential(self) -> bool:
        """Whether one arm runs after the other, so that trials of a block are not close in time."""
        return self.plan.design.order == "sequential"

    @property
    def kinds(self) -> Counter[tuple[str, str]]:
        """How many are owed, by cell and arm."""
        diagnostics = Counter((trial.cell, trial.arm) for trial in self._diagnostics.values())
        return diagnostics if self.stopped else self._kinds + diagnostics

    @property
    def count(self) -> int:
        """How many are owed."""
        return self.kinds.total()

    def next_trial(self) -> PlannedTrial | None:
        """The first trial that is owed."""
        return next(self.left(), None)

    def block(self, trial: PlannedTrial) -> list[PlannedTrial]:
        """The trials of a trial's block, in order; a diagnostic trial is alone."""
        return [trial] if trial.diagnostic else self._members[trial.cell, trial.block]

    def spanned(self, cell: str, block: int) -> list[PlannedTrial]:
        """The trials of a block and those that run among them, as those of other cells in the same boot."""
        positions = [trial.position for trial in self._members[cell, block]]
        return [each for each in self._planned.values() if min(positions) <= each.position <= max(positions)]

    def torn(self) -> list[tuple[str, int]]:
        """Cells and numbers of blocks of which some trials are finished and some owed."""
        return sorted(
            {
                (trial.cell, trial.block)
                for trial in self.owed()
                if not trial.diagnostic and any(each.id in self.finished for each in self.block(trial))
            }
        )

    def repairs(self) -> list[Event]:
        """Entries that a kill kept from the journal: blocks to void, and replacements that are owed."""
        owed: list[Event] = []
        voided = set(self.voided)
        for name in self._broken:
            trial = self._planned[name]
            if (trial.cell, trial.block) not in voided:
                voided.add((trial.cell, trial.block))
                owed.append(BlockVoided(cell=trial.cell, block=trial.block, reason=f"{trial.id} is invalid"))
        if not owed:
            self._broken.clear()
        for cell, block in sorted(voided - self.replaced):
            if cell not in self.decided and self.losses(cell, voided) <= self.plan.design.voided_limit:
                owed.append(self.added(cell, block))
                break  # the next one depends on this one's block number: ask again
        return owed

    def losses(self, cell: str, voided: set[tuple[str, int]] | None = None) -> int:
        """How many blocks a cell has lost, of those that count."""
        lost = (self.voided if voided is None else voided) - self.excused
        return sum(each == cell for each, _block in lost)

    def added(self, cell: str, replaces: int) -> BlockAdded:
        """The replacement of a block: a new block of the cell at the end of the next round; of a screening, its own."""
        lost = self._members[cell, replaces][0]
        block, position = 1 + self._last_block[cell], 1 + self._last_position
        if self.plan.screening is not None:
            round_, trials = lost.round, screening.again(self.plan, lost, block=block, position=position)
        else:
            round_ = lost.round + 1
            trials = self.replacement(cell=cell, block=block, round_=round_, position=position)
        return BlockAdded(cell=cell, block=block, round=round_, replaces=replaces, trials=trials)

    def complete_rounds(self) -> int:
        """The last round up to which nothing is left to run; 0 before the first is complete."""
        while self._first_round <= self._last_round and not self._left.get(self._first_round):
            self._first_round += 1
        return self._first_round - 1
