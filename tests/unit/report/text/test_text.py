"""The whole text report against its golden copy: any change to a post's words is seen in review.

To accept a change: FAIRTRIAL_ACCEPT=1 pytest tests/unit/report/text/test_text.py, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

from fairtrial.analyse.models import Analysis
from fairtrial.record import Record
from fairtrial.report import text
from fairtrial.report.scene import Scene
from fairtrial.report.text import columns

GOLDEN = Path(__file__).parents[3] / "golden" / "report.txt"


def test_the_whole_report(record: Record, analysis: Analysis) -> None:
    rendered = text.render(Scene(record, analysis))
    if os.environ.get("FAIRTRIAL_ACCEPT"):
        GOLDEN.write_text(rendered, encoding="utf-8")
    assert rendered == GOLDEN.read_text(encoding="utf-8")


def test_no_line_is_wider_than_a_mail_archive_shows(record: Record, analysis: Analysis) -> None:
    assert max(map(len, text.render(Scene(record, analysis)).splitlines())) <= columns.WIDTH


def test_a_difference_of_shares_is_in_percentage_points(record: Record, analysis: Analysis) -> None:
    metrics = {name: each.model_copy(update={"unit": "share"}) for name, each in analysis.metrics.items()}
    said = " ".join(text.render(Scene(record, analysis.model_copy(update={"metrics": metrics}))).split())
    assert "Means of delete / wal in %, and the 95 % interval of the difference in percentage points." in said
    assert "Table 1b. Difference from delete in percentage points. Equivalence p:" in said


def test_an_unfinished_run_says_so_before_any_figure(record: Record, analysis: Analysis) -> None:
    rendered = text.render(Scene(record, analysis.model_copy(update={"finished": False})))
    assert rendered.index("preliminary") < rendered.index("Matrix")


def test_whole_numbers_keep_their_digits_in_the_appendix(record: Record, analysis: Analysis) -> None:
    first, *others = analysis.cells
    arm, *more = first.summaries["throughput_tpm"]
    arm = arm.model_copy(update={"values": (12345678901.0, 0.123456789012, *arm.values[2:])})
    cell = first.model_copy(update={"summaries": {**first.summaries, "throughput_tpm": (arm, *more)}})
    rendered = text.render(Scene(record, analysis.model_copy(update={"cells": (cell, *others)})))
    assert "12345678901, 0.123456789, " in rendered


def test_every_used_value_is_in_the_appendix(record: Record, analysis: Analysis) -> None:
    appendix = text.render(Scene(record, analysis)).split("Appendix: raw data")[1]
    for cell in analysis.cells:
        for summaries in cell.summaries.values():
            for arm in summaries:
                assert all(f"{value:.10g}" in appendix for value in arm.values)
