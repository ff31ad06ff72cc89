"""Writing a record: trials appear whole, by rename; the journal says so right after."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from fairtrial.errors import PlaceError
from fairtrial.record.events import Event, JournalLine, RunResumed, RunStarted
from fairtrial.record.files import full_disk_explained, hashes, sha256, sync_directory, sync_tree, write_synced
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

PARTIAL_PREFIX = ".partial-"  # dot: no reader takes an unfinished trial for a trial
MOST_OF_A_NAME = 99  # runs that begin in one second; two digits, so that names sort by time


class Writer:
    """The record of a run that is being written.

    Attributes:
        directory: the run's directory.
        plan: as stored.
    """

    def __init__(self, directory: Path, *, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan
        self._trials = directory / "trials"
        self._journal = Journal(directory / JOURNAL)
        self._reader = JournalReader(directory / JOURNAL)
        self._lines: list[JournalLine] = []
        self._opened: dict[tuple[str, Section], PlaceOpened] = {}
        self._extended = plan
        self._known: dict[str, TrialRecord] = {}

    def append(self, entry: Event) -> None:
        """Appends an event to the journal, durably."""
        self._journal.append(entry)

    def begin(self, trial_id: str) -> Path:
        """An empty directory to collect one trial in, not yet part of the record."""
        directory = self._trials / f"{PARTIAL_PREFIX}{trial_id}"
        shutil.rmtree(directory, ignore_errors=True)
        with full_disk_explained(self.directory):
            (directory / "log").mkdir(parents=True)
        return directory

    def commit(self, trial: TrialRecord) -> None:
        """Makes the directory that `begin` gave part of the record, with its trial.json. Durable on return."""
        identity = trial.trial.id
        partial = self._trials / f"{PARTIAL_PREFIX}{identity}"
        with full_disk_explained(self.directory):
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

    def write_places(self) -> None:
        """Writes places.json as the journal has it."""
        self._catch_up()
        with full_disk_explained(self.directory):
            write_synced(self.directory / PLACES, places_json(self._opened.values()))

    def record(self) -> Record:
        """What has been written so far, as a reader sees it; what was read before is not read again."""
        self._catch_up()
        return Record(self.directory, self._extended, tuple(self._lines), known=self._known)

    def _catch_up(self) -> None:
        new = list(self._reader.lines())
        self._lines += new
        self._extended = extended(self._extended, (line.entry for line in new))
        for line in new:
            if isinstance(line.entry, PlaceOpened):
                note_opened(self._opened, line.entry)

    def close(self) -> None:
        """Releases the run's lock."""
        self._journal.close()

    def _adopt_unjournalled(self) -> None:
        """A kill can fall between a trial's rename and its journal line; such a trial is whole and is kept."""
        known = {entry.trial for entry in self.record().events if isinstance(entry, TrialFinished)}
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
    with full_disk_explained(directory):
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
    directory.parent.mkdir(parents=True, exist_ok=True)
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
    return RunStarted(
        study_sha256=sha256(directory / "study.yaml"),
        plan_sha256=sha256(directory / "plan.json"),
        host=socket.gethostname(),
        process=os.getpid(),
    )


def resume(directory: Path) -> Writer:
    """Takes a record up again: cuts a torn journal line, keeps whole trials, removes unfinished ones.

    Raises:
        RecordError: not a record, or a damaged one.
        PlaceError: another process is running it.
    """
    refuse_links(directory)
    (directory / JOURNAL).touch()  # a kill can fall between plan.json and the journal's first line
    record = read(directory)
    writer = Writer(directory, plan=record.plan)
    try:
        if not record.journal:
            writer.append(_run_started(directory))
        writer._adopt_unjournalled()  # noqa: SLF001 - the same module's class
        writer.append(RunResumed(host=socket.gethostname(), process=os.getpid()))
    except BaseException:
        writer.close()  # nobody else would: the run would stay locked as long as this process lives
        raise
    return writer
