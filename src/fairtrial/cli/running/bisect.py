"""`fairtrial bisect`: which change of an ordered history made a metric move."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from fairtrial import plan as planning
from fairtrial.bisect import compiling, foreseeing, journal, picture, reading, wording
from fairtrial.bisect.loop import Bisecting, begin
from fairtrial.bisect.models import Answered, Bisection, BisectResult, Confirmed
from fairtrial.bisect.verifying import RESULT, TEXT
from fairtrial.bisect.versions import Request, asked, name_of
from fairtrial.catalogue import catalogue
from fairtrial.cli.reading.report import conclude
from fairtrial.cli.running.progress import progress_for
from fairtrial.cli.running.resuming import directory_name, fresh_directory
from fairtrial.cli.terminal import Console, say
from fairtrial.errors import InputError, Problem, RecordError
from fairtrial.queries import loaded
from fairtrial.record import Writer
from fairtrial.record.files import MERGED, disk_explained, write_synced
from fairtrial.run import Run
from fairtrial.run.interrupting import heed

FINDING = 1
BISECT = "-bisect"  # between a study's name and the time, in the directory's name


def bisect(request: Request, *, output: Path, resume: bool, dry_run: bool) -> None:
    """Bisects, or goes on with an unfinished bisection; prints the answer, and exits with 1 if none stands.

    Raises:
        FairtrialError: the study or an option is wrong, or a run cannot go on.
        KeyboardInterrupt: the user stopped it.
    """
    heed()
    console = Console(highlight=False)
    if resume:
        directory = _unfinished(request, output)
    else:
        question, merged = asked(request)
        if dry_run:
            print(foreseeing.render(question, block_s=_block_s(question, merged)), end="")
            return
        directory = _created(question, merged, output)
    console.print(f"bisection: {directory}", markup=False, soft_wrap=True)
    try:
        Bisecting(
            directory=directory,
            question=reading.question(directory),
            conduct=partial(_conduct, console),
            conclude=partial(conclude, console=console),
            note=partial(console.print, markup=False, soft_wrap=True),
        ).execute()
    except KeyboardInterrupt:
        print(
            f"stopped; every finished block is kept: `fairtrial bisect {directory} --resume` continues", file=sys.stderr
        )
        raise
    found = _written(directory)
    console.print()
    say(wording.render(found).rstrip("\n"))
    if (drawn := picture.write(found, directory)) is not None:
        console.print(f"figure: {drawn}", markup=False, soft_wrap=True)
    console.print(f"result: {directory / RESULT}", markup=False, soft_wrap=True)
    if not wording.settled(found):
        sys.exit(FINDING)


def _conduct(console: Console, writer: Writer) -> None:
    with progress_for(console, writer.plan) as progress:
        Run(writer=writer, progress=progress).execute()


def _written(directory: Path) -> BisectResult:
    found = reading.result(reading.question(directory), journal.events(directory))
    write_synced(directory / RESULT, found.model_dump_json(indent=1).encode() + b"\n")
    write_synced(directory / TEXT, wording.render(found).encode())
    return found


def _created(question: Bisection, merged: dict[str, object], output: Path) -> Path:
    with disk_explained(output):
        directory = fresh_directory(output, directory_name(question.study + BISECT))
        begin(directory, question, merged)
    return directory


def _unfinished(request: Request, output: Path) -> Path:
    """The bisection that is named, or the newest unfinished one of a study; of what else is asked, if anything is.

    Raises:
        InputError: a bisection is named with options, which have no effect, or what is asked is wrong.
        RecordError: there is none.
    """
    of_study = Request(study=request.study, at=[], overrides=[])
    with_options = request != of_study
    if (request.study / reading.QUESTION).exists():
        if with_options:
            message = f"{request.study} continues as it began: options of what to bisect have no effect"
            raise InputError(
                [Problem(message, "bisect")], hint="leave all options but --resume out, or start a new bisection"
            )
        return request.study
    study = name_of(request.study)
    same = None if replace(request, repository=None, blocks=None) == of_study else asked(request)
    for directory in sorted(output.glob(f"{study}{BISECT}-*"), reverse=True):
        if (directory / reading.QUESTION).exists() and not _finished(directory) and _is_meant(directory, request, same):
            return directory
    asks_this = " that asks this" if with_options else ""
    raise RecordError(
        f"no unfinished bisection of {study}{asks_this} in {output}",
        hint="start one without --resume, or name the bisection's directory instead of the study",
    )


def _is_meant(directory: Path, request: Request, same: tuple[Bisection, dict[str, object]] | None) -> bool:
    """Whether it has the blocks and repository that are given, and asks the same by whatever version of fairtrial."""
    begun = reading.question(directory)
    if request.blocks not in (None, begun.blocks):
        return False
    if request.repository is not None and str(request.repository.resolve()) != begun.repository:
        return False
    if same is None:
        return True
    question, merged = same
    question = question.model_copy(update={"fairtrial_version": begun.fairtrial_version, "blocks": begun.blocks})
    return question == begun and compiling.written(merged) == (directory / MERGED).read_text(encoding="utf-8")


def _finished(directory: Path) -> bool:
    events = journal.events(directory)
    answer = next((event for event in events if isinstance(event, Answered)), None)
    if answer is None:
        return False
    owed = len(answer.changes) if answer.outcome in reading.CONFIRMED_OUTCOMES else 0
    return sum(isinstance(event, Confirmed) for event in events) >= owed


def _block_s(question: Bisection, merged: dict[str, object]) -> float:
    """What a block is expected to take, as the plan of one says."""
    ends = (question.versions[0], question.versions[-1])
    overlays = {each.name: compiling.built(merged, f"/{each.name}") if each.commit else each.overlay for each in ends}
    pair = compiling.Pair(question.over, overlays, blocks=1, seed=1, question="")
    study = loaded(compiling.study_text(merged, pair, pinned=question.pinned))
    return planning.make(study, catalogue=catalogue()).duration_s
