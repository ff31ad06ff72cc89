"""`fairtrial gate`: a run against its history, a baseline run or its own baseline, for continuous integration."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairtrial.cli.reading.history import DetectionLevels, examined, options
from fairtrial.cli.terminal import say
from fairtrial.cli.writing import write_text
from fairtrial.errors import InputError, Problem

if TYPE_CHECKING:
    from fairtrial.history.gating import Gate
    from fairtrial.record import Record

FINDING = 1
UNDECIDED = 5


@dataclass(frozen=True)
class Outputs:
    """Where the result goes beside the terminal."""

    junit: Path | None
    markdown: Path | None
    as_json: bool


def gate(
    paths: Sequence[Path],
    *,
    baseline: Path | None,
    arms: bool,
    accepted: Path | None,
    metrics: Sequence[str],
    by: str,
    acknowledged: Path | None,
    levels: DetectionLevels,
    outputs: Outputs,
) -> None:
    """Prints every check and writes the files asked for; exits with 1 if a check failed or none could be made.

    It exits with 5 if no check failed, and one is undecided.

    Raises:
        InputError: an option that a gate within a run, or against a baseline, does not use.
    """
    from fairtrial.history import accepted as ledger
    from fairtrial.history import gate_text as report
    from fairtrial.history import gating

    file = accepted or (Path(ledger.NAME) if Path(ledger.NAME).is_file() else None)
    entries = {} if file is None else ledger.read(file)
    if arms or baseline is not None:
        _refuse_unused("--arms" if arms else "--baseline", by=by, acknowledged=acknowledged, levels=levels)
    if arms:
        result = _within(paths, baseline, metrics=metrics, margin=levels.margin)
    elif baseline is None:
        settings = options(paths, acknowledged=acknowledged, levels=levels)
        result = gating.by_history(examined(paths, metrics=metrics, by=by, options=settings))
    else:
        result = _against(paths, baseline, metrics=metrics, levels=levels)
    result = ledger.applied(result, entries, today=datetime.now(UTC).date())
    if outputs.as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        say("\n".join(report.text(result)))
    if outputs.junit is not None:
        write_text(outputs.junit, report.junit(result))
    if outputs.markdown is not None:
        write_text(outputs.markdown, report.markdown(result))
    if result.outcome == "failed":
        sys.exit(FINDING)
    if result.outcome == "undecided":
        sys.exit(UNDECIDED)


def _refuse_unused(mode: str, *, by: str, acknowledged: Path | None, levels: DetectionLevels) -> None:
    """Options of histories, if they are not as they are by default.

    Raises:
        InputError: one of them is given.
    """
    from fairtrial.history import HistoryOptions
    from fairtrial.history.series import BY

    default = HistoryOptions()
    given = {
        "--by": [name.strip() for name in by.split(",")] != [*BY],
        "--acknowledged": acknowledged is not None,
        "--alarm-alpha": levels.alarm_alpha != default.alarm_alpha,
        "--alpha": mode == "--arms" and levels.alpha != default.alpha,
    }
    for option in (name for name, value in given.items() if value):
        raise InputError([Problem(f"`{mode}` does not use this option", option)], hint=f"leave `{option}` out")


def _within(paths: Sequence[Path], baseline: Path | None, *, metrics: Sequence[str], margin: float | None) -> Gate:
    """The arms of a run against each other; of a directory of runs of the newest one.

    Raises:
        InputError: an option that says nothing here, several paths, a run that is not finished or compares no arms, or
            a metric that the run does not define.
        RecordError: it is no record, or a raw file of it is damaged.
    """
    from fairtrial.history.arms import by_arms
    from fairtrial.metrics import fidelity
    from fairtrial.report.analysing import analysed

    for option, given in (("--baseline", baseline), ("--margin", margin)):
        if given is not None:
            problem = Problem(message="`--arms` takes baseline and margin from the run's own study", file=option)
            raise InputError([problem], hint=f"leave `{option}` out")
    run = _newest(paths, option="--arms")
    if run.plan.screening is not None:
        problem = Problem(message="the run is a screening: it compares no arms", file=str(run.directory))
        raise InputError([problem], hint="name the run that confirmed it")
    analysis = analysed(run)
    drew = fidelity.of_record(run)
    return by_arms(analysis, metrics=_metrics(run, metrics, known=analysis.metrics), drew=drew)


def _against(paths: Sequence[Path], baseline: Path, *, metrics: Sequence[str], levels: DetectionLevels) -> Gate:
    """One run against another; of a directory of runs the newest one.

    Raises:
        InputError: several paths, a run that is not finished, or a metric that the run does not define.
        RecordError: one of the two is no record.
    """
    from fairtrial import record
    from fairtrial.history import gating

    _require_one(paths, option="--baseline")
    held_against = record.read(baseline)
    run = _newest(paths, option="--baseline", beside=held_against)
    _require_finished(held_against, "baseline")
    return gating.by_baseline(
        run,
        held_against,
        metrics=_metrics(run, metrics, known=run.plan.metrics.definitions),
        alpha=levels.alpha,
        margin=levels.margin,
    )


def _newest(paths: Sequence[Path], *, option: str, beside: Record | None = None) -> Record:
    """The newest run of a directory that is no A/A run; `beside`: of the same study and size, and another one."""
    from fairtrial import record
    from fairtrial.history.series import record_directories

    _require_one(paths, option=option)
    found = [record.read(each) for each in record_directories(paths) if not (beside and _same(each, beside.directory))]
    runs = [each for each in found if not each.plan.against_itself and (beside is None or _alike(each, beside))]
    if not runs:
        with_it = "" if beside is None else f" with the baseline, {_title(beside)}"
        problem = Problem(message=f"found no run to compare{with_it}; A/A runs do not count", file=str(paths[0]))
        raise InputError([problem], hint="name another run")
    run = max(runs, key=lambda each: each.journal[0].time if each.journal else "")
    _require_finished(run, "newest run")
    return run


def _require_one(paths: Sequence[Path], *, option: str) -> None:
    if len(paths) > 1:
        problem = Problem(message=f"`{option}` compares one run: found {len(paths)} paths", file=str(paths[1]))
        raise InputError([problem], hint=f"name one run, or leave `{option}` out")


def _alike(one: Record, other: Record) -> bool:
    return (one.plan.study, one.plan.size) == (other.plan.study, other.plan.size)


def _title(of: Record) -> str:
    return f"{of.plan.study} in size {of.plan.size}" if of.plan.size else of.plan.study


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _require_finished(run: Record, name: str) -> None:
    if not run.finished:
        problem = Problem(message=f"the {name} is not finished", file=str(run.directory))
        raise InputError(
            [problem], hint=f"finish it with `fairtrial run {run.directory} --resume`, or name another run"
        )


def _metrics(run: Record, names: Sequence[str], *, known: Mapping[str, object]) -> list[str]:
    """Those named, else the run's primary ones and guardrails."""
    from fairtrial.study.tree.problems import listed

    if unknown := [name for name in names if name not in known]:
        problem = Problem(message=f"unknown metric `{unknown[0]}`; expected one of {listed(known)}", file="--metric")
        raise InputError([problem], hint="name a metric of the study's plan")
    return list(names) or [*run.plan.metrics.primary, *run.plan.metrics.guardrails]
