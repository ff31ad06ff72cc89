"""A record's report: text, one HTML page, JSON, CSV, R and figures, all from an analysis and a record.

Renders what it is given and decides nothing: every figure in a report is in the `Analysis` or in the record's files.
"""

from __future__ import annotations

from pathlib import Path

from fairtrial.analyse.models import Analysis
from fairtrial.record import Record

__all__ = ["write"]


def write(record: Record, analysis: Analysis, directory: Path) -> None:
    """Writes report.txt, report.html, report.json, raw_data.csv, raw_data.r and figures/*.svg into `directory`.

    The report is derived: a file that is there already is replaced.

    Raises:
        RecordError: a raw file the figures need is damaged.
        OSError: the directory cannot be written.
    """
    from fairtrial.report import page, raw, text  # noqa: PLC0415 - drawing loads altair and polars
    from fairtrial.report.scene import Scene  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    scene = Scene(record=record, analysis=analysis)
    cells = page.cell_figures(scene)
    (directory / "report.html").write_text(page.render(scene, cells), encoding="utf-8")
    (directory / "raw_data.csv").write_text(raw.csv(record), encoding="utf-8")
    (directory / "report.txt").write_text(text.render(record, analysis), encoding="utf-8")
