"""`fairtrial gate`: the newest run against its history or against one baseline run, for continuous integration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairtrial.cli.reading.history import DetectionLevels, examined, options
from fairtrial.errors import InputError, PlaceError, Problem

if TYPE_CHECKING:
    from fairtrial.history.gating import Gate

FINDING = 1


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
    metrics: Sequence[str],
    by: str,
    acknowledged: Path | None,
    levels: DetectionLevels,
    outputs: Outputs,
) -> None:
    """Prints every check and writes the files asked for; exits with 1 if a check failed or none could be made."""
    from fairtrial.history import gate_text as report
    from fairtrial.history import gating

    if baseline is None:
        settings = options(paths, acknowledged=acknowledged, levels=levels)
        result = gating.by_history(examined(paths, metrics=metrics, by=by, options=settings))
    else:
        result = _against(paths, baseline, metrics=metrics, levels=levels)
    typer.echo(result.model_dump_json(indent=1) if outputs.as_json else "\n".join(report.text(result)))
    _write(outputs.junit, report.junit(result))
    _write(outputs.markdown, report.markdown(result))
    if not result.passed:
        sys.exit(FINDING)


def _against(paths: Sequence[Path], baseline: Path, *, metrics: Sequence[str], levels: DetectionLevels) -> Gate:
    """One run against another; of a directory of runs the newest one.

    Raises:
        InputError: several paths, a run that is not finished, or a metric that the run does not define.
        RecordError: one of the two is no record.
    """
    from fairtrial import record
    from fairtrial.history import gating
    from fairtrial.history.series import record_directories
    from fairtrial.study.tree.problems import listed

    if len(paths) > 1:
        problem = Problem(message=f"`--baseline` compares one run: found {len(paths)} paths", file=str(paths[1]))
        raise InputError([problem], hint="name one run, or leave `--baseline` out")
    candidates = [record.read(each) for each in record_directories(paths) if each.resolve() != baseline.resolve()]
    runs = [each for each in candidates if not each.plan.against_itself]
    if not runs:
        problem = Problem(
            message="found no run to compare with the baseline; A/A runs do not count", file=str(paths[0])
        )
        raise InputError([problem], hint="name another run")
    run = max(runs, key=lambda each: each.journal[0].time if each.journal else "")
    held_against = record.read(baseline)
    for each, name in ((run, "newest run"), (held_against, "baseline")):
        if not each.finished:
            problem = Problem(message=f"the {name} is not finished", file=str(each.directory))
            raise InputError(
                [problem], hint=f"finish it with `fairtrial run {each.directory} --resume`, or name another run"
            )
    planned = run.plan.metrics
    if unknown := [name for name in metrics if name not in planned.definitions]:
        problem = Problem(
            message=f"unknown metric `{unknown[0]}`; expected one of {listed(planned.definitions)}", file="--metric"
        )
        raise InputError([problem], hint="name a metric of the study's plan")
    return gating.by_baseline(
        run,
        held_against,
        metrics=list(metrics) or [*planned.primary, *planned.guardrails],
        alpha=levels.alpha,
        margin=levels.margin,
    )


def _write(path: Path | None, text: str) -> None:
    """Writes a file where one is asked for.

    Raises:
        PlaceError: it cannot be written.
    """
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlaceError(
            f"cannot write {path}: {error.strerror}", hint="name a file in a directory that exists"
        ) from error
