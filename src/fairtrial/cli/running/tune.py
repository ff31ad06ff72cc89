"""`fairtrial tune`: options searched, the best confirmed against the default."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from fairtrial import report
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.running.resuming import as_given, directory_name, fresh_directory
from fairtrial.cli.terminal import Console, print_whole
from fairtrial.errors import InputError, Problem, RecordError
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.files import GIVEN, MERGED, disk_explained, write_synced
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.report.analysing import analysed
from fairtrial.run.interrupting import heed
from fairtrial.study import Study
from fairtrial.study.tuning import FEWEST_TRIALS
from fairtrial.tune import dry_run, journal, picture, planning, showing
from fairtrial.tune import result as results
from fairtrial.tune.journal import TuneJournal
from fairtrial.tune.running import Runner
from fairtrial.tune.searching import Course, Search, started, tuning_of


@dataclass(frozen=True)
class TuneOptions:
    """What the command line says beside the study.

    Attributes:
        size: one of the study's sizes.
        overrides: values that replace the study's.
        budget: trials of the search; the study's if None.
        seed: of the search; the study's `trials.seed` if None.
        output: where tunings are kept.
        resume: go on with the newest unfinished tuning of the study, or with the directory that is named.
        dry_run: print what would run.
        as_json: print the result as JSON.
        drawn: the confirmation's report has a page and figures, and the tuning a figure.
    """

    size: str | None = None
    overrides: Sequence[str] = ()
    budget: int | None = None
    seed: int | None = None
    output: Path = Path("runs")
    resume: bool = False
    dry_run: bool = False
    as_json: bool = False
    drawn: bool = True


def tune(study: Path, options: TuneOptions) -> None:
    """Tunes the options of a study, or goes on with it, and prints what is claimed.

    Raises:
        FairtrialError: the study is wrong, Optuna is missing, or a run cannot go on.
        KeyboardInterrupt: the user stopped it.
    """
    heed()
    console = Console(stderr=options.as_json, highlight=False)
    if options.dry_run:
        print_whole(console, plan(_loaded(study, options), budget=options.budget))
        return
    directory = _resumed(study, options) if options.resume else _created(study, options)
    console.print(f"tuning: {directory}", markup=False, soft_wrap=True)
    record = TuneJournal(directory)
    try:
        merged = language.load(directory / MERGED, catalogue=catalogue(), recorded=True)
        seed = Course(tuple(record.events)).started.seed
        runner = Runner(directory=directory, study=merged, seed=seed, progress=Lines(console))
        Search(runner=runner, journal=record, say=runner.progress.note).execute()
    except KeyboardInterrupt:
        print(
            f"stopped; every finished trial is kept: `fairtrial tune {directory} --resume` continues", file=sys.stderr
        )
        raise
    finally:
        record.close()
    _conclude(results.read(directory), console, options)


def _conclude(found: results.TuneRecord, console: Console, options: TuneOptions) -> None:
    analysis = written = None
    if found.confirmation is not None:
        analysis = analysed(found.confirmation)
        written = report.write(
            found.confirmation, analysis, found.confirmation.directory / "report", drawn=options.drawn
        )
    result = results.result(found, analysis)
    directory = found.directory / "report"
    with disk_explained(found.directory):
        directory.mkdir(exist_ok=True)
        write_synced(directory / "tune.json", result.model_dump_json(indent=1).encode() + b"\n")
        with (directory / "tune.txt").open("w", encoding="utf-8") as file:
            print_whole(Console(file=file, width=120, color_system=None), showing.render(result))
    if options.drawn:
        picture.write(result, directory)
    if options.as_json:
        print(result.model_dump_json(indent=1))
        return
    console.print()
    print_whole(console, showing.render(result))
    if written is not None:
        console.print(f"\nreport of the confirmation: {written}", markup=False, soft_wrap=True)
    console.print(f"result: {directory / 'tune.json'}", markup=False, soft_wrap=True)


def plan(study: Study, *, budget: int | None = None) -> RenderableType:
    """What a study that tunes would run."""
    tuning = tuning_of(study)
    runner = Runner(directory=Path(), study=study, seed=study.trials.seed, progress=Lines(Console()))
    return dry_run.render(runner, planning.stages(tuning, budget=budget or tuning.budget))


def _loaded(study: Path, options: TuneOptions) -> Study:
    loaded = language.load(study, catalogue=catalogue(), size=options.size, overrides=options.overrides)
    if loaded.file.tune is None:
        problem = Problem("the study has no `tune`, so there is nothing to search", str(study), field="tune")
        raise InputError([problem], hint="name options with ranges under `tune`, or run it with `fairtrial run`")
    if options.budget is not None and options.budget < FEWEST_TRIALS:
        message = f"expected at least {FEWEST_TRIALS} trials, found {options.budget}"
        raise InputError([Problem(message, "--budget")], hint="raise the budget")
    return loaded


def _created(study: Path, options: TuneOptions) -> Path:
    loaded = _loaded(study, options)
    seed = loaded.trials.seed if options.seed is None else options.seed
    first = started(loaded, seed=seed, budget=options.budget or tuning_of(loaded).budget)
    with disk_explained(options.output):
        directory = fresh_directory(options.output, directory_name(loaded.name))
        write_synced(directory / GIVEN, as_given(study, loaded).encode())
        write_synced(directory / MERGED, language.dump(loaded).encode())
    opened = TuneJournal(directory, new=True)
    opened.append(first)
    opened.close()
    return directory


def _resumed(study: Path, options: TuneOptions) -> Path:
    """The tuning that is named, or the newest unfinished one of a study."""
    if (study / journal.NAME).exists():
        if options.size or options.overrides or options.budget is not None or options.seed is not None:
            message = f"{study} continues as it began: these have no effect"
            raise InputError([Problem(message, "--size, --set, --budget, --seed")], hint="leave these options out")
        return study
    loaded = _loaded(study, options)
    text = language.dump(loaded)
    for directory in sorted(options.output.glob(f"{loaded.name}-*"), reverse=True):
        if (directory / journal.NAME).exists() and (directory / MERGED).read_text(encoding="utf-8") == text:
            course = Course(tuple(journal.read(directory)))
            if course.events and not course.finished and _is_meant(course, options):
                return directory
    raise RecordError(
        f"no unfinished tuning of {loaded.name} in {options.output}",
        hint="start one without --resume, or name the directory of a tuning instead of the study",
    )


def _is_meant(course: Course, options: TuneOptions) -> bool:
    return options.budget in (None, course.started.budget) and options.seed in (None, course.started.seed)


class Lines:
    """Progress of a tuning: what is said of each step, and trials that are invalid."""

    def __init__(self, console: Console) -> None:
        self._console = console

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
        if not trial.valid:
            self.note(f"{trial.trial.id} is invalid: {trial.invalid_reason}")

    def paused(self, *, waits: bool) -> None:
        """See `fairtrial.run.Progress`."""

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._console.print(text, markup=False, soft_wrap=True)
