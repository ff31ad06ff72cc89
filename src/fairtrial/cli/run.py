"""`fairtrial run`: the main job, from a study file to a report."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from rich.console import Console

from fairtrial import analyse, record, report
from fairtrial import plan as planning
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.progress import progress_for
from fairtrial.errors import RecordError
from fairtrial.record import Record, Writer
from fairtrial.run import LiveFile, Run


def run(study: Path, *, size: str | None, overrides: Sequence[str], output: Path, resume: bool) -> None:
    """Runs a study, or goes on with an unfinished run of it, and prints the verdicts.

    Raises:
        FairtrialError: the study is wrong, or the run cannot go on.
        KeyboardInterrupt: the user stopped it.
    """
    signal.signal(signal.SIGTERM, _as_interrupt)
    console = Console()
    writer = (
        _resumed(study, output=output) if resume else _created(study, size=size, overrides=overrides, output=output)
    )
    console.print(f"record: {writer.directory}")
    for warning in writer.plan.warnings:
        console.print(f"warning: {warning}", markup=False)
    try:
        with progress_for(console) as progress:
            Run(writer=writer, progress=LiveFile(writer.directory / "live.json", progress)).execute()
    finally:
        (writer.directory / "live.json").unlink(missing_ok=True)
        writer.close()
    conclude(record.read(writer.directory), console=console)


def conclude(found: Record, *, console: Console, contrast: str | None = None) -> None:
    """Analyses a record, writes its report, and prints the verdicts and where the report is."""
    analysis = analyse.analyse(found.plan, found.trials, contrast=contrast, finished=found.finished)
    directory = found.directory / "report"
    report.write(found, analysis, directory)
    console.print(report.terminal(analysis))
    console.print(f"report: {directory / 'report.html'}", soft_wrap=True)


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _created(study: Path, *, size: str | None, overrides: Sequence[str], output: Path) -> Writer:
    kinds = catalogue()
    loaded = language.load(study, catalogue=kinds, size=size, overrides=overrides)
    plan = planning.make(loaded, catalogue=kinds)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    sources = {"study.yaml": study.read_text(encoding="utf-8"), "study.merged.yaml": language.dump(loaded)}
    return record.create(output / f"{plan.study}-{stamp}", plan=plan, sources=sources)


def _resumed(study: Path, *, output: Path) -> Writer:
    """The run named, or the newest unfinished run of the study."""
    if (study / "plan.json").exists():
        return record.resume(study)
    name = language.load(study, catalogue=catalogue()).name
    for directory in sorted(output.glob(f"{name}-*"), reverse=True):
        if (directory / "plan.json").exists() and not record.read(directory).finished:
            return record.resume(directory)
    raise RecordError(
        f"no unfinished run of {name} in {output}",
        hint="start one without --resume, or name the run's directory instead of the study",
    )
