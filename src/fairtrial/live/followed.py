"""A run's directory, read again and again: each reading takes only what is new."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.live.activity import Activity
from fairtrial.live.looks import CellLooks, cell_looks
from fairtrial.live.slots import Slot, Slots
from fairtrial.record.events import JournalLine, RunFinished, RunInterrupted
from fairtrial.record.journal import NAME as JOURNAL
from fairtrial.record.journal import JournalReader
from fairtrial.record.live import FeedReader, Live, LiveReader
from fairtrial.record.models import BlockVoided, PlaceOpened, Plan, TrialRecord
from fairtrial.record.reader import (
    MOST_BYTES,
    Record,
    extended,
    read_plan,
    refuse_links,
    trial_file,
    trial_from_directory,
)
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads import throughput_of

if TYPE_CHECKING:
    from fairtrial.analyse.models import Analysis

State = Literal["not started", "running", "interrupted", "finished"]


@dataclass
class FollowedRun:
    """One run.

    Attributes:
        plan: with what the run was extended by, as far as it was read.
        journal: every line so far.
        trials: committed ones by id, in the order they ran.
        activity: of the trial that runs.
        live: what the run says of itself; None unless it goes on.
        process: of its controller; None unless it goes on.
        interruption: how the last process of an unfinished run stopped; None if it did not say.
    """

    directory: Path
    plan: Plan = field(init=False)
    journal: list[JournalLine] = field(default_factory=list)
    trials: dict[str, TrialRecord] = field(default_factory=dict)
    activity: Activity | None = None
    live: Live | None = None
    process: int | None = None
    interruption: RunInterrupted | None = None

    def __post_init__(self) -> None:
        self.plan = _plan(self.directory)
        self.slots = Slots(self.plan)
        self._lines = JournalReader(self.directory / JOURNAL)
        self._feed = FeedReader(self.directory)
        self._live = LiveReader(self.directory)
        self._fates: tuple[tuple[int, bool], list[Slot]] | None = None

    def refresh(self) -> bool:
        """Reads what is new; whether the journal has grown.

        Raises:
            RecordError: the record is damaged.
        """
        self.live = self._live.read()
        self.process = None if self.live is None else self.live.process
        known = len(self.journal)
        if (self.directory / JOURNAL).exists():
            for line in self._lines.lines():  # one that cannot be taken in is read again
                self._take(line)
        self._listen()
        return len(self.journal) > known

    def _take(self, line: JournalLine) -> None:
        entry = line.entry
        if entry.event == "trial_finished":
            self.trials[entry.trial] = trial_from_directory(trial_file(self.directory, entry.trial).parent)
        if entry.event == "trial_started":
            self.activity = None  # the lines of this attempt come after it; those so far are of an earlier one
        self.journal.append(line)
        self.slots.apply(entry)
        if entry.event.startswith("run_"):
            self.interruption = entry if isinstance(entry, RunInterrupted) else None
        self.plan = extended(self.plan, [entry])

    def _listen(self) -> None:
        for trial, lines in itertools.groupby(self._feed.lines(), lambda line: line.trial):
            if self.activity is None or self.activity.trial != trial:
                self.activity = Activity(trial, self._throughput(trial))
            self.activity.hear(lines)
        running = self.slots.running
        if self.activity is not None and self.activity.trial != running:
            self.activity = None

    def _throughput(self, trial: str) -> MetricDefinition | None:
        planned = self.slots.planned.get(trial)
        return None if planned is None else throughput_of(self.plan.resolved[planned.cell][planned.arm])

    @property
    def state(self) -> State:
        """Whether somebody runs it, or why not."""
        if any(isinstance(line.entry, RunFinished) for line in self.journal[-1:]):
            return "finished"
        if self.process is not None:
            return "running"
        return "interrupted" if self.journal else "not started"

    @property
    def paused(self) -> bool:
        """Whether it waits between trials."""
        return self.live is not None and self.live.paused

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest is expected to take; None unless the run goes on."""
        if self.live is None or self.paused or (trial := self.live.trial) is None:
            return None
        spent = (datetime.now(UTC) - datetime.fromisoformat(trial.began)).total_seconds()
        return max(0.0, trial.left_s - spent)

    @property
    def logs(self) -> Path | None:
        """Where the running trial's logs grow: a directory of the run's own user, as anything could be named."""
        named = None if self.live is None or self.live.logs is None else Path(self.live.logs)
        try:
            owners = {0, (self.directory / JOURNAL).stat().st_uid}
            return named if named is not None and named.lstat().st_uid in owners and not named.is_symlink() else None
        except OSError:
            return None

    @property
    def fates(self) -> list[Slot]:
        """Every planned trial and what became of it. A trial that nobody runs any more does not run."""
        if self.process is None and self.state != "finished":
            self.slots.running, self.slots.out = "", set()
        known = (len(self.journal), self.process is None)
        if self._fates is None or self._fates[0] != known:
            self._fates = known, self.slots.slots()
        return self._fates[1]

    @property
    def record(self) -> Record:
        """All that was written so far."""
        return Record(directory=self.directory, plan=self.plan, journal=tuple(self.journal))

    @property
    def used(self) -> list[TrialRecord]:
        """Trials that estimates use so far."""
        valid = {slot.trial.id for slot in self.fates if slot.fate == "valid" and not slot.trial.diagnostic}
        return [trial for name, trial in self.trials.items() if name in valid]

    def looks(self) -> list[CellLooks]:
        """What every cell has shown after each of its blocks."""
        return cell_looks(self.plan, self.used)

    def analysis(self) -> Analysis:
        """Doubts about what there is so far; never a verdict: that is the finished record's.

        Raises:
            FairtrialError: the trials contradict the plan.
        """
        from fairtrial.analyse import analyse  # noqa: PLC0415 - a page is there before the analysis is

        record = self.record
        events: tuple[PlaceOpened | BlockVoided, ...] = (*record.places, *record.voided)
        return analyse(self.plan, list(self.trials.values()), finished=False, events=events)


def _plan(directory: Path) -> Plan:
    """Of a record, whether or not its journal has a line yet.

    Raises:
        RecordError: not a record, or a damaged one.
    """
    if (directory / JOURNAL).exists():
        return read_plan(directory)
    refuse_links(directory)
    try:
        return Plan.model_validate_json(foreign.read(directory / "plan.json", most_bytes=MOST_BYTES))
    except (OSError, ValueError, json.JSONDecodeError) as error:
        raise RecordError(
            f"{directory} is not a record: it has no plan.json that can be read",
            hint="give the directory of a run, as `fairtrial run` printed it",
        ) from error
