"""One record in a line, from its plan, its journal and the report that stands beside them. Analyses nothing."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from fairtrial.analyse.models import Analysis
from fairtrial.errors import FairtrialError, RecordError
from fairtrial.live.slots import Slots
from fairtrial.record import journal
from fairtrial.record.events import JournalLine, RunFinished, RunStarted
from fairtrial.record.models import FileName, PlaceOpened, Plan, TrialFinished
from fairtrial.record.reader import trial_file, trial_from_directory
from fairtrial.report import numbers, tables
from fairtrial.serve.overview.run_summary import SEVERITY, RunSummary, VerdictCount
from fairtrial.words import counted, cut, first_problem, printable

PLAN: Final = "plan.json"
REPORT: Final = "report.json"
MOST_BYTES: Final = 1 << 27  # of a file that is read for one line
VERSION: Final = re.compile(r"\d+(\.\d+)+[\w.+~-]*")
MOST_SEARCHED: Final = 200  # characters, as a search among digits takes the square of their number
MOST_CHARACTERS: Final = 40  # of a version without a number
MOST_REASON: Final = 240
WRITE_IT: Final = "write it with: fairtrial report"
_NAME: Final = TypeAdapter(FileName)


class _Fact(BaseModel):
    label: str
    value: str


class _Behind(BaseModel):
    system: list[_Fact] = []


class StoredReport(BaseModel):
    """What is read of report.json."""

    analysis: Analysis
    record: _Behind


def summarise(directory: Path) -> RunSummary:
    """A run in a line; of a damaged one the reason."""
    name = directory.name
    try:
        _NAME.validate_python(name)
        return _summary(directory)
    except ValidationError:
        return RunSummary(name=name, reason="the directory's name cannot stand in an address")
    except FairtrialError as error:
        return RunSummary(name=name, reason=_briefly(error, directory))
    except OSError as error:
        return RunSummary(name=name, reason=_briefly(error, directory))
    except (LookupError, TypeError, ValueError) as error:  # files that are each valid and do not belong together
        return RunSummary(name=name, reason=f"its files contradict each other: {_briefly(error, directory)}")


def _summary(directory: Path) -> RunSummary:
    plan = _plan(directory)
    path = directory / journal.NAME
    lines = tuple(journal.lines(path)) if _is_there(path) else ()
    slots = Slots(plan)
    for line in lines:
        slots.apply(line.entry)
    every = slots.slots()
    done = sum(slot.trial.id in slots.finished for slot in every)
    owed = sum(slot.fate not in {"stopped", "void"} or slot.trial.id in slots.finished for slot in every)
    finished = bool(lines) and isinstance(lines[-1].entry, RunFinished)
    places = [line.entry for line in lines if isinstance(line.entry, PlaceOpened)]
    kinds = (trial.place.kind for arms in plan.resolved.values() for trial in arms.values())
    known = RunSummary(
        name=directory.name,
        study=printable(plan.study),
        size=printable(plan.size or ""),
        started=next((line.time for line in lines if isinstance(line.entry, RunStarted)), ""),
        places=_joined(opened.place.kind for opened in places) or _joined(kinds),
        kernels=printable(_joined(str(opened.facts.get("kernel", "")) for opened in places)),
        state="finished" if finished else "unfinished" if lines else "not started",
        done=done,
        planned=owed,
    )
    return _reported(known, directory, plan, lines=lines)


def _reported(known: RunSummary, directory: Path, plan: Plan, *, lines: Sequence[JournalLine]) -> RunSummary:
    """With what the report beside the record says: no verdict of an unfinished run."""
    systems = _joined(trial.system.kind for arms in plan.resolved.values() for trial in arms.values())
    try:
        report = stored_report(directory)
    except RecordError as error:
        return replace(known, versions=systems, reason=_briefly(error, directory))
    if report is None:
        missing = f"it has no report; {WRITE_IT} {directory.name}" if known.state == "finished" else ""
        versions = _versions(systems, _of_trials(directory, lines))
        return replace(known, versions=versions, reason=printable(missing))
    versions = _versions(systems, (fact.value for fact in report.record.system if fact.label == "version"))
    if known.state != "finished":
        return replace(known, versions=versions)
    return _judged(replace(known, versions=versions), report.analysis)


def _judged(known: RunSummary, analysis: Analysis) -> RunSummary:
    """With what an analysis says."""
    every = tables.metric_tables(analysis)
    primary = [(table, row) for table in every if table.role == "primary" for row in table.rows]
    found: Counter[tuple[str, str]] = Counter(
        (row.comparison.verdict, tables.word(row.comparison.verdict, table.definition)) for table, row in primary
    )
    absent = sum(len(tables.without_values(analysis, table)) for table in every if table.role == "primary")
    if absent:
        found["none", "no verdict"] += absent
    ordered = sorted(found.items(), key=lambda each: SEVERITY.index(each[0][0]))
    guardrails = (row.comparison.guardrail for table in every for row in table.rows)
    judged = replace(
        known,
        verdicts=tuple(VerdictCount(kind, word, count) for (kind, word), count in ordered),
        breached=sum(each is not None and each.outcome == "breached" for each in guardrails),
        comparisons=len(primary) + absent,
    )
    if not primary:
        return judged
    table, row = primary[0]
    change, interval = tables.change(row.comparison, table.scale)
    where = f" · {tables.cell_label(row.levels)}" if row.levels else ""
    return replace(
        judged,
        metric=printable(table.definition.label),
        compared=printable(f"{row.comparison.arm} / {row.comparison.baseline}{where}"),
        ratio=row.comparison.ratio.estimate,
        change=change,
        interval="" if interval == numbers.ABSENT else interval,
    )


def stored_report(directory: Path) -> StoredReport | None:
    """The report that stands in a record; None without one.

    Raises:
        RecordError: it cannot be read, or a different version wrote it.
    """
    path = directory / "report" / REPORT
    if path.parent.is_symlink():
        raise _irregular(path.parent)
    if not _is_there(path):
        return None
    try:
        return StoredReport.model_validate_json(path.read_bytes())
    except ValidationError as error:
        hint = "a different version of fairtrial wrote it, or it was changed"
        raise RecordError(
            f"{path} cannot be read: {first_problem(error)}; {hint}; {WRITE_IT} {directory.name}", hint=hint
        ) from error


def _plan(directory: Path) -> Plan:
    path = directory / PLAN
    if not _is_there(path):
        raise RecordError(f"{PLAN} is missing", hint="restore the record from a copy")
    try:
        return Plan.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = first_problem(error).removeprefix(": ")
        raise RecordError(
            f"{PLAN} cannot be read: {first} ({counted(error.error_count(), 'problem')})",
            hint="the file was truncated or changed after it was written",
        ) from error


def _is_there(path: Path) -> bool:
    """Whether a file is there.

    Raises:
        RecordError: it is a link, a pipe or a device, or far too large.
    """
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(seen.st_mode):
        raise _irregular(path)
    if seen.st_size > MOST_BYTES:
        raise RecordError(f"{path} is too large to be listed ({seen.st_size:,} bytes)", hint="look at it by itself")
    return True


def _briefly(error: Exception, directory: Path) -> str:
    """What is wrong, in a line of a list; the run's own page says more."""
    first, *_more = str(error).replace(f"{directory}/", "").splitlines() or [type(error).__name__]
    return cut(printable(first), MOST_REASON)


def _irregular(path: Path) -> RecordError:
    return RecordError(
        f"{path} is not a regular file: a record contains only files and directories",
        hint="replace it with a regular file, if you trust the source of the record",
    )


def _of_trials(directory: Path, lines: Iterable[JournalLine]) -> Iterable[str]:
    """Versions as the first finished trial of each arm read them back."""
    first: dict[str, str] = {}
    for line in lines:
        if isinstance(line.entry, TrialFinished):
            first.setdefault(line.entry.trial.rpartition(".")[2], line.entry.trial)
    for trial in first.values():
        path = trial_file(directory, trial)
        if not path.parent.is_symlink() and _is_there(path):
            yield trial_from_directory(path.parent).system_facts.get("version", "")


def _versions(systems: str, versions: Iterable[str]) -> str:
    """`mariadb 10.11.19-MariaDB`: the number alone of what a program says of itself, where there is one."""
    each = (part[:MOST_SEARCHED] for text in versions for part in text.split("; "))
    numbers_found = (found.group() if (found := VERSION.search(part)) else cut(part, MOST_CHARACTERS) for part in each)
    return printable(" ".join(part for part in (systems, _joined(numbers_found)) if part))


def _joined(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(word for word in words if word))
