"""`fairtrial run`: the main job, from a study file to a report."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from fairtrial import analyse, record, report
from fairtrial import plan as planning
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.progress import progress_for
from fairtrial.cli.resuming import directory_name, resumed
from fairtrial.cli.terminal import print_whole
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
    if resume:
        writer = resumed(study, size=size, overrides=overrides, output=output, console=console)
    else:
        writer = _created(study, size=size, overrides=overrides, output=output)
    console.print(f"record: {writer.directory}", markup=False, soft_wrap=True)
    for warning in writer.plan.warnings:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    try:
        with progress_for(console) as progress:
            Run(writer=writer, progress=LiveFile(writer.directory / "live.json", progress)).execute()
    except KeyboardInterrupt:
        print(f"stopped; every finished trial is kept: `fairtrial run {study} --resume` goes on", file=sys.stderr)
        raise
    finally:
        (writer.directory / "live.json").unlink(missing_ok=True)
        writer.close()
    conclude(record.read(writer.directory), console=console)


def conclude(found: Record, *, console: Console, contrast: str | None = None) -> None:
    """Analyses a record, writes its report, and prints the verdicts and where the report is."""
    analysis = analyse.analyse(found.plan, found.trials, contrast=contrast, finished=found.finished)
    directory = found.directory / "report"
    report.write(found, analysis, directory)
    print_whole(console, report.terminal(analysis))
    if contrast is None:
        for factor in found.plan.also_compare:
            _also_compare(found, factor, console=console)
    console.print(f"report: {directory / 'report.html'}", markup=False, soft_wrap=True)


def _also_compare(found: Record, factor: str, *, console: Console) -> None:
    """Another factor of the same record, with a family and a report of its own below the study's."""
    analysis = analyse.analyse(found.plan, found.trials, contrast=factor, finished=found.finished)
    directory = found.directory / "report" / f"by-{factor}"
    report.write(found, analysis, directory)
    console.print(
        f"\nalso compared: {factor} (a family of its own; report: {directory / 'report.html'})", soft_wrap=True
    )
    print_whole(console, report.terminal(analysis))


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _created(study: Path, *, size: str | None, overrides: Sequence[str], output: Path) -> Writer:
    kinds = catalogue()
    loaded = language.load(study, catalogue=kinds, size=size, overrides=overrides)
    plan = planning.make(loaded, catalogue=kinds)
    sources = {"study.yaml": study.read_text(encoding="utf-8"), "study.merged.yaml": language.dump(loaded)}
    return record.create(output / directory_name(plan.study), plan=plan, sources=sources)
