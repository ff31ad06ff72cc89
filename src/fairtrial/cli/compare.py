"""`fairtrial compare`: commands against each other, from one line to a verdict."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from fairtrial import plan as planning
from fairtrial import record, report
from fairtrial import study as language
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.result import Verdict
from fairtrial.catalogue import catalogue
from fairtrial.cli.reading.analyse import confidence, direction, margin
from fairtrial.cli.running.one_line import OneLine
from fairtrial.cli.running.resuming import directory_name
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.cli.terminal import Console, print_whole
from fairtrial.cli.writing import make_directory, write_text
from fairtrial.compare import compiling, exporting, showing, trying
from fairtrial.compare.checkouts import LABELS, Checkouts
from fairtrial.compare.compiling import STUDY, CompareOptions
from fairtrial.compare.trying import Calibration
from fairtrial.errors import InputError, Problem
from fairtrial.record import Record, Writer
from fairtrial.record.events import KEPT_VARIABLE
from fairtrial.record.files import GIVEN, MERGED
from fairtrial.report.analysing import analysed
from fairtrial.run import Run, opened
from fairtrial.run.interrupting import heed
from fairtrial.study import Study
from fairtrial.study.file_model import DEFAULT_MIN_BLOCKS_ALONE
from fairtrial.study.resolved import Section
from fairtrial.study.tree.problems import did_you_mean, listed
from fairtrial.study.tree.quantities import parse_seconds

FINDING = 1
STOPS = ("sequential", "fixed", "anytime", "precision")
LOCAL = Section({"local": {}})


@dataclass(frozen=True)
class CompareOutputs:
    """What becomes of a comparison.

    Attributes:
        save: where the study goes, to be run again; None: nowhere.
        export: files, by the end of their names.
        fail_if: verdicts that make the exit code 1.
        output: where the record is kept; None: it is thrown away.
        runs: of each command in each trial; None: as its length demands.
    """

    save: Path | None
    export: Sequence[str]
    fail_if: Sequence[str]
    output: Path | None
    runs: int | None


def compare_options(
    commands: Sequence[str],
    *,
    timeout: str,
    better: str | None,
    names: Sequence[str],
    checkouts: Checkouts | None = None,
    **others: Any,
) -> CompareOptions:
    """What the options ask for; `others` are the fields of `CompareOptions` as they are.

    Raises:
        InputError: a time, a share or a direction that is none; several commands, or names, for two checkouts.
    """
    if checkouts is not None:
        if len(commands) != 1 or names:
            wrong = "names" if names else f"{len(commands)} commands"
            problem = Problem(f"expected one command, which runs in both checkouts, found {wrong}", "--base, --head")
            raise InputError([problem], hint="leave --name out, and give one command")
        commands, names = [*commands, *commands], LABELS
    margin(others["margin"])
    confidence(others["confidence"])
    return CompareOptions(
        commands=tuple(commands),
        names=tuple(names),
        timeout_s=_read("--timeout", timeout, parse_seconds),
        better=None if better is None else direction(better),
        directory=str(Path.cwd()),
        **others,
    )


def _read(option: str, text: str, read: Callable[[object], float]) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise InputError([Problem(str(error), option)], hint=f"see {option} in `fairtrial compare --help`") from error


def stopping(stop: str, *, blocks: int, min_blocks: int | None, precision: str | None) -> dict[str, object]:
    """The `trials` of a study that say when enough was measured, from the options as they are given.

    Fewer blocks than a first look takes are run to their end: there is nothing to look at before.

    Raises:
        InputError: a rule that is none, or an option that says nothing with it.
    """
    if stop not in STOPS:
        message = f"unknown stopping rule `{stop}`; expected one of {listed(STOPS)}"
        problem = Problem(message, "--stop", suggestion=did_you_mean(stop, STOPS))
        raise InputError([problem], hint="for example --stop sequential")
    if (stop == "precision") != (precision is not None):
        message = "--stop precision needs" if stop == "precision" else f"--stop {stop} does not use"
        raise InputError(
            [Problem(f"{message} a precision", "--precision")], hint="for example --stop precision --precision 1%"
        )
    if min_blocks is not None and (stop == "fixed" or min_blocks > blocks):
        limit = "--stop fixed decides only after all blocks" if stop == "fixed" else f"--blocks is {blocks}"
        problem = Problem(f"cannot decide after {min_blocks} blocks: {limit}", "--min-blocks")
        raise InputError([problem], hint="lower --min-blocks, raise --blocks, or leave --min-blocks out")
    looks = stop != "fixed" and (min_blocks is not None or blocks >= DEFAULT_MIN_BLOCKS_ALONE)
    chosen: dict[str, object] = {"blocks": blocks, "stop": stop if looks else "fixed"}
    if looks and min_blocks is not None:
        chosen["min_blocks"] = min_blocks
    return chosen | ({"precision": precision} if looks and precision is not None else {})


def compare(options: CompareOptions, results: CompareOutputs, checkouts: Checkouts | None = None) -> None:
    """Compares commands, or one in two checkouts; prints the verdict, and exits with 1 if it is one of `fail_if`.

    Raises:
        FairtrialError: a command or an option is wrong, or the run cannot go on.
        KeyboardInterrupt: the user stopped it.
    """
    _check(options, results)
    _loaded(compiling.study_text(options, runs=results.runs or 1))  # what it may not say is refused before commands run
    heed()
    os.environ.setdefault(KEPT_VARIABLE, "*")  # the commands are the user's own, and run as in the user's shell
    if checkouts is not None:
        options = replace(options, directories=checkouts.built())
    aside = Console(stderr=True)  # results alone go to standard output
    metric = compiling.judged(options)
    progress = OneLine(aside, metric=metric, unit=options.unit if options.metric else "s")
    with _kept(results.output) as directory, progress.shown():
        with opened(LOCAL, directory=directory, progress=progress) as place:
            calibration = trying.try_out(place, options, runs=results.runs)
        text = compiling.study_text(options, runs=calibration.runs)
        study, writer = _created(text, directory)
        if results.save is not None:
            write_text(results.save, compiling.saved(text, variables=os.environ[KEPT_VARIABLE]))
        run = _run(writer, progress)
        analysis = analysed(run)
        if results.output is not None:
            report.write(run, analysis, run.directory / "report")
    _show(analysis, options, calibration=calibration, results=results)
    if results.output is not None:
        print(f"report: {run.directory / 'report' / 'report.html'}")
    if _verdicts(analysis, study) & set(results.fail_if):
        sys.exit(FINDING)


def _check(options: CompareOptions, results: CompareOutputs) -> None:
    compiling.check(options)
    if options.metric and results.runs not in (None, 1):
        problem = Problem(f"expected 1, as --metric reads the output of a single run, found {results.runs}", "--runs")
        raise InputError([problem], hint="leave --runs out")
    for name in results.export:
        exporting.check(name)
    known: tuple[str, ...] = get_args(Verdict)
    wrong = [text for text in results.fail_if if text not in known]
    if wrong:
        problem = Problem(
            f"unknown verdict `{wrong[0]}`; expected one of {listed(known)}",
            "--fail-if",
            suggestion=did_you_mean(wrong[0], known),
        )
        raise InputError([problem], hint="for example --fail-if slower")
    for option, path in (("--save", results.save), *(("--export", Path(name)) for name in results.export)):
        if path is None:
            continue
        if not path.resolve().parent.is_dir():
            raise InputError([Problem(f"no directory {path.parent}", str(path))], hint="create the directory first")
        if path.is_dir() or not os.access(path if path.exists() else path.resolve().parent, os.W_OK):
            problem = Problem(f"expected a file that can be written, found {path}", option)
            raise InputError([problem], hint="name another file")
    if results.output is not None and results.output.exists() and not results.output.is_dir():
        problem = Problem(f"expected a directory, found the file {results.output}", "--output")
        raise InputError([problem], hint="name a directory, which is made if there is none")


@contextlib.contextmanager
def _kept(output: Path | None) -> Iterator[Path]:
    """Where the record goes: a folder that stays, or one that is removed with everything in it."""
    if output is not None:
        make_directory(output)
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="fairtrial-compare-") as name:
        yield Path(name)


def _created(text: str, directory: Path) -> tuple[Study, Writer]:
    """The study, and its record begun."""
    study = _loaded(text)
    plan = planning.make(study, catalogue=catalogue())
    sources = {GIVEN: text, MERGED: language.dump(study)}
    return study, record.create(directory / directory_name(plan.study), plan=plan, sources=sources, numbered=True)


def _loaded(text: str) -> Study:
    """The study as a user's own would be read."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"{STUDY}.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            return language.load(path, catalogue=catalogue())
        except InputError as error:
            made = [replace(each, file="the study that the options make", line=0) for each in error.problems]
            raise InputError(made, hint="see `fairtrial compare --help`") from error


def _run(writer: Writer, progress: OneLine) -> Record:
    try:
        Run(writer=writer, progress=progress, stopping=stopping_rule(writer.plan)).execute()
    finally:
        writer.close()
    return record.read(writer.directory)


def _show(analysis: Analysis, options: CompareOptions, *, calibration: Calibration, results: CompareOutputs) -> None:
    print_whole(Console(), showing.render(analysis, options, calibration))
    for name in results.export:
        content = exporting.render(name, analysis, options=options, calibration=calibration)
        write_text(Path(name), content)


def _verdicts(analysis: Analysis, study: Study) -> set[str]:
    primary = study.file.metrics.primary
    return {each.verdict for cell in analysis.cells for name in primary for each in cell.comparisons[name]}
