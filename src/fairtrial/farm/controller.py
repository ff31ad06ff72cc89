"""A run whose blocks are run by the hosts of a farm: handed out in the plan's order, taken in as they come back.

This process alone writes the record. A block is on one host, all arms of it, so that the host's own speed is in every
one of them and cancels in their ratio.
"""

from __future__ import annotations

import itertools
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from fairtrial.errors import FairtrialError, InputError, PlaceError, RecordError
from fairtrial.farm import adopting, fitting
from fairtrial.farm.executor import Returned
from fairtrial.farm.handing import HandingRun
from fairtrial.farm.orders import Order, Outcome
from fairtrial.places import FreshPlace, is_fresh, place_of
from fairtrial.record.events import BlockLeased, FarmServed, HostLeft
from fairtrial.record.models import PlaceOpened, PlannedTrial, TrialStarted
from fairtrial.run.feasibility import machines
from fairtrial.study.resolved import Section
from fairtrial.words import duration

POLL_S: Final = 0.2  # until a request of a person is looked at
PAUSED: Final = "paused: no more blocks are handed out; hosts finish those that they have"
MOST_CHOICES: Final = 2000  # blocks that are looked at when hosts are idle
LOST: Final = "look at the host and at the way to it, and resume the run"
FAILURES_IN_A_ROW: Final = 2  # after which a host gets no more blocks
# Until a host that has run blocks, and is out of reach, gets its next one: an hour in all. One that nobody has reached
# yet may be named wrongly, which shall be said at once.
RESTS_S: Final = (60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
# Of hosts that count as the same: in every place of one description, and in all places with the host's processor.
ALIKE: Final = ("kernel", "kernel_version")
ALIKE_EVERYWHERE: Final = ("machine", "processor_model")


@dataclass
class FarmRun(HandingRun):
    """A run on a farm.

    Attributes:
        out: blocks that hosts have.
        failures: of each host, in a row.
        rests_s: before each further block of a host that was out of reach; then it is a failure.
        rested: how often each host has, in a row.
        resting: until when, of this machine's monotonic clock.
        left: hosts that get no more blocks.
        lost_diagnostics: how often each diagnostic trial was lost.
        had: how many blocks of each cell each host has been given.
        places: facts of each host's places, as this process journalled them last.
        known: places as they were opened before the run was resumed. Nodes may have one name.
        character: of the first host, by guest or container: what others must have in common with it; None is the host.
        machine: the same of what its places have in common, by the processor that they show (see `_processor`).
        served: processor time of the farm's own processes on each host, and for how long.
        trouble: the last reason why a host could not go on; None since a block came back whole.
    """

    out: set[tuple[str, int, str]] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    rests_s: Sequence[float] = RESTS_S
    rested: Counter[str] = field(default_factory=Counter)
    resting: dict[str, float] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    lost_diagnostics: Counter[str] = field(default_factory=Counter)
    had: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[tuple[str, Section], dict[str, JsonValue]] = field(default_factory=dict)
    known: dict[tuple[str, Section], list[PlaceOpened]] = field(default_factory=dict)
    character: dict[Section | None, dict[str, JsonValue]] = field(default_factory=dict)
    machine: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    served: dict[str, tuple[float, float]] = field(default_factory=dict)
    trouble: FairtrialError | None = None

    def _run_trials(self) -> None:
        self._refuse_order()
        self.steering.paused = PAUSED
        known = self.writer.record()
        for opened in known.places:
            self.character.setdefault(_own_place(opened), _character(opened))
            self.machine.setdefault(_processor(opened), _machine(opened))
            self.known.setdefault((opened.host, opened.place), []).append(opened)
        self.had.update((event.host, event.cell) for event in known.events if isinstance(event, BlockLeased))
        super()._run_trials()

    def _closed(self) -> None:
        for host, (processor_s, elapsed_s) in self.served.items():
            self._append(FarmServed(host=host, processor_s=round(processor_s, 3), elapsed_s=round(elapsed_s, 3)))
        self.writer.write_places()  # once: a farm has many

    def _refuse_order(self) -> None:
        """Before a resumed run voids blocks that are incomplete: of this order, most are until its last arm runs."""
        if (refused := fitting.refused_order(self.writer.plan)) is not None:
            with self._mistakes_located(self.writer.plan.trials[0]):
                raise refused

    def _refuse(self) -> None:
        kinds, has_places = self.executor.kinds, self.executor.has_places
        for first, refused in fitting.refusals(self.writer.plan, kinds=kinds, has_places=has_places):
            with self._mistakes_located(first):
                raise refused

    def _conduct(self) -> None:
        self._refuse()
        while True:
            try:
                waits = self.steering.waits()
            except KeyboardInterrupt:
                while self.out:  # what runs is finished: that was asked
                    self._take_all()
                raise
            self._look()
            if not waits and not self._hand_out() and not self.out:
                return
            self._take_all()

    def _hand_out(self) -> bool:
        """Gives blocks to idle hosts, round by round; whether any is owed that nobody has."""
        first = next(self._owed(), None)
        if first is None:
            return False
        try:
            idle = self.executor.idle()
        except PlaceError as error:
            raise self.trouble or error from error
        idle = [host for host in idle if self.resting.get(host, 0.0) <= time.monotonic()]
        owed = list(itertools.islice(self._owed(), MOST_CHOICES)) if idle else []
        for host in idle[: len(owed)]:
            # Of the round's blocks, one of a cell that this host has had least, or any: as blocks of a cell take the
            # same time, each cell would else get a host of its own.
            choice = [trials for trials in owed if trials[0].round == owed[0][0].round]
            trials = min(choice, key=lambda trials: (self.had[host, trials[0].cell], random.random()))  # noqa: S311
            owed.remove(trials)
            self._lease(trials, host=host)
        return True

    def _owed(self) -> Iterator[list[PlannedTrial]]:
        """Blocks that nobody has; diagnostic trials once nothing else is left."""
        seen = set(self.out)
        only_diagnostics = True
        for trial in self.schedule.left():
            key = _key(trial)
            only_diagnostics &= trial.diagnostic
            if key in seen:
                continue
            if trial.diagnostic and not only_diagnostics:
                return
            seen.add(key)
            yield self.schedule.block(trial)

    def _lease(self, trials: list[PlannedTrial], *, host: str) -> None:
        first = trials[0]
        for trial in trials:
            if trial.diagnostic:
                self._append(TrialStarted(trial=trial))
        self.executor.submit(self._order(trials), host=host)
        self.out.add(_key(first))
        self.had[host, first.cell] += 1
        names = [trial.id for trial in trials]
        self._append(BlockLeased(cell=first.cell, block=first.block, host=host, trials=names))

    def _take_all(self) -> None:
        for returned in self.executor.returned(POLL_S):
            self._take(returned)
            if returned.directory is not None:  # of a long run they would be many
                shutil.rmtree(returned.directory, ignore_errors=True)

    def _take(self, returned: Returned) -> None:
        asked = returned.order
        self.out.discard(_key(asked.trials[0]))
        if returned.outcome is None or returned.directory is None:
            if returned.host:
                self.trouble = PlaceError(f"{returned.host} lost its block: {returned.lost}", hint=LOST)
            self._lost(asked, returned.host, returned.lost)
            return
        outcome = returned.outcome
        if outcome.elapsed_s:
            processor_s, elapsed_s = self.served.get(outcome.host, (0.0, 0.0))
            self.served[outcome.host] = (processor_s + outcome.processor_s, elapsed_s + outcome.elapsed_s)
        for note in outcome.notes:
            self.progress.note(f"{outcome.host}: {note}")
        failed = outcome.failure
        if failed is not None:
            self.trouble = failed.error()
            if isinstance(self.trouble, InputError):
                mistaken = next((each for each in asked.trials if each.id == failed.trial), asked.trials[0])
                with self._mistakes_located(mistaken):
                    raise self.trouble
            away = not (outcome.begun or outcome.places)
            self._lost(asked, outcome.host, failed.message, begun=outcome.begun, away=away)
            return
        try:
            self._require_as_known(outcome)
            self._require_alike(outcome)
        except PlaceError as error:
            self.trouble = error
            self._lost(asked, outcome.host, str(error), now=True, begun=False)  # nothing of it is in the record
            return
        try:
            trials = adopting.arrived(outcome, returned.directory, order=asked)
            self._accept_all(trials)
        except (PlaceError, RecordError) as error:
            self.trouble = error
            self._lost(asked, outcome.host, str(error), now=True)
            return
        self.failures[outcome.host], self.rested[outcome.host], self.trouble = 0, 0, None
        self._note_places(outcome)
        self.taken += len(trials)
        for trial in trials:
            self._commit(trial, returned.directory)
        self._repair()

    def _note_places(self, outcome: Outcome) -> None:
        """Journals a place when it is first opened on a host, and again once it is another."""
        for opened in outcome.places:
            key = opened.host, opened.place
            facts = {name: value for name, value in opened.facts.items() if name != "free_bytes"}
            if self.places.get(key) != facts:
                self.places[key] = facts
                self._append(opened)

    def _require_as_known(self, outcome: Outcome) -> None:
        """Refuses a host that is none of its name before the run was resumed, or was booted otherwise since.

        Raises:
            PlaceError: with what differs.
        """
        for opened in outcome.places:
            known = self.known.get((opened.host, opened.place), [])
            if known and all(machines.differences(opened, each) for each in known):
                machines.require_same(opened, known[-1])

    def _require_alike(self, outcome: Outcome) -> None:
        """Refuses a host that is another machine than the first, unless the study counts hosts as a factor.

        Raises:
            PlaceError: with what differs.
        """
        if self.writer.plan.design.hosts == "factor":
            return
        character, machine = {**self.character}, {**self.machine}
        for opened in outcome.places:
            own = {**_character(opened), **_machine(opened)}
            first = {
                **character.setdefault(_own_place(opened), _character(opened)),
                **machine.setdefault(_processor(opened), _machine(opened)),
            }
            changed = [name for name, value in first.items() if own[name] != value]
            if changed:
                raise PlaceError(
                    f"it differs from the run's first host in its {', '.join(changed)}",
                    hint="use hosts that are alike, or write `trials: {hosts: factor}`",
                )
        self.character, self.machine = character, machine  # now: a host that is refused sets no measure

    def _lost(  # noqa: PLR0913 - how bad it is, for the host and for the block
        self, asked: Order, host: str, why: str, *, now: bool = False, begun: bool = True, away: bool = False
    ) -> None:
        """A block is void and replaced, or handed out again if its host reports that none of its trials began."""
        if not (away and self._rests(host)):
            self.failures[host] += 1
        if host and host not in self.left and (now or self.failures[host] >= FAILURES_IN_A_ROW):
            self.left.add(host)
            self.executor.bar(host)
            self._append(HostLeft(host=host, reason=why))
            self.progress.note(f"{host} gets no more blocks: {why}")
        reason = f"{host or 'a host'} lost it: {why}"
        if not begun:
            self.progress.note(f"block {asked.block} of {asked.cell} is handed out again: {reason}")
        elif asked.trials[0].diagnostic:
            self._again(asked.trials[0], reason)
        else:
            self._void(asked.cell, asked.block, reason)

    def _rests(self, host: str) -> bool:
        """Whether a host that could be reached before gets its next block after a while, as it then does."""
        number = self.rested[host]
        may_rest = self.executor.has_places and number < len(self.rests_s)  # Ray chooses which node gets the next one
        if not may_rest or not any(host == known for known, _place in self.places):
            return False
        self.rested[host] += 1
        self.resting[host] = time.monotonic() + self.rests_s[number]
        self.progress.note(f"{host} gets no block for {duration(self.rests_s[number])}")
        return True

    def _again(self, trial: PlannedTrial, reason: str) -> None:
        """A diagnostic trial is in no block: it is handed out again, but not for ever."""
        self.lost_diagnostics[trial.id] += 1
        if self.lost_diagnostics[trial.id] > self.writer.plan.design.voided_limit:
            raise PlaceError(f"{trial.id} is lost again and again: {reason}", hint="look at the hosts, and resume")


def _key(trial: PlannedTrial) -> tuple[str, int, str]:
    """Of a block; each diagnostic trial is one."""
    return trial.cell, trial.block, trial.arm if trial.diagnostic else ""


def _own_place(opened: PlaceOpened) -> Section | None:
    """The guest or container that a study names, which may differ between arms; None for a host, however reached."""
    return opened.place if is_fresh(opened.place) else None


def _character(opened: PlaceOpened) -> dict[str, JsonValue]:
    return {name: opened.facts.get(name) for name in ALIKE}


def _processor(opened: PlaceOpened) -> str:
    """Whose processor a place shows: its host's, empty, or one that may be imitated, which has another name."""
    place = place_of(opened.place)
    use = place.requirements().virtualisation if isinstance(place, FreshPlace) else None
    return "" if use in (None, "required") else use


def _machine(opened: PlaceOpened) -> dict[str, JsonValue]:
    facts = {name: opened.facts.get(name) for name in ALIKE_EVERYWHERE}
    return {"agent": opened.agent_sha256, "emulation": bool(opened.facts.get("emulated")), **facts}
