"""The loop of trials: the only part of fairtrial with side effects beyond its own directory."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from fairtrial import doctor
from fairtrial.errors import HostBootError, StreamLostError
from fairtrial.places import KEPT, PASSING, Disk, boots_anew, is_booted, is_fresh, place_of
from fairtrial.record.models import (
    Clock,
    Finding,
    PlaceOpened,
    PlannedTrial,
    TrialRecord,
    TrialStarted,
)
from fairtrial.run import elsewhere, existing, interrupting, noise, rebooting
from fairtrial.run.conducting import Conductor
from fairtrial.run.existing import ExistingServers
from fairtrial.run.feasibility import carriers, ceiling, emulation, machines
from fairtrial.run.feasibility import disk as room
from fairtrial.run.feasibility import probes as probe_checks
from fairtrial.run.feasibility import settings as settable
from fairtrial.run.opening import holder, opened
from fairtrial.run.trial.outcome import STREAM_LOST
from fairtrial.run.trial.runner import TrialRunner
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import system_of
from fairtrial.wire.open_place import OpenPlace
from fairtrial.words import duration

SHORT_PAUSE_S = 3600.0
STREAMS_LOST_IN_A_ROW = 3  # between trials, without one finished: the place is not coming back by itself


@dataclass
class Run(Conductor):
    """A run whose trials this process runs, one after the other.

    Attributes:
        fit: places that were found to have what the run needs.
        examined: places whose fitness to measure on is noted.
        prepared: places that boot for every trial and hold what their trials start from.
        keys: of the data that trials start from.
        known: what earlier runs found out at a place, by place.
        first: planned trial of each cell and arm.
        lost: places whose stream was lost and that nobody has opened since: their agents may have left something there.
        ended_s: when the last trial had ended, seconds since 1970; None before the first, and once a pause was seen.
    """

    fit: set[Section] = field(default_factory=set)
    examined: set[Section] = field(default_factory=set)
    prepared: set[Section] = field(default_factory=set)
    keys: dict[tuple[str, str], str | None] = field(default_factory=dict)
    known: dict[Section, dict[str, JsonValue]] = field(default_factory=dict)
    first: dict[tuple[str, str], PlannedTrial] = field(default_factory=dict)
    lost: set[Section] = field(default_factory=set)
    lost_in_a_row: int = 0
    ended_s: float | None = None

    def _run_trials(self) -> None:
        self._void_torn()
        self._fetch()
        self._require_reach()
        with rebooting.default_again(self.writer, self.progress):
            while (trial := self._next()) is not None:
                self._at_place_again(trial)
            self._restore()

    def _void_torn(self) -> None:
        """A block does not go on whose arms would differ by the machine, if a farm's host began it, or by the time."""
        if not (torn := self.schedule.torn()):
            return  # as of most runs, whose trials need not be read
        trials, now = self.writer.record().trials, datetime.now(UTC)
        for cell, block in torn:
            ran = [each for each in trials if (each.trial.cell, each.trial.block) == (cell, block)]
            pause = now - max(datetime.fromisoformat(each.finished) for each in ran)
            if host := next((each.host for each in ran if each.host), ""):
                self._void(cell, block, f"{host} ran only a part of it, and this run goes on without its farm")
            elif pause.total_seconds() > self._longest_pause_s(cell, block):
                apart = duration(pause.total_seconds())
                self._void(cell, block, f"the run stood still for {apart} after a part of it", counts=False)

    def _longest_pause_s(self, cell: str, block: int) -> float:
        """Inside a block that goes on: an hour, or what the block takes anyway, where its order is to fight drift."""
        if self.schedule.is_sequential:
            return math.inf
        spanned = Counter((each.cell, each.arm) for each in self.schedule.spanned(cell, block))
        return max(SHORT_PAUSE_S, self.pace.left_s(spanned))

    def _next(self) -> PlannedTrial | None:
        """The same; a pause, or the sleep of this machine, voids like an interruption."""
        trial = super()._next()
        if self.ended_s is None or time.time() - self.ended_s <= SHORT_PAUSE_S:
            return trial
        self.ended_s = None
        self._void_torn()
        return self._next()

    def _fetch(self) -> None:
        """Servers, images and kernels that this machine does not have yet, before anything starts: they are large."""
        places: set[Section] = set()
        for trial in self.schedule.owed():
            resolved = self._resolved(trial)
            for place in (resolved.place, *resolved.clients):
                if place not in places:
                    with self._mistakes_located(trial):
                        place_of(place).fetched()
                    places.add(place)
            system = system_of(resolved.system)
            if (source := system.awaited()) is not None:
                self.progress.note(f"fetching {system.name}: {source}")
                files = system.fetched()
                if source.sha256 is None and files is not None:
                    self.progress.note(f"to get the same again, add `sha256: {files.archive_sha256}` to {source}")

    def _at_place_again(self, trial: PlannedTrial) -> None:
        """Opens the place; a stream lost between trials costs none of them, but not for ever."""
        try:
            with self._mistakes_located(trial):
                self._at_place(trial)
        except HostBootError as error:
            self._append(TrialStarted(trial=trial))
            self.schedule.finish(trial.id, valid=False)
            self.progress.trial_finished(rebooting.unbooted(self.writer, trial, error))
            self._repair()
        except StreamLostError as error:
            if (interrupt := interrupting.behind(error)) is not None:
                raise interrupt from error
            self.lost_in_a_row += 1
            if self.lost_in_a_row >= STREAMS_LOST_IN_A_ROW:
                raise
            self.progress.note(f"the stream to the place was lost between trials, opening it again: {error}")
            self._note_lost(trial)

    def _note_lost(self, trial: PlannedTrial) -> None:
        place, clients = self._places_of(trial)
        self.lost.update((place, *clients))

    def _restore(self) -> None:
        """Opens what was lost for nothing else than what its agent, if it was killed, has left there."""
        # Guests ended with their kernel, and the end of the run brings hosts that boot back.
        for place in [each for each in self.lost if not (boots_anew(each) or is_booted(each))]:
            with self._open(place):
                pass

    def _at_place(self, first: PlannedTrial) -> None:
        """Runs trials for as long as they are at the same place and its stream holds."""
        place = self._resolved(first).place
        if is_fresh(place):
            self._fresh(place, first)
            return
        client_of = elsewhere.of(self._resolved(first))
        with contextlib.ExitStack() as stack:
            open_place = stack.enter_context(self._open(place))
            self._note_place(place, open_place, findings=self._examined(place, open_place))
            self._require(place, open_place)
            self._require_probes(first, open_place)
            driven = elsewhere.driven_from(client_of[0], self.writer.plan.resolved) if client_of else []
            here = [trial for trial in driven if (trial.place, elsewhere.of(trial)) == (place, client_of)]
            clients = tuple(self._client(stack, each, system=(place, open_place), driven=here) for each in client_of)
            if clients:
                settable.require_of_clients(open_place, clients, here)
            runner = self._runner(place, open_place, clients)
            self._prepare(runner, place)
            anew = rebooting.begins_with_boot(place, *client_of)
            if anew and place not in self.prepared and any(self.keys.values()):
                self.prepared.add(place)
                return  # no trial shall follow a load: it begins with a boot of its own
            trial: PlannedTrial | None = first
            while trial is not None and self._places_of(trial) == (place, client_of):
                record = self._one(runner, trial)
                if record.invalid_reason.startswith(STREAM_LOST):
                    return  # opened again for the next trial
                done, trial = trial, self._next()
                if anew and not rebooting.is_same_boot(done, trial):
                    return

    def _examined(self, place: Section, open_place: OpenPlace) -> list[Finding]:
        """How fit a place is, looked at once: a place that opens often would look worse for being looked at often."""
        if place in self.examined:
            return []
        self.examined.add(place)
        return doctor.examine(open_place)

    def _client(
        self,
        stack: contextlib.ExitStack,
        place: Section,
        *,
        system: tuple[Section, OpenPlace],
        driven: Sequence[ResolvedTrial],
    ) -> elsewhere.Client:
        """Opens a place that workloads run at, for as long as the system's; `driven`: the trials of both."""
        open_place = stack.enter_context(self._open(place))
        self._note_place(place, open_place, findings=self._examined(place, open_place))
        must_know = any(trial.network.address is None for trial in driven)
        return elsewhere.reached(system[1], open_place, places=(system[0], place), must_know=must_know)

    def _fresh(self, place: Section, trial: PlannedTrial) -> None:
        """Runs one trial at a place that begins with it. What all trials start from is made in one of its own."""
        if place not in self.prepared or (trial.cell, trial.arm) not in self.keys:
            carrier = carriers.examine(carriers.fresh(place), directory=self.writer.directory)
            with self._open(place, KEPT) as open_place:
                carriers.require_same_image(open_place, self.writer.record())
                self._note_place(place, open_place, findings=[*doctor.examine(open_place), *carrier])
                self._require(place, open_place)
                self._require_probes(trial, open_place)
                self._prepare(self._runner(place, open_place), place)
            self.prepared.add(place)
        disk = Disk(key=self.keys.get((trial.cell, trial.arm)))
        with self._open(place, disk) as open_place:
            self._note_place(place, open_place)
            self._one(self._runner(place, open_place), trial)

    @contextlib.contextmanager
    def _open(self, place: Section, disk: Disk = PASSING) -> Iterator[OpenPlace]:
        began_s = time.monotonic()
        with opened(place, directory=self.writer.directory, progress=self.progress, disk=disk) as open_place:
            self.pace.note_opened(time.monotonic() - began_s)
            self.lost.discard(place)
            yield open_place

    def _runner(self, place: Section, open_place: OpenPlace, clients: tuple[elsewhere.Client, ...] = ()) -> TrialRunner:
        servers = ExistingServers(open_place, holder(self.writer.directory))
        servers.require(settable.here(place, self.writer.plan.resolved))
        return TrialRunner(
            place=open_place,
            writer=self.writer,
            progress=self.progress,
            servers=servers,
            clients=clients,
            accept=self._accept,
        )

    def _prepare(self, runner: TrialRunner, place: Section) -> None:
        """Every data set of this place, before its first trial."""
        if not self.first:
            written = [*self.schedule.queue, *self.writer.plan.diagnostics]
            self.first = {(trial.cell, trial.arm): trial for trial in reversed(written)}
        for cell, arms in self.writer.plan.resolved.items():
            for arm, resolved in arms.items():
                if resolved.place == place:
                    trial = self.first[cell, arm]
                    with self._mistakes_located(trial):
                        self.keys[cell, arm] = runner.prepare(trial)

    def _one(self, runner: TrialRunner, trial: PlannedTrial) -> TrialRecord:
        done, owed = len(self.schedule.finished), self.schedule.kinds
        self.progress.trial_started(trial, number=done + 1, total=done + owed.total(), left_s=self.pace.left_s(owed))
        self._append(TrialStarted(trial=trial))
        # A system that has never started here never will: the study is wrong. One that has is an accident of one trial.
        with self._mistakes_located(trial):
            record = runner.run(trial, has_started=(trial.cell, trial.arm) in self.started)
        self.lost_in_a_row, self.ended_s = 0, time.time()
        self.started.add((trial.cell, trial.arm))
        self.pace.note_run(record)
        self.schedule.finish(trial.id, valid=record.valid)
        if record.invalid_reason.startswith(STREAM_LOST):
            self._note_lost(trial)
        self._repair()
        return record

    def _places_of(self, trial: PlannedTrial) -> tuple[Section, tuple[Section, ...]]:
        return self._resolved(trial).place, elsewhere.of(self._resolved(trial))

    def _require(self, place: Section, open_place: OpenPlace) -> None:
        """What a place must be and have. Once per place: a run that is under way has taken some of what it needs."""
        if place not in self.fit:
            guest = open_place.facts.guest
            emulation.require_counts(self.writer.plan, emulated=guest is not None and guest.emulated)
            trials = settable.here(place, self.writer.plan.resolved)
            settable.require(open_place, trials)
            room.require(open_place, self.writer.plan.disk_bytes, trials=trials)
            self.fit.add(place)

    def _require_reach(self) -> None:
        """That workloads of other places than their systems' can reach these, before anything is opened."""
        first = {(trial.cell, trial.arm): trial for trial in reversed(self.schedule.owed())}
        for trial in first.values():
            with self._mistakes_located(trial):
                elsewhere.require(self._resolved(trial))
                existing.refuse(self._resolved(trial))

    def _require_probes(self, trial: PlannedTrial, open_place: OpenPlace) -> None:
        """Every probe that is yet to be used, before the first trial: a run shall not end where it explains itself."""
        if any(each.diagnostic for each in self.schedule.owed()):
            with self._mistakes_located(trial):
                probe_checks.require(open_place, self.writer.plan.probes)

    def _known(self, place: Section, open_place: OpenPlace) -> dict[str, JsonValue]:
        """What earlier runs found out at a place; of one that boots for every trial, when it boots first."""
        if place not in self.known or open_place.carrier is None:
            here = elsewhere.driven_from(place, self.writer.plan.resolved)
            self.known[place] = {**ceiling.facts(open_place, here), **noise.facts(open_place)}
        return self.known[place]

    def _note_place(self, place: Section, open_place: OpenPlace, *, findings: Sequence[Finding] = ()) -> None:
        hello = open_place.agent.hello
        opened_now = PlaceOpened(
            place=place,
            facts={**open_place.facts.as_json(), **self._known(place, open_place)},
            agent_sha256=hello.agent_sha256,
            clock=Clock(monotonic_ns=hello.clock.monotonic_ns, realtime_ns=hello.clock.realtime_ns),
            server_user=open_place.server_user,
            findings=list(findings),
        )
        machines.require_same(opened_now, self.writer.opened(place))
        self.writer.note_place(opened_now)
        if unfit := [finding.name for finding in findings if finding.grade == "unfit"]:
            self.progress.note(f"unfit to measure on: {', '.join(unfit)}; `fairtrial doctor` says why")
