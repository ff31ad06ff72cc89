"""A host's side of a farm: a block run by the ordinary loop of trials, in a small record of its own."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fairtrial import record
from fairtrial.errors import AgentError, FairtrialError, InputError, PlaceError
from fairtrial.farm.orders import Failure, Order, Outcome
from fairtrial.places import PASSING, Disk
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.files import GIVEN
from fairtrial.record.models import PlaceOpened, PlannedTrial, TrialFinished, TrialRecord, TrialStarted
from fairtrial.run import Run
from fairtrial.study.resolved import Section
from fairtrial.wire.open_place import OpenPlace

BUSY: Final = "busy"
UNDOING_S: Final = 60.0
POLL_S: Final = 0.5
REFUSED: Final = "look at the permissions, the disk and the limits of the process that runs blocks"
# What a run knows of its places and need not find out again for the cell's next block on this host.
REMEMBERED: Final = ("fit", "prepared", "keys", "known")


class Quiet:
    """Keeps notes; nobody looks at a host of a farm."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `fairtrial.run.Progress`."""

    def phase(self, name: str) -> None:
        """See `fairtrial.run.Progress`."""

    def logs(self, directory: Path) -> None:
        """See `fairtrial.run.Progress`."""

    def load(self, line: ProgressLine) -> None:
        """See `fairtrial.run.Progress`."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""

    def paused(self, *, waits: bool) -> None:
        """See `fairtrial.run.Progress`."""

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self.notes.append(text)


class BlockRun(Run):
    """Runs one block and no more: whether a lost trial is made up for, and where, is for the farm to say.

    Attributes:
        mistaken: the trial in whose levels the study is mistaken; empty if it is not.
    """

    mistaken = ""

    @contextlib.contextmanager
    def _open(self, place: Section, disk: Disk = PASSING) -> Iterator[OpenPlace]:
        """Waits for a place that is still undoing what a killed process of the farm had changed."""
        deadline = time.monotonic() + UNDOING_S
        with contextlib.ExitStack() as stack:
            opened: OpenPlace | None = None
            while opened is None:
                try:
                    opened = stack.enter_context(super()._open(place, disk))
                except AgentError as error:
                    if error.code != BUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(POLL_S)
            yield opened

    @contextlib.contextmanager
    def _mistakes_located(self, trial: PlannedTrial) -> Iterator[None]:
        """Where it was written is for the farm to say, which has the study."""
        try:
            yield
        except InputError:
            self.mistaken = self.mistaken or trial.id
            raise

    def _mirrored(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()  # nobody looks at a host of a farm

    def _repair(self) -> None:
        """A block that has lost a trial is of no use."""

    def _next(self) -> PlannedTrial | None:
        return self.schedule.next_trial() if all(self.schedule.finished.values()) else None


@dataclass
class Station:
    """What a process of a host keeps from block to block of one run.

    Attributes:
        progress: makes what a block's trials tell.
        begin: called before each block.
    """

    host: str
    progress: Callable[[], Quiet] = Quiet
    begin: Callable[[Order], None] | None = None
    run: str = ""
    examined: set[Section] = field(default_factory=set)
    known: dict[str, dict[str, Any]] = field(default_factory=dict)  # by cell: others need other things and data

    def serve(self, order: Order, directory: Path) -> Outcome:
        """Runs a block; the directories of its trials are then below `directory` / run / `trials`.

        Args:
            order: the block.
            directory: empty, on this host.

        Raises:
            KeyboardInterrupt: the host shall stop; what it had changed is undone.
        """
        if order.run != self.run:
            self.run, self.examined, self.known = order.run, set(), {}
        progress = self.progress()
        writer = record.create(directory / order.run, plan=order.plan, sources={GIVEN: ""})
        failure: Failure | None = None
        run: BlockRun | None = None
        try:
            if self.begin is not None:
                self.begin(order)
            known = self.known.get(order.cell, {})
            run = BlockRun(writer=writer, progress=progress, examined=self.examined, **known)
            run.started |= {(order.cell, arm) for arm in order.started}
            self.known[order.cell] = {name: getattr(run, name) for name in REMEMBERED}
            run.execute()
        except (FairtrialError, OSError) as error:
            said = error if isinstance(error, FairtrialError) else PlaceError(str(error), hint=REFUSED)
            failure = Failure.of(said, trial="" if run is None else run.mistaken)
            self.examined, self.known = set(), {}  # a place that failed is looked at anew
        finally:
            writer.close()
        written = record.read(writer.directory)
        return Outcome(
            host=self.host,
            trials=list(written.committed),
            finished=[event for event in written.events if isinstance(event, TrialFinished)],
            places=[
                event.model_copy(update={"host": self.host})
                for event in written.events
                if isinstance(event, PlaceOpened)
            ],
            notes=progress.notes,
            failure=failure,
            begun=any(isinstance(event, TrialStarted) for event in written.events),
        )


def trials_below(directory: Path, run: str) -> Path:
    """Where the directories of a block's trials are."""
    return directory / run / "trials"


def fresh(directory: Path) -> Path:
    """An empty directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory
