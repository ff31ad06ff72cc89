"""Reading a record, and checking that it is still what was written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.record import consistency, journal
from fairtrial.record.events import Event, JournalLine, RunFinished, RunStarted
from fairtrial.record.files import GIVEN, MERGED, digest, relative_files
from fairtrial.record.models import (
    FORMAT_VERSION,
    BlockAdded,
    BlockVoided,
    Extended,
    FileName,
    Finding,
    FormatVersion,
    Grade,
    PlaceOpened,
    Plan,
    PlannedTrial,
    TrialFinished,
    TrialRecord,
    TrialStarted,
)
from fairtrial.study.resolved import Section

PLACES: Final = "places.json"
MOST_BYTES: Final = 256 << 20  # of one document: a plan of a hundred thousand trials has a tenth
GRADES: Final[tuple[Grade, ...]] = ("unknown", "fine", "caution", "unfit")  # what was seen says more than what was not

Model = TypeVar("Model", bound=BaseModel)
_VERSION: Final = TypeAdapter(FormatVersion)
_NAME: Final = TypeAdapter(FileName)


@dataclass(frozen=True)
class Record:
    """A run's directory, read. Reads files when asked, never writes.

    Attributes:
        directory: the run's directory.
        plan: plan.json, with what the run was extended by.
        journal: every whole line of journal.jsonl.
    """

    directory: Path
    plan: Plan
    journal: tuple[JournalLine, ...]

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The journal's entries, in order."""
        return tuple(line.entry for line in self.journal)

    @property
    def finished(self) -> bool:
        """Whether the run reached its planned end."""
        return bool(self.journal) and any(isinstance(event, RunFinished) for event in self.events)

    @property
    def measured(self) -> bool:
        """Whether all that estimates use was run: a finished run, or one that has come to its diagnostic trials."""
        return self.finished or any(isinstance(event, TrialStarted) and event.trial.diagnostic for event in self.events)

    @cached_property
    def committed(self) -> tuple[TrialRecord, ...]:
        """Every committed trial, valid or not, diagnostic or not, in the order they were run."""
        names = [event.trial for event in self.events if isinstance(event, TrialFinished)]
        planned = {each.id: each for each in self._every_planned}
        return tuple(self._committed(name, planned.get(name)) for name in names)

    def _committed(self, name: str, planned: PlannedTrial | None) -> TrialRecord:
        path = self.trial_directory(name)
        trial = trial_from_directory(path)
        consistency.require_trial(self.plan, trial, planned=planned, path=path)
        return trial

    @cached_property
    def trials(self) -> tuple[TrialRecord, ...]:
        """Every committed trial that estimates may use if it is valid, in the order they were run."""
        return tuple(trial for trial in self.committed if not trial.trial.diagnostic)

    @cached_property
    def diagnostics(self) -> tuple[TrialRecord, ...]:
        """Every committed diagnostic trial, in the order they were run: none is part of any estimate."""
        return tuple(trial for trial in self.committed if trial.trial.diagnostic)

    @property
    def planned(self) -> tuple[PlannedTrial, ...]:
        """Every trial planned at the start or added since."""
        added = [trial for event in self.events if isinstance(event, BlockAdded) for trial in event.trials]
        return (*self.plan.trials, *added)

    @property
    def _every_planned(self) -> tuple[PlannedTrial, ...]:
        return (*self.planned, *self.plan.diagnostics)

    @property
    def voided(self) -> tuple[BlockVoided, ...]:
        """Blocks that lost a trial, or were lost with a host."""
        return tuple(event for event in self.events if isinstance(event, BlockVoided))

    @cached_property
    def voided_blocks(self) -> frozenset[tuple[str, int]]:
        """Of each block that the journal calls void, its cell and number."""
        return frozenset((event.cell, event.block) for event in self.voided)

    @property
    def added(self) -> tuple[BlockAdded, ...]:
        """Blocks that replaced voided ones."""
        return tuple(event for event in self.events if isinstance(event, BlockAdded))

    @cached_property
    def opened(self) -> dict[tuple[str, Section], PlaceOpened]:
        """Every place, by host of a farm and as the study names it, as it was when it was last opened."""
        return _opened(self.events)

    @property
    def places(self) -> tuple[PlaceOpened, ...]:
        """Every place as it was when it was last opened, each finding as it was when it was worst."""
        return tuple(self.opened.values())

    def trial_directory(self, trial_id: str) -> Path:
        """Where a committed trial's raw files are."""
        return self.directory / "trials" / trial_id


def _opened(events: Iterable[Event]) -> dict[tuple[str, Section], PlaceOpened]:
    known: dict[tuple[str, Section], PlaceOpened] = {}
    for event in events:
        if isinstance(event, PlaceOpened):
            note_opened(known, event)
    return known


def note_opened(known: dict[tuple[str, Section], PlaceOpened], event: PlaceOpened) -> None:
    """Takes in that a place was opened; each finding stays as it was when it was worst."""
    earlier = known.get((event.host, event.place))
    findings = worst([*(earlier.findings if earlier else []), *event.findings])
    known[event.host, event.place] = event.model_copy(update={"findings": findings})


def worst(findings: Iterable[Finding]) -> list[Finding]:
    """One finding of each name, the worst; of equal ones the first."""
    kept: dict[tuple[str, bool], Finding] = {}
    for finding in findings:
        before = kept.setdefault((finding.name, finding.of_host), finding)
        if GRADES.index(finding.grade) > GRADES.index(before.grade):
            kept[finding.name, finding.of_host] = finding
    return list(kept.values())


def read(directory: Path) -> Record:
    """Reads a record.

    Raises:
        RecordError: not a record, a damaged one, or one of a format this version does not know.
    """
    written = read_plan(directory)
    lines = tuple(journal.lines(directory / journal.NAME))
    plan = extended(written, (line.entry for line in lines))
    found = Record(directory=directory, plan=plan, journal=lines)
    consistency.require_plan(plan, directory)
    consistency.require_journal(plan, found.events, directory / journal.NAME)
    return found


def read_plan(directory: Path) -> Plan:
    """Reads a record's plan as it was written, without what the run was extended by.

    Raises:
        RecordError: as `read`.
    """
    plan_path = directory / "plan.json"
    refuse_links(directory)
    if not plan_path.exists():
        raise RecordError(
            f"{directory} is not a record: it has no plan.json",
            hint="give the directory of a run, as `fairtrial run` printed it",
        )
    return _load(Plan, plan_path)


def extended(plan: Plan, events: Iterable[Event]) -> Plan:
    """A plan with the blocks that were asked for while it ran; those it already has are not added twice."""
    for event in events:
        if isinstance(event, Extended) and event not in plan.extensions:
            each_s = plan.duration_s / max(1, len(plan.trials))
            design = plan.design
            plan = plan.model_copy(
                update={
                    "design": design.model_copy(update={"blocks": design.blocks + event.blocks}),
                    "trials": [*plan.trials, *event.trials],
                    "duration_s": plan.duration_s + each_s * len(event.trials),
                    "extensions": [*plan.extensions, event],
                }
            )
    return plan


def refuse_links(directory: Path) -> None:
    """Refuses a record that points out of itself: its files would be read, and its report written, elsewhere.

    So would pipes and devices, which need not have an end.

    Raises:
        RecordError: something in the record is neither a regular file nor a directory.
    """
    for root, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(root) / name
            kind = _irregular(path)
            if kind is not None:
                raise RecordError(
                    f"{path} is {kind}: a record contains only files and directories",
                    hint="replace it with a regular file, a link with its target, if you trust the source of the "
                    "record",
                )


def _irregular(path: Path) -> str | None:
    """What stands there, if it is neither a regular file nor a directory."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a run that goes on takes its unfinished files away
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"


def require_version(path: Path, version: int | None) -> None:
    """Refuses a file of a format that this version does not know, for readers that do without the models.

    Raises:
        RecordError: it is of another version.
    """
    try:
        _VERSION.validate_python(FORMAT_VERSION if version is None else version)
    except ValidationError as error:
        raise _unreadable(path, error, field="format_version") from error


def trial_file(directory: Path, trial: str) -> Path:
    """The trial.json of a trial that a record's journal names.

    Raises:
        RecordError: the name would lead out of the record.
    """
    try:
        return directory / "trials" / _NAME.validate_python(trial) / "trial.json"
    except ValidationError as error:
        raise _unreadable(directory / journal.NAME, error) from error


def trial_from_directory(directory: Path) -> TrialRecord:
    """Reads one trial's trial.json.

    Raises:
        RecordError: missing, cut or changed.
    """
    return _load(TrialRecord, directory / "trial.json")


def _load(model: type[Model], path: Path) -> Model:
    try:
        return model.model_validate_json(foreign.read(path, most_bytes=MOST_BYTES))
    except FileNotFoundError as error:
        raise RecordError(f"{path} is missing", hint="restore the record from a copy") from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}", hint="restore the record from a copy") from error
    except ValidationError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: ValidationError, *, field: str = "") -> RecordError:
    """What is wrong first: an unknown version explains everything else. `field`: of an error that knows none itself."""
    problems = sorted(error.errors(), key=lambda problem: problem["loc"] != ("format_version",))
    at = ".".join(map(str, problems[0]["loc"])) or field
    newer = at == "format_version"
    what = problems[0]["msg"].removeprefix("Value error, ")
    return RecordError(
        f"{path} cannot be read: {what}{f' at {at}' if at else ''} ({len(problems)} problems)",
        hint="read the record with the version of fairtrial that wrote it, or a newer one"
        if newer
        else "the file was truncated or changed after it was written, or comes from a different version of fairtrial",
    )


def verify_hashes(record: Record) -> list[str]:
    """Compares every file with the hash the journal holds; if they agree, trials' validity with the journal's.

    Returns:
        One sentence per file that is missing, changed or not in the journal, and per trial whose validity is not the
        journal's; empty if all is as written.

    Raises:
        RecordError: a trial.json with the right hash is not one.
    """
    mismatches: list[str] = []
    if record.events and not any(isinstance(event, RunStarted) for event in record.events):
        mismatches.append(f"{journal.NAME}: run_started is missing; nothing says what plan.json and {GIVEN} were")
    for event in record.events:
        if isinstance(event, RunStarted):
            hashes = {"plan.json": event.plan_sha256, GIVEN: event.study_sha256, MERGED: event.merged_sha256}
            for name, expected in hashes.items():
                if expected:  # older versions noted two of them
                    mismatches += _compare(record.directory / name, expected, name)
        if isinstance(event, TrialFinished):
            directory = record.trial_directory(event.trial)
            for name, expected in event.files.items():
                mismatches += _compare(directory / name, expected, f"trials/{event.trial}/{name}")
            extra = set(relative_files(directory)) - set(event.files) if directory.exists() else set()
            mismatches += [f"trials/{event.trial}/{name}: not in the journal" for name in sorted(extra)]
    mismatches += _places(record) + _unknown_trials(record)
    return mismatches or _validity(record)


def _validity(record: Record) -> list[str]:
    """Estimates go by what a trial says of itself, blocks are void by what the journal says."""
    told = [event for event in record.events if isinstance(event, TrialFinished)]
    return [
        f"trials/{event.trial}/trial.json: {_words(trial)}, but the journal says {_words(event)}"
        for trial, event in zip(record.committed, told, strict=True)
        if (trial.valid, trial.invalid_reason) != (event.valid, event.invalid_reason)
    ]


def _words(of: TrialRecord | TrialFinished) -> str:
    return "valid" if of.valid and not of.invalid_reason else f"invalid ({of.invalid_reason})"


def _places(record: Record) -> list[str]:
    """A run that did not end since may have been killed before it wrote its file anew: a farm does so when it ends."""
    path, known = record.directory / PLACES, record.places
    if not known or foreign.holds(path, places_json(known)):
        return []
    last = max(number for number, event in enumerate(record.events) if isinstance(event, PlaceOpened))
    if not any(isinstance(event, RunFinished) for event in record.events[last:]):
        earlier = _opened(record.events[:last]).values()
        is_behind = foreign.holds(path, places_json(earlier)) if earlier else not path.exists()
        if is_behind or any(each.host for each in known):
            return []
    return [f"{PLACES}: {'changed since it was written' if path.exists() else 'missing'}; the journal has the original"]


def places_json(places: Iterable[PlaceOpened]) -> bytes:
    """The journal's openings of places as a file of their own, for people: places.json."""
    openings = [event.model_dump(mode="json", exclude={"event"}) for event in places]
    return json.dumps(openings, indent=1, sort_keys=True).encode() + b"\n"


def _unknown_trials(record: Record) -> list[str]:
    known = {event.trial for event in record.events if isinstance(event, TrialFinished)}
    directory = record.directory / "trials"
    present = (
        {path.name for path in directory.iterdir() if not path.name.startswith(".")} if directory.is_dir() else set()
    )
    return [f"trials/{name}: not in the journal; --resume adds complete trials" for name in sorted(present - known)]


def _compare(path: Path, expected: str, name: str) -> list[str]:
    try:
        with foreign.opened(path) as file:
            actual = digest(file)
    except FileNotFoundError:
        return [f"{name}: missing"]
    except OSError as error:
        return [f"{name}: {error.strerror}"]
    if actual != expected:
        return [f"{name}: changed since it was written (expected SHA-256 {expected[:12]}…, found {actual[:12]}…)"]
    return []
