"""A finished run's report on the page: the same words as report.html, its figures as they were drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

from pydantic import ValidationError
from pydantic_core import from_json

from fairtrial import foreign, record
from fairtrial.analyse.models import Analysis
from fairtrial.record import Record
from fairtrial.report.analysing import analysed
from fairtrial.report.page import render_still
from fairtrial.report.scene import Scene

REPORT: Final = "report"
FIGURES: Final = "figures"
MOST_BYTES: Final = 32 << 20  # of a drawing
MOST_REPORT_BYTES: Final = 256 << 20
POLICY_WITH_STYLE: Final = "style-src 'self' 'unsafe-inline'"


def page(runs: Path, name: str) -> str:
    """The report of a run. Slow, for a thread.

    Raises:
        FairtrialError: not a record, or a damaged one.
    """
    read = record.read(runs / name)
    drawn = sorted((read.directory / REPORT / FIGURES).glob("*.svg"))
    images = [(f"{REPORT}/{FIGURES}/{quote(path.name)}", path.stem) for path in drawn]  # beside the page's address
    return render_still(Scene(read, analysis(read)), images)


def analysis(of: Record) -> Analysis:
    """As the report says it; computed again where it cannot be read, or is older than the journal."""
    path = of.directory / REPORT / "report.json"
    try:
        if path.stat().st_mtime_ns >= (of.directory / "journal.jsonl").stat().st_mtime_ns:
            return Analysis.model_validate(from_json(foreign.read(path, most_bytes=MOST_REPORT_BYTES))["analysis"])
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        pass
    return analysed(of)


def figure(runs: Path, name: str, file: str) -> bytes | None:
    """One drawing; None if there is none. It is shown as an image, in which no script runs."""
    path = runs / name / REPORT / FIGURES / file
    if path.suffix != ".svg" or path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    return path.read_bytes()
