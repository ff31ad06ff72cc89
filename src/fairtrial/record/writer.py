"""Writing a record: trials appear whole, by rename; the journal says so right after."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.errors import InputError, PlaceError, Problem, RecordError
from fairtrial.record.events import KEPT_VARIABLE, Event, RunResumed, RunStarted
from fairtrial.record.files import (
    GIVEN,
    MERGED,
    PARTIAL_PREFIX,
    disk_explained,
    hashes,
    make_directory,
    sha256,
    sync_directory,
    sync_tree,
    write_synced,
)
from fairtrial.record.journal import NAME as JOURNAL
from fairtrial.record.journal import Journal, JournalReader
from fairtrial.record.models import PlaceOpened, Plan, TrialFinished, TrialRecord
from fairtrial.record.reader import (
    PLACES,
    Record,
    extended,
    note_opened,
    places_json,
    read,
    refuse_links,
    trial_from_directory,
)
from fairtrial.study.resolved import Section

MOST_OF_A_NAME = 99  # runs that begin in one second; two digits, so that names sort by time


@dataclass(frozen=True)
class Changes:
    """What came to a record since it was asked last; the first time, all that it has.

    Attributes:
        plan: with all that the run was extended by.
        trials: that were committed, in that order, diagnostic ones left out.
    """

    plan: Plan
    events: tuple[Event, ...]
    trials: tuple[TrialRecord, ...]


class Writer:
    """The record of a run that is being written.

    Attributes:
        directory: the run's directory.
        plan: as stored.
    """

    def __init__(
        self, directory: Path, *, plan: Plan, journal: Journal | None = None, opened: Iterable[PlaceOpened] = ()
    ) -> None:
        self.directory = directory
        self.plan = plan
        self._trials = directory / "trials"
        self._journal = journal or Journal(directory / JOURNAL)
        self._reader = JournalReader(directory / JOURNAL)
        self._extended = plan
        self._opened: dict[tuple[str, Section], PlaceOpened] = {}
        for event in opened:
            note_opened(self._opened, event)

    def append(self, entry: Event) -> None:
        """Appends an event to the journal, durably."""
        self._journal.append(entry)
        if isinstance(entry, PlaceOpened):
            note_opened(self._opened, entry)

    def begin(self, trial_id: str) -> Path:
        """An empty directory to collect one trial in, not yet part of the record."""
        directory = self._trials / f"{PARTIAL_PREFIX}{trial_id}"
        shutil.rmtree(directory, ignore_errors=True)
        with disk_explained(self.directory):
            (directory / "log").mkdir(parents=True)
        return directory

    def commit(self, trial: TrialRecord) -> None:
        """Makes the directory that `begin` gave part of the record, with its trial.json. Durable on return."""
        identity = trial.trial.id
        partial = self._trials / f"{PARTIAL_PREFIX}{identity}"
        with disk_explained(self.directory):
            (partial / "trial.json").write_text(trial.model_dump_json(indent=1) + "\n", encoding="utf-8")
            sync_tree(partial)
            files = hashes(partial)
            partial.rename(self._trials / identity)
            sync_directory(self._trials)
        self.append(TrialFinished(trial=identity, valid=trial.valid, invalid_reason=trial.invalid_reason, files=files))

    def abandon(self, trial_id: str) -> None:
        """Throws away what `begin` gave: the trial did not happen."""
        shutil.rmtree(self._trials / f"{PARTIAL_PREFIX}{trial_id}", ignore_errors=True)

    def note_place(self, opened: PlaceOpened) -> None:
        """Journals that a place was opened, and writes places.json anew."""
        self.append(opened)
        self.write_places()

    def opened(self, place: Section) -> PlaceOpened | None:
        """How a place of the whole run, not of a farm's host, was found last."""
        return self._opened.get(("", place))

    def write_places(self) -> None:
        """Writes places.json as the journal has it."""
        with disk_explained(self.directory):
            write_synced(self.directory / PLACES, places_json(self._opened.values()))

    def record(self) -> Record:
        """What has been written so far, as a reader sees it: all of it is read."""
        return read(self.directory)

    def changes(self) -> Changes:
        """What is new; what was read before is neither read again nor kept."""
        events = tuple(line.entry for line in self._reader.lines())
        self._extended = extended(self._extended, events)
        names = [event.trial for event in events if isinstance(event, TrialFinished)]
        trials = (trial_from_directory(self._trials / name) for name in names)
        return Changes(self._extended, events, tuple(trial for trial in trials if not trial.trial.diagnostic))

    def close(self) -> None:
        """Releases the run's lock."""
        self._journal.close()

    def _adopt_unjournalled(self, known: Collection[str]) -> None:
        """A kill can fall between a trial's rename and its journal line; such a trial is whole and is kept."""
        for directory in sorted(self._trials.iterdir()):
            if directory.name.startswith(PARTIAL_PREFIX):
                shutil.rmtree(directory, ignore_errors=True)
            elif directory.name not in known:
                trial = trial_from_directory(directory)
                self.append(
                    TrialFinished(
                        trial=trial.trial.id,
                        valid=trial.valid,
                        invalid_reason=trial.invalid_reason,
                        files=hashes(directory),
                    )
                )


def create(directory: Path, *, plan: Plan, sources: Mapping[str, str], numbered: bool = False) -> Writer:
    """Starts a record.

    Args:
        directory: must not exist.
        plan: stored as plan.json.
        sources: file name → text of the study as given; its own file is called `study.yaml`.
        numbered: where another run has that name, this one gets it with the first free number behind it.

    Raises:
        PlaceError: the directory exists or cannot be written.
    """
    with disk_explained(directory):
        try:
            directory = _made(directory, most=MOST_OF_A_NAME if numbered else 1)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise PlaceError(f"{directory} cannot be created: {error}", hint="choose a different --output") from error
        for name, text in sources.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            write_synced(target, text.encode())
        plan_json = plan.model_dump_json(indent=1).encode() + b"\n"
        write_synced(directory / "plan.json", plan_json)
        sync_directory(directory.parent)
        writer = Writer(directory, plan=plan)
        writer.append(_run_started(directory))
    return writer


def _made(directory: Path, *, most: int) -> Path:
    """Makes the first of a record's possible names that nobody has: mkdir(2) tells of two processes only one so."""
    make_directory(directory.parent)
    for number in range(1, most + 1):
        numbered = directory if number == 1 else directory.with_name(f"{directory.name}-{number:02}")
        try:
            numbered.mkdir()
        except FileExistsError:
            continue
        (numbered / "trials").mkdir()
        return numbered
    raise PlaceError(f"{directory} already exists", hint="continue with --resume, or choose a different --output")


def _run_started(directory: Path) -> RunStarted:
    merged = directory / MERGED
    return RunStarted(
        study_sha256=sha256(directory / GIVEN),
        plan_sha256=sha256(directory / "plan.json"),
        merged_sha256=sha256(merged) if merged.exists() else "",
        environment=os.environ.get(KEPT_VARIABLE, ""),
        host=socket.gethostname(),
        process=os.getpid(),
    )


def resume(directory: Path) -> Writer:
    """Takes a record up again: cuts a torn journal line, keeps whole trials, removes unfinished ones.

    Raises:
        RecordError: not a record, a damaged one, one whose plan was changed, or one that another process finished
            just now.
        PlaceError: another process is running it.
        InputError: its trials would see other variables than those before them.
    """
    refuse_links(directory)
    with disk_explained(directory):
        (directory / JOURNAL).touch()  # a kill can fall between plan.json and the journal's first line
        before = read(directory)
        journal = Journal(directory / JOURNAL)
    try:
        record = read(directory)  # again: until the lock was ours, another process may have committed trials
        if not before.finished:
            _require_unfinished(record)
        _require_same_plan(record)
        _require_same_variables(record)
        writer = Writer(directory, plan=record.plan, journal=journal, opened=record.places)
        if not record.journal:
            writer.append(_run_started(directory))
        if record.places:
            writer.write_places()  # a kill can fall between an opening's journal line and the file
        known = {event.trial for event in record.events if isinstance(event, TrialFinished)}
        writer._adopt_unjournalled(known)  # noqa: SLF001 - the same module's class
        writer.append(RunResumed(host=socket.gethostname(), process=os.getpid()))
    except BaseException:
        journal.close()  # nobody else would: the run would stay locked as long as this process lives
        raise
    return writer


def _require_same_plan(record: Record) -> None:
    begun = next((event for event in record.events if isinstance(event, RunStarted)), None)
    path = record.directory / "plan.json"
    if begun is not None and sha256(path) != begun.plan_sha256:
        raise RecordError(
            f"{path} was changed since the run began",
            hint="restore it from a copy, or start a new run: a plan stays as it is once trials have run",
        )


def _require_unfinished(record: Record) -> None:
    if record.finished:
        directory = record.directory
        raise RecordError(f"{directory} is finished", hint=f"`fairtrial report {directory}` rewrites its report")


def _require_same_variables(record: Record) -> None:
    now = os.environ.get(KEPT_VARIABLE, "")
    for event in record.events:
        if isinstance(event, RunStarted) and event.environment != now:
            began, is_now = (shlex.quote(names) if names else "not set" for names in (event.environment, now))
            problem = Problem(f"{record.directory} began with {began}, and it is {is_now} now", KEPT_VARIABLE)
            again = f"export {KEPT_VARIABLE}={began}" if event.environment else f"unset {KEPT_VARIABLE}"
            raise InputError([problem], hint=f"trials would see other variables than before: `{again}`, then resume")
