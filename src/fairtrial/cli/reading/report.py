"""`fairtrial report`: analyse a run again, from its record alone, and write its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fairtrial import record
from fairtrial.cli.running.run import conclude


def report(directory: Path, *, arm: str | None) -> None:
    """Writes the report beside the record and prints the verdicts; `arm` compares another factor of the study.

    Raises:
        FairtrialError: not a record, a damaged one, or no such factor.
    """
    conclude(record.read(directory), console=Console(), contrast=arm)
