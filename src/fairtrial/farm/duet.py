"""A run whose blocks are duets: both arms at the same time on this machine, each on its own half of the processors.

What slows the machine slows both arms in the same moment and cancels in their ratio. Which arm has which half is
planned, so that a half's own speed cancels over blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairtrial.errors import InputError, Problem
from fairtrial.farm import adopting, processors
from fairtrial.farm.executor import Executor, Returned
from fairtrial.farm.halves import GO, HALVES, STAY, Halves, name
from fairtrial.farm.handing import HandingRun
from fairtrial.record.events import BlockLeased
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.run.feasibility import machines
from fairtrial.run.opening import opened
from fairtrial.study.resolved import Section
from fairtrial.systems import system_of

POLL_S: Final = 0.2
SILENT_S: Final = 1800.0  # of a half before it drives: copying large data says nothing meanwhile


@dataclass
class DuetRun(HandingRun):
    """A run of duets.

    Attributes:
        silent_s: how long a half may say nothing before it drives, while it does not prepare data; then it is ended.
        halves: the back end.
        noted: places that are in the journal.
    """

    silent_s: float = SILENT_S
    halves: Halves = field(init=False)
    noted: set[Section] = field(default_factory=set)

    def _run_trials(self) -> None:
        first = next(iter(self.writer.plan.resolved.values()))
        (place,) = {trial.place for trial in first.values()}
        self._refuse()
        # Its lock keeps other runs away; what a killed run of another order left is undone.
        with opened(place, directory=self.writer.directory, progress=self.progress) as machine:
            with self._mistakes_located(self.writer.plan.trials[0]):
                own = processors.halves(processors.own(), nodes=machine.facts.nodes)
            for half, numbers in zip(HALVES, own, strict=True):
                self.progress.note(f"half {half}: processors {processors.listed(numbers)}")
            self.farm = self._made(own, Path(machine.state_directory))
            super()._run_trials()

    def _made(self, own: processors.Halves, state: Path) -> Callable[[Path], Executor]:
        def made(directory: Path) -> Executor:
            self.halves = Halves(own, state, directory)
            return self.halves

        return made

    def _refuse(self) -> None:
        for trial in self.writer.plan.trials:
            if system_of(self._resolved(trial).system).there() is not None:
                problem = Problem(
                    "a server that is there already has no half of the processors to itself",
                    "the study",
                    field="system",
                    suggestion="let fairtrial start the server, or use `order: randomised_blocks`",
                )
                with self._mistakes_located(trial):
                    raise InputError([problem], hint="nothing was started")

    def _conduct(self) -> None:
        while (trial := self._next()) is not None:
            self._play(self.schedule.block(trial))

    def _play(self, trials: Sequence[PlannedTrial]) -> None:
        """Runs a block, and takes in what came of it."""
        first = trials[0]
        for trial in trials:
            self.halves.submit(self._order([trial]), host=name(trial.half))
        names = [trial.id for trial in trials]
        self._append(BlockLeased(cell=first.cell, block=first.block, host="", trials=names))
        returned, stayed = self._together({name(trial.half) for trial in trials})
        for each in returned:
            self._take_notes(each, failed=each.host not in stayed)
        self._take(first, returned, stayed)

    def _together(self, out: set[str]) -> tuple[list[Returned], set[str]]:
        """Lets both halves drive at once, or neither; what came back, and the halves that were ready in vain."""
        back: list[Returned] = []
        stayed: set[str] = set()
        gone = False
        while len(back) < len(out):
            back += self.halves.returned(POLL_S)
            ready = self.halves.ready()
            if not back and len(ready) == len(out):
                gone = True
                for host in ready:
                    self.halves.answer(host, GO)
            if gone:
                continue
            if back:
                for host in ready:
                    self.halves.answer(host, STAY)
                    stayed.add(host)
            for host in out - {each.host for each in back}:
                if self.halves.silent_s(host) > self.silent_s:
                    self.halves.end(host)
        return back, stayed

    def _take_notes(self, returned: Returned, *, failed: bool) -> None:
        """What a half has to say; ends the run if it cannot go on for a reason of its own, or on another machine.

        Raises:
            FairtrialError: that reason.
        """
        outcome = returned.outcome
        if outcome is None:
            return
        for note in outcome.notes:
            self.progress.note(f"{returned.host}: {note}")
        for place in outcome.places:
            if place.place not in self.noted:
                self.noted.add(place.place)
                machines.require_same(place, self.writer.opened(place.place))
                self.writer.note_place(place)
        if outcome.failure is not None and failed:
            with self._mistakes_located(returned.order.trials[0]):
                raise outcome.failure.error()

    def _take(self, first: PlannedTrial, returned: Sequence[Returned], stayed: set[str]) -> None:
        """Commits both trials; of a block with one, that one only if it is invalid, and says why."""
        arrived: list[tuple[TrialRecord, Path]] = []
        for each in returned:
            if each.outcome is not None and each.directory is not None:
                trials = adopting.arrived(each.outcome, each.directory, order=each.order)
                arrived += [(trial, each.directory) for trial in trials]
        if len(arrived) < len(HALVES):
            arrived = [(trial, directory) for trial, directory in arrived if not trial.valid]
        self.taken += len(arrived)
        for trial, _directory in arrived:
            self._accept(trial)
        for trial, directory in sorted(arrived, key=lambda pair: pair[0].trial.position):
            self._commit(trial, directory)
        if arrived:
            self._repair()
            return
        lost = "; ".join(f"{each.host} lost it: {each.lost}" for each in returned if each.lost)
        self._void(first.cell, first.block, lost or f"{', '.join(sorted(stayed))} waited in vain")
