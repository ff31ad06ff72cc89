"""The loop of trials: the only part of fairtrial with side effects beyond its own directory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from pydantic import JsonValue

from fairtrial import doctor
from fairtrial import plan as planning
from fairtrial.errors import INTERRUPTED, FairtrialError, InputError, PlaceError, StreamLostError
from fairtrial.places import KEPT, PASSING, Disk, is_fresh
from fairtrial.record import Record, Writer
from fairtrial.record.events import Event, PageServed
from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    CellLook,
    Clock,
    Finding,
    LookTaken,
    PlaceOpened,
    PlannedTrial,
    RunFinished,
    RunInterrupted,
    TrialRecord,
    TrialStarted,
)
from fairtrial.run import elsewhere, existing, noise
from fairtrial.run.existing import ExistingServers
from fairtrial.run.feasibility import carriers, ceiling, emulation
from fairtrial.run.feasibility import disk as room
from fairtrial.run.feasibility import probes as probe_checks
from fairtrial.run.feasibility import settings as settable
from fairtrial.run.opening import holder, opened
from fairtrial.run.pace import Pace
from fairtrial.run.progress import Progress
from fairtrial.run.schedule import Schedule
from fairtrial.run.steering import Mailbox, Steering
from fairtrial.run.trial.outcome import levels_of
from fairtrial.run.trial.runner import STREAM_LOST, TrialRunner
from fairtrial.study import Study, located, located_lack
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import system_of
from fairtrial.wire.open_place import OpenPlace
from fairtrial.words import STOP_REASONS, counted
from fairtrial.workloads import workload_of

STREAMS_LOST_IN_A_ROW = 3  # between trials, without one finished: the place is not coming back by itself


@dataclass(frozen=True)
class Decision:
    """What a stopping rule says after a complete round: of the whole run, and of each cell that is still open."""

    decision: Literal["continue", "stop"]
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    cells: tuple[CellLook, ...] = ()


StoppingRule = Callable[[Record], Decision]


@dataclass
class Run:
    """A run in progress.

    Attributes:
        writer: its record.
        progress: who is told.
        stopping: asked after every complete round; None runs all that is planned.
        study: reads the study, to say where what a system refuses was written.
        pace: what finished trials took, for the time that is left.
        fit: places that were found to have what the run needs.
        examined: places whose fitness to measure on is noted.
        prepared: places that boot for every trial and hold what their trials start from.
        keys: of the data that trials start from.
        known: what earlier runs found out at a place, by place.
        page: what the page beside the run has cost so far; None if there is none.
    """

    writer: Writer
    progress: Progress
    stopping: StoppingRule | None = None
    study: Callable[[], Study] | None = None
    page: Callable[[], PageServed | None] | None = None
    schedule: Schedule = field(init=False)
    pace: Pace = field(init=False)
    steering: Steering = field(init=False)
    started: set[tuple[str, str]] = field(default_factory=set)
    content: dict[str, str] = field(default_factory=dict)
    fit: set[Section] = field(default_factory=set)
    examined: set[Section] = field(default_factory=set)
    prepared: set[Section] = field(default_factory=set)
    keys: dict[tuple[str, str], str | None] = field(default_factory=dict)
    known: dict[Section, dict[str, JsonValue]] = field(default_factory=dict)
    subjects: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    loads: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    lost_in_a_row: int = 0

    def __post_init__(self) -> None:
        plan, record = self.writer.plan, self.writer.record()
        self.schedule = Schedule(plan=plan, replacement=partial(planning.replacement, plan))
        self.schedule.replay(record.events)
        self.steering = Steering(
            Mailbox(self.writer.directory), schedule=self.schedule, append=self._append, progress=self.progress
        )
        self.pace = Pace(expected_s=plan.duration_s / max(len(plan.trials), 1))
        for trial in record.committed:
            self.pace.note(trial)
            self._accept(trial)
            if trial.window is not None:
                self.started.add((trial.trial.cell, trial.trial.arm))

    def execute(self) -> None:
        """Runs every trial that is owed.

        Raises:
            FairtrialError: the run cannot go on; what is finished stays, and `--resume` goes on from there.
            KeyboardInterrupt: the user stopped it; the same holds.
        """
        try:
            self._repair()
            self._fetch()
            self._require_reach()
            while (trial := self._next()) is not None:
                self._at_place_again(trial)
            self._note_page()
        except KeyboardInterrupt:
            self._note_page()
            self.steering.interrupted()
            self.writer.append(RunInterrupted(reason="stopped by the user", exit_code=INTERRUPTED))
            raise
        except FairtrialError as error:
            with contextlib.suppress(FairtrialError):  # the first error is the one to show
                self._note_page()
                self.writer.append(RunInterrupted(reason=str(error), exit_code=error.exit_code))
            raise
        finally:
            self.steering.mailbox.clear()
        self.writer.append(RunFinished())

    def _note_page(self) -> None:
        if self.page is not None and (served := self.page()) is not None:
            self._append(served)

    def _fetch(self) -> None:
        """Servers and images that this machine does not have yet, before anything starts: they are large."""
        for trial in self.schedule.owed():
            if is_fresh(place := self._resolved(trial).place):
                with self._mistakes_located(trial):
                    carriers.fresh(place).fetched()
            system = system_of(self._resolved(trial).system)
            if (source := system.awaited()) is not None:
                self.progress.note(f"fetching {system.name}: {source}")
                system.fetched()

    def _at_place_again(self, trial: PlannedTrial) -> None:
        """Opens the place; a stream lost between trials costs none of them, but not for ever."""
        try:
            with self._mistakes_located(trial):
                self._at_place(trial)
        except StreamLostError as error:
            self.lost_in_a_row += 1
            if self.lost_in_a_row >= STREAMS_LOST_IN_A_ROW:
                raise
            self.progress.note(f"the stream to the place was lost between trials, opening it again: {error}")

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
            client = None
            if client_of is not None:
                client = self._client(stack, client_of, system=(place, open_place))
                driven = elsewhere.driven_from(client_of, self.writer.plan.resolved)
                settable.require_of_client(open_place, client, [trial for trial in driven if trial.place == place])
            runner = self._runner(place, open_place, client)
            self._prepare(runner, place)
            trial: PlannedTrial | None = first
            while trial is not None and self._places_of(trial) == (place, client_of):
                record = self._one(runner, trial)
                if record.invalid_reason.startswith(STREAM_LOST):
                    return  # opened again for the next trial
                trial = self._next()

    def _examined(self, place: Section, open_place: OpenPlace) -> list[Finding]:
        """How fit a place is, looked at once: a place that opens often would look worse for being looked at often."""
        if place in self.examined:
            return []
        self.examined.add(place)
        return doctor.examine(open_place)

    def _client(
        self, stack: contextlib.ExitStack, place: Section, *, system: tuple[Section, OpenPlace]
    ) -> elsewhere.Client:
        """Opens the place that workloads run at, for as long as the system's."""
        open_place = stack.enter_context(self._open(place))
        self._note_place(place, open_place, findings=self._examined(place, open_place))
        return elsewhere.reached(system[1], open_place, places=(system[0], place))

    def _fresh(self, place: Section, trial: PlannedTrial) -> None:
        """Runs one trial at a place that begins with it. What all trials start from is made in one of its own."""
        if place not in self.prepared:
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

    def _open(self, place: Section, disk: Disk = PASSING) -> contextlib.AbstractContextManager[OpenPlace]:
        return opened(place, directory=self.writer.directory, progress=self.progress, disk=disk)

    def _runner(self, place: Section, open_place: OpenPlace, client: elsewhere.Client | None = None) -> TrialRunner:
        servers = ExistingServers(open_place, holder(self.writer.directory))
        servers.require(settable.here(place, self.writer.plan.resolved))
        return TrialRunner(
            place=open_place,
            writer=self.writer,
            progress=self.progress,
            servers=servers,
            client=client,
            accept=self._accept,
        )

    def _prepare(self, runner: TrialRunner, place: Section) -> None:
        """Every data set of this place, before its first trial."""
        for cell, arms in self.writer.plan.resolved.items():
            for arm, resolved in arms.items():
                if resolved.place == place:
                    trial = next(t for t in self.schedule.queue if (t.cell, t.arm) == (cell, arm))
                    with self._mistakes_located(trial):
                        self.keys[cell, arm] = runner.prepare(trial)

    def _one(self, runner: TrialRunner, trial: PlannedTrial) -> TrialRecord:
        done, owed = len(self.schedule.finished), self.schedule.owed()
        self.progress.trial_started(trial, number=done + 1, total=done + len(owed), left_s=self.pace.left_s(owed))
        self._append(TrialStarted(trial=trial))
        # A system that has never started here never will: the study is wrong. One that has is an accident of one trial.
        with self._mistakes_located(trial):
            record = runner.run(trial, has_started=(trial.cell, trial.arm) in self.started)
        self.lost_in_a_row = 0
        self.started.add((trial.cell, trial.arm))
        self.pace.note(record)
        self.schedule.finished[trial.id] = record.valid
        self._repair()
        return record

    @contextlib.contextmanager
    def _mistakes_located(self, trial: PlannedTrial) -> Iterator[None]:
        """What a system refuses of the user's own words, or a place lacks, is named by file, line and column."""
        try:
            yield
        except InputError as error:
            if self.study is None:
                raise
            raise located(error, self.study(), self._written_levels(trial)) from error
        except PlaceError as error:
            if self.study is None or not error.field:
                raise
            raise located_lack(error, self.study(), self._written_levels(trial)) from error

    def _written_levels(self, trial: PlannedTrial) -> dict[str, str]:
        """As the study has them: both labels of an A/A run are its baseline."""
        plan = self.writer.plan
        cell = next(cell for cell in plan.cells if cell.name == trial.cell)
        return levels_of(cell.levels, arm=(plan.arm, plan.factors[plan.arm][0] if plan.against_itself else trial.arm))

    def _accept(self, record: TrialRecord) -> None:
        self._same_content(record)
        self._same_subject(record)

    def _same_content(self, record: TrialRecord) -> None:
        """Arms of a cell must start from the same data, or they are not comparable."""
        content = record.data.content_sha256
        if content is None:
            return
        cell = record.trial.cell
        if self.content.setdefault(cell, content) != content:
            raise PlaceError(
                f"in cell {cell}, arm {record.trial.arm} starts from other data than the arms before it",
                hint="arms may not change what the data are made of (scale, seed); a loader without a seed makes "
                "different data each time that `restore: reload` runs it: use `restore: none`, or a command",
            )

    def _same_subject(self, record: TrialRecord) -> None:
        """A run may not go on with another build of the system, its load, the agent or the kernel: blocks would mix."""
        key = (record.trial.cell, record.trial.arm)
        if "sha256" not in record.system_facts:
            return  # the trial was lost before its system was looked at
        subject = {**record.subject, "system": record.system_facts["sha256"]}
        known = self.subjects.setdefault(key, subject)
        changed = [name for name in known if known[name] != subject.get(name)]
        named = workload_of(record.resolved.workload).builds
        loads = {name: value for name, value in record.options.items() if name in named}
        builds = self.loads.setdefault(key, {})
        changed += [named[name] for name, value in loads.items() if builds.setdefault(name, value) != value]
        if changed:
            raise PlaceError(
                f"{record.trial.id} ran on another {' and '.join(changed)} than the trials of this arm before it",
                hint="install what the run began with and resume, or start a new run",
            )

    def _repair(self) -> None:
        """Voids blocks that lost a trial and plans their replacements."""
        while owed := self.schedule.repairs():
            for event in owed:
                self._append(event)
                if isinstance(event, BlockVoided):
                    self.progress.note(f"block {event.block} of {event.cell} is void: {event.reason}")
                if isinstance(event, BlockAdded):
                    self.progress.note(f"block {event.block} of {event.cell} replaces block {event.replaces}")
        limit = self.writer.plan.design.voided_limit
        for cell in {cell for cell, _block in self.schedule.voided}:
            if self.schedule.losses(cell) > limit:
                raise PlaceError(
                    f"cell {cell} has lost {self.schedule.losses(cell)} blocks to invalid trials, more than the "
                    f"limit of {limit}",
                    hint="see `invalid_reason` in the trials' trial.json; trials.voided_limit raises the limit",
                )

    def _next(self) -> PlannedTrial | None:
        """The next trial, after doing what was asked and asking the stopping rule about a round it has not seen."""
        self.steering.between_trials()
        self._look()
        return self.schedule.next_trial()

    def _look(self) -> None:
        if self.stopping is None or self.schedule.stopped:
            return  # a decision is final, also across a resume
        round_ = self.schedule.complete_rounds()
        if round_ > self.schedule.looked_at:
            said = self.stopping(self.writer.record())
            look = LookTaken(round=round_, decision=said.decision, details=dict(said.details), cells=list(said.cells))
            self._append(look)
            for cell in look.cells:
                if cell.decision == "stop":
                    self.progress.note(
                        f"{cell.cell} stops after {counted(cell.blocks, 'block')}: {STOP_REASONS[cell.reason]}"
                    )

    def _append(self, event: Event) -> None:
        self.writer.append(event)
        self.schedule.apply(event)

    def _resolved(self, trial: PlannedTrial) -> ResolvedTrial:
        return self.writer.plan.resolved[trial.cell][trial.arm]

    def _places_of(self, trial: PlannedTrial) -> tuple[Section, Section | None]:
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
                elsewhere.require(self.writer.plan, self._resolved(trial))
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
        self.writer.note_place(
            PlaceOpened(
                place=place,
                facts={**open_place.facts.as_json(), **self._known(place, open_place)},
                agent_sha256=hello.agent_sha256,
                clock=Clock(monotonic_ns=hello.clock.monotonic_ns, realtime_ns=hello.clock.realtime_ns),
                server_user=open_place.server_user,
                findings=list(findings),
            )
        )
        if unfit := [finding.name for finding in findings if finding.grade == "unfit"]:
            self.progress.note(f"unfit to measure on: {', '.join(unfit)}; `fairtrial doctor` says why")
