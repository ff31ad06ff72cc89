"""`fairtrial report`: analyse a run again, from its record alone, and write its report."""

from __future__ import annotations

from pathlib import Path

from fairtrial import record
from fairtrial import report as reports
from fairtrial.cli.terminal import Console, print_whole
from fairtrial.record import Record, consistency
from fairtrial.report.analysing import analysed


def report(directory: Path, *, arm: str | None) -> None:
    """Writes the report beside the record and prints the verdicts; `arm` compares another factor of the study.

    Raises:
        FairtrialError: not a record, a damaged one, or no such factor.
    """
    found = record.read(directory)
    consistency.require_whole(found.plan, found.planned, directory)
    conclude(found, console=Console(), contrast=arm)


def conclude(finished: Record, *, console: Console, contrast: str | None = None, drawn: bool = True) -> None:
    """Analyses a record, writes its reports, and prints the verdicts and where the reports are.

    The study's own report is `report/`; of another factor it is `report/by-<factor>/`, a family of its own.
    """
    factors = [contrast] if contrast else [finished.plan.arm, *finished.plan.also_compare]
    for factor in factors:
        analysis = analysed(finished, contrast=factor)
        is_own = factor == finished.plan.arm
        directory = finished.directory / "report" if is_own else finished.directory / "report" / f"by-{factor}"
        written = reports.write(finished, analysis, directory, drawn=drawn)
        if not is_own:
            console.print(f"\nalso compared: {factor}, as a separate family", markup=False)
        print_whole(console, reports.terminal(analysis, finished))
        console.print(f"report: {written}", markup=False, soft_wrap=True)
