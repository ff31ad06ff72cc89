"""What every run does, wherever its trials run: its schedule, its journal, its stopping rule, and how it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from pydantic import JsonValue

from fairtrial import plan as planning
from fairtrial.errors import CLOSED, INTERRUPTED, FairtrialError, InputError, PlaceError
from fairtrial.record import Writer
from fairtrial.record.events import Event, PageServed, RunFinished, RunInterrupted
from fairtrial.record.models import BlockAdded, BlockVoided, CellLook, LookTaken, Plan, PlannedTrial, TrialRecord
from fairtrial.record.writer import Changes
from fairtrial.run import interrupting
from fairtrial.run.pace import Pace
from fairtrial.run.progress import LiveProgress, Progress
from fairtrial.run.schedule import Schedule
from fairtrial.run.steering import Mailbox, Steering
from fairtrial.run.trial.outcome import levels_of
from fairtrial.study import Study, located, located_lack
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.words import STOP_REASONS, counted
from fairtrial.workloads import workload_of
from fairtrial.workloads.command import PROGRAM


@dataclass(frozen=True)
class Decision:
    """What a stopping rule says after a complete round: of the whole run, and of each cell that is still open."""

    decision: Literal["continue", "stop"]
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    cells: tuple[CellLook, ...] = ()


StoppingRule = Callable[[Changes], Decision]


@dataclass
class Conductor:
    """A run in progress, but for how its trials come about.

    Attributes:
        writer: its record.
        progress: who is told; from the beginning of the run on with a mirror of it in the record.
        stopping: asked after every complete round, in their order, and told what is new; None runs all that is planned.
        study: reads the study, to say where what a system refuses was written.
        page: what the page beside the run has cost so far; None if there is none.
        pace: what finished trials took, for the time that is left.
        started: (cell, arm) whose system has started before.
    """

    writer: Writer
    progress: Progress
    stopping: StoppingRule | None = None
    study: Callable[[], Study] | None = None
    page: Callable[[], PageServed | None] | None = None
    schedule: Schedule = field(init=False)
    pace: Pace = field(init=False)
    mirror: contextlib.AbstractContextManager[object] = field(init=False)
    steering: Steering = field(init=False)
    started: set[tuple[str, str]] = field(default_factory=set)
    content: dict[tuple[str, str], str] = field(default_factory=dict)
    subjects: dict[tuple[object, ...], dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, record = self.writer.plan, self.writer.record()
        self.mirror = self._mirrored()
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
        with contextlib.ExitStack() as shown:
            try:
                shown.enter_context(self.mirror)  # from here on, who interrupts the run is in the journal
                with interrupting.goes_first():
                    self._repair()
                    self._run_trials()
                    self._note_page()
            except KeyboardInterrupt as stop:
                if isinstance(stop.__cause__, FairtrialError | OSError):
                    self.progress.note(f"while stopping: {stop.__cause__}")
                self._note_page()
                self.steering.interrupted()
                self.writer.append(RunInterrupted(reason="stopped by the user", exit_code=INTERRUPTED))
                raise
            except (FairtrialError, OSError) as error:
                with contextlib.suppress(FairtrialError, OSError):  # the first error is the one to show
                    self._note_page()
                    self.writer.append(_interrupted(error))
                raise
            finally:
                self.steering.mailbox.clear()
            self.writer.append(RunFinished())

    def _mirrored(self) -> contextlib.AbstractContextManager[object]:
        """Has whoever looks on told, too, while what is returned is entered."""
        self.progress = mirror = LiveProgress(self.writer.directory, self.progress)
        return mirror.shown()

    def _run_trials(self) -> None:
        """Runs every trial that is owed, to the last."""
        raise NotImplementedError

    def _note_page(self) -> None:
        if self.page is not None and (served := self.page()) is not None:
            self._append(served)

    def _next(self) -> PlannedTrial | None:
        """The next trial, after doing what was asked and asking the stopping rule about a round it has not seen."""
        self.steering.between_trials()
        self._look()
        return self.schedule.next_trial()

    def _look(self) -> None:
        if self.stopping is None or self.schedule.stopped:
            return  # a decision is final, also across a resume
        for round_ in range(self.schedule.looked_at + 1, self.schedule.complete_rounds() + 1):
            if self.schedule.stopped:
                return
            said = self.stopping(self.writer.changes())
            look = LookTaken(round=round_, decision=said.decision, details=dict(said.details), cells=list(said.cells))
            self._append(look)
            for cell in look.cells:
                if cell.decision == "stop":
                    self.progress.note(
                        f"{cell.cell} stops after {counted(cell.blocks, 'block')}: {STOP_REASONS[cell.reason]}"
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
        for cell in {cell for cell, _block in self.schedule.voided} - self.schedule.decided:
            if (lost := self.schedule.losses(cell)) > limit:
                raise PlaceError(
                    f"cell {cell} has lost {counted(lost, 'block')}, more than the limit of {limit}",
                    hint="the journal says why each is void, and trial.json why a trial is invalid; to allow more, "
                    "start a new run with a larger trials.voided_limit",
                )

    def _void(self, cell: str, block: int, reason: str, *, counts: bool = True) -> None:
        self._append(BlockVoided(cell=cell, block=block, reason=reason, counts=counts))
        self.progress.note(f"block {block} of {cell} is void: {reason}")
        self._repair()

    def _append(self, event: Event) -> None:
        self.writer.append(event)
        self.schedule.apply(event)

    def _resolved(self, trial: PlannedTrial) -> ResolvedTrial:
        return self.writer.plan.resolved[trial.cell][trial.arm]

    def _accept(self, record: TrialRecord) -> None:
        self._same_content(record)
        self._same_subject(record)

    def _accept_all(self, records: Iterable[TrialRecord]) -> None:
        """Of a block that is refused, nothing is the measure for others."""
        before = dict(self.content), dict(self.subjects)
        try:
            for record in records:
                self._accept(record)
        except BaseException:
            self.content, self.subjects = before
            raise

    def _same_content(self, record: TrialRecord) -> None:
        """Arms of a cell must start from the same data, or they are not comparable; each host has its own."""
        content = record.data.content_sha256
        if content is None:
            return
        cell = record.trial.cell
        if self.content.setdefault((cell, record.host), content) != content:
            raise PlaceError(
                f"in cell {cell}, arm {record.trial.arm} starts from other data than the arms before it",
                hint="arms may not change what the data are made of (scale, seed); a loader without a seed makes "
                "different data each time that `restore: reload` runs it: use `restore: none`, or a command",
            )

    def _same_subject(self, record: TrialRecord) -> None:
        """A run may not go on with another build of the system, its load, the agent or the kernel: blocks would mix.

        Arms share a place, and a program of one path there unless the study's `builds` puts another at that path.
        """
        if "sha256" not in record.system_facts:
            return  # the trial was lost before its system was looked at
        of_host = record.host if self.writer.plan.design.hosts == "factor" else ""  # each has a build of its own then
        arm = (record.trial.cell, record.trial.arm, of_host)
        resolved = self._resolved(record.trial)
        place = (resolved.place, resolved.clients, of_host)
        system, program = {"system": record.system_facts["sha256"]}, record.system_facts.get("binary")
        changed = [*self._changed(arm, system), *self._changed(place, record.subject)]
        if program is not None and self.writer.plan.builds is None:
            changed += self._changed((*place, resolved.system.kind, program), system)
        for name, of in workload_of(record.resolved.workload).builds.items():
            if name in record.options and not (name == PROGRAM and self.writer.plan.builds):
                changed += self._changed((*arm, name), {of: record.options[name]})
        if changed:
            raise PlaceError(
                f"{record.trial.id} ran on another {' and '.join(dict.fromkeys(changed))} than the trials before it",
                hint="install what the run began with and resume, or start a new run",
            )

    def _changed(self, key: tuple[object, ...], now: dict[str, str]) -> list[str]:
        """Names of what differs from the first trial's of that key."""
        known = self.subjects.setdefault(key, now)
        return [name for name in known if known[name] != now.get(name)]

    @contextlib.contextmanager
    def _mistakes_located(self, trial: PlannedTrial) -> Iterator[None]:
        """What a system refuses of the user's own words, or a place lacks, is named by file, line and column."""
        try:
            yield
        except InputError as error:
            if self.study is None:
                raise
            raise located(error, self.study(), written_levels(self.writer.plan, trial)) from error
        except PlaceError as error:
            if self.study is None or not error.field:
                raise
            raise located_lack(error, self.study(), written_levels(self.writer.plan, trial)) from error


def written_levels(plan: Plan, trial: PlannedTrial) -> dict[str, str]:
    """A trial's levels as the study has them: both labels of an A/A run are its baseline."""
    if plan.screening is not None:
        return plan.screening.levels(trial.arm)
    cell = next(cell for cell in plan.cells if cell.name == trial.cell)
    return levels_of(cell.levels, arm=(plan.arm, plan.factors[plan.arm][0] if plan.against_itself else trial.arm))


def _interrupted(error: FairtrialError | OSError) -> RunInterrupted:
    if isinstance(error, FairtrialError):
        return RunInterrupted(reason=str(error), exit_code=error.exit_code)
    closed = isinstance(error, BrokenPipeError)
    reason = "whoever read what the run prints has closed it" if closed else str(error)
    return RunInterrupted(reason=reason, exit_code=CLOSED if closed else FairtrialError.exit_code)
