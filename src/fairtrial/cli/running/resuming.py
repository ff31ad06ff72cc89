"""Which run `--resume` means, and which directory a run gets: the two must agree."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, PlaceError, Problem, RecordError
from fairtrial.record import Writer, journal, reader
from fairtrial.record.files import GIVEN, MERGED, make_directory
from fairtrial.study import Study

STAMP = "%Y%m%dT%H%M%SZ"
STAMPED = r"\d{8}T\d{6}Z(-\d\d)?"  # the second run of a second has `-02` (`record.create`)
AA = "-aa"  # between a study's name and the time, in the directory of an A/A run


def directory_name(study: str, *, against_itself: bool = False) -> str:
    """The directory of a run, or of an A/A run, that starts now; not of that run alone: a second is long."""
    return f"{study}{AA if against_itself else ''}-{datetime.now(UTC).strftime(STAMP)}"


def fresh_directory(output: Path, name: str) -> Path:
    """Makes a directory of that name, or of the next free one like it.

    Raises:
        PlaceError: it cannot be made.
    """
    for number in range(1, 100):
        directory = output / (name if number == 1 else f"{name}-{number:02}")
        try:
            make_directory(directory, fresh=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise PlaceError(f"{directory} cannot be created: {error}", hint="choose a different --output") from error
        return directory
    raise PlaceError(f"{output / name} already exists", hint="choose a different --output")


def resumed(
    study: Path,
    *,
    size: str | None,
    overrides: Sequence[str],
    output: Path,
    console: Console,
    against_itself: bool = False,
) -> Writer:
    """The run that is named, or the newest unfinished run of a study, of that size and those values if any are given.

    A run goes on with the plan that it began with; a study file that has changed since is noted.

    Raises:
        InputError: the study is wrong; or a run is named together with what could only change it.
        RecordError: there is nothing to go on with.
    """
    if (study / "plan.json").exists():
        return _named(study, changed=bool(size or overrides or against_itself))
    loaded = language.load(study, catalogue=catalogue(), size=size, overrides=overrides)
    text = language.dump(loaded) if size or overrides else None
    for directory in _newest_first(output, loaded.name + (AA if against_itself else "")):
        if (
            _other_kind(directory, against_itself=against_itself)
            or _finished(directory)
            or (text is not None and _read(directory / MERGED) != text)
        ):
            continue
        writer = record.resume(directory)
        if _read(directory / GIVEN) != _read(study):
            console.print(
                f"note: {study} has changed since {directory.name} began; the run continues with its original plan",
                markup=False,
                soft_wrap=True,
            )
        return writer
    like = " with this --size and --set" if text is not None else ""
    kind = "A/A run" if against_itself else "run"
    raise RecordError(
        f"no unfinished {kind} of {loaded.name}{like} in {output}",
        hint="start one without --resume, or name the run's directory instead of the study",
    )


def as_given(path: Path, study: Study) -> str:
    """A study as its file has it; what came through a pipe, which can be read once, as it was merged."""
    return path.read_text(encoding="utf-8") if path.is_file() else language.dump(study)


def as_it_ran(directory: Path, study: Path, *, size: str | None, overrides: Sequence[str]) -> Study:
    """The study of a run: from its file if that still says what runs, else from the record's own copy.

    Raises:
        InputError: neither can be read.
    """
    if not (study / "plan.json").exists():
        with contextlib.suppress(InputError):
            loaded = language.load(study, catalogue=catalogue(), size=size, overrides=overrides)
            if language.dump(loaded) == _read(directory / MERGED):
                return loaded
    return language.load(directory / MERGED, catalogue=catalogue(), recorded=True)


def refuse_changes(directory: Path, *, changed: bool) -> None:
    """Refuses what would change a run that is named by its directory.

    Raises:
        InputError: `changed`.
    """
    if changed:
        problem = Problem(
            message=f"{directory} continues with its original plan: these have no effect", file="--size, --set, --aa"
        )
        raise InputError([problem], hint="leave these options out, or start a new run of the study")


def _named(directory: Path, *, changed: bool) -> Writer:
    refuse_changes(directory, changed=changed)
    if _finished(directory):
        raise RecordError(f"{directory} is finished", hint=f"`fairtrial report {directory}` rewrites its report")
    return record.resume(directory)


def _newest_first(output: Path, study: str) -> list[Path]:
    """Runs of a study, and of none whose name only begins like it."""
    pattern = re.compile(rf"{re.escape(study)}-{STAMPED}")
    directories = [path for path in output.glob("*") if pattern.fullmatch(path.name) and (path / "plan.json").exists()]
    return sorted(directories, reverse=True)


def _other_kind(directory: Path, *, against_itself: bool) -> bool:
    """Whether it is an A/A run where none is meant, or the other way: a study may be called like another's A/A."""
    return reader.read_plan(directory).against_itself != against_itself


def _finished(directory: Path) -> bool:
    """Whether a run reached its end. One killed before its journal's first line has not begun."""
    return (directory / journal.NAME).exists() and record.read(directory).finished


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
