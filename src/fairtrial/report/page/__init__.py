"""report.html: one page that needs nothing else, neither files nor network.

The drawing library is inlined once; figures are data. Everything a study says is escaped by the template, and `<` is
escaped in the figures' JSON, so that no name or message can end a script.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

import jinja2
from altair.utils.schemapi import debug_mode

from fairtrial.analyse.inference.shift import ShiftCurve
from fairtrial.analyse.models import Analysis, CellResult
from fairtrial.metrics.fidelity import of_record
from fairtrial.record import Record
from fairtrial.report import diagnostics, expected, fidelity, noise, numbers, raw, why, within
from fairtrial.report.background import background
from fairtrial.report.concerns import concerns, doubts
from fairtrial.report.figures import series, telemetry
from fairtrial.report.figures import shift as shift_figure
from fairtrial.report.figures import verdicts as figures
from fairtrial.report.figures.verdicts import CellFigures, Figure
from fairtrial.report.page.drawing_library import bundle
from fairtrial.report.scene import Scene
from fairtrial.report.tables import (
    TWO_ARMS,
    MetricTable,
    change,
    conditions,
    kind,
    metric_tables,
    opinion,
    opinions,
    procedure,
    verdict,
)
from fairtrial.report.text import summary
from fairtrial.report.words import again, counted, fates, stopping

CELLS_OPEN: Final = 4  # more than a few cells are opened by hand: a page of fifty figures is slow to read and to draw


def ratio_figures(scene: Scene) -> list[Figure]:
    """A figure of ratios over all cells per metric that has any: a metric of zeros has none, and no axis."""
    return [
        figures.forest(scene, table)
        for table in metric_tables(scene.analysis)
        if any(row.comparison.ratio.estimate is not None for row in table.rows)
    ]


def cell_figures(scene: Scene, curves: Sequence[ShiftCurve] = ()) -> list[CellFigures]:
    """The figures of every cell of the contrast; `curves` are the record's shift curves."""
    with debug_mode(arg=False):  # Altair's check of every part as it is made costs more than the figures of a long run
        return [_of_cell(scene, cell, curves) for cell in scene.analysis.cells]


def _of_cell(scene: Scene, cell: CellResult, curves: Sequence[ShiftCurve]) -> CellFigures:
    own = [figures.trials(scene, cell, table) for table in metric_tables(scene.analysis)]
    own += [series.timelines(scene, cell), series.latencies(scene, cell), shift_figure.shift(scene, cell, curves)]
    return CellFigures(
        label=" · ".join(f"{factor} {level}" for factor, level in cell.levels.items()) or "all trials",
        figures=tuple(figure for figure in own if figure is not None),
        telemetry=telemetry.figures(scene, cell),
    )


def render(scene: Scene, *, ratios: Sequence[Figure], cells: Sequence[CellFigures]) -> str:
    """The page."""
    specs: list[dict[str, Any]] = []
    told: set[str] = set()  # how to read a kind of figure is said once

    def placed(figure: Figure) -> dict[str, Any]:
        specs.append(figure.spec)
        noted = figure.note if figure.note not in told else ""
        told.add(figure.note)
        return {
            "index": len(specs) - 1,
            "title": figure.title,
            "note": noted,
            "height": figure.spec["height"],
            "width": "wide" if figure.name in ("timeline", "latency", "latency-shift") else "",
        }

    tables = metric_tables(scene.analysis)
    content = _content(scene.record, scene.analysis, tables)
    content["ratios"] = [placed(figure) for figure in ratios]
    content["cells"] = [
        {
            "label": cell.label,
            "open": len(cells) <= CELLS_OPEN or index == 0,
            "figures": [placed(figure) for figure in cell.figures],
            "telemetry": [placed(figure) for figure in cell.telemetry],
        }
        for index, cell in enumerate(cells)
    ]
    content["figures"] = _inlined_json(specs)
    content["bundle"] = bundle()
    templates = resources.files("fairtrial.report.page") / "templates"
    content["style"] = (templates / "report.css").read_text(encoding="utf-8")
    content["script"] = (templates / "report.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtrial.report.page"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("report.html.jinja").render(content)


def _inlined_json(value: Any) -> str:
    """JSON that cannot leave the element it stands in."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _content(record: Record, analysis: Analysis, tables: tuple[MetricTable, ...]) -> dict[str, Any]:
    behind = background(record, contrast=analysis.contrast)
    drew = of_record(record)
    return {
        "plan": record.plan,
        "analysis": analysis,
        "headline": summary.headline(analysis),
        "sentences": summary.sentences(analysis),
        "conditions": conditions(analysis),
        "several": len(analysis.levels) != TWO_ARMS,  # arms beside the baseline, so a row must say which
        "confidence": numbers.percent(analysis.confidence),
        "tables": [_table(analysis, table) for table in tables],
        "methods": sorted({row.comparison.method for table in tables for row in table.rows}),
        "doubts": concerns(doubts(analysis) + fidelity.doubts(drew)),
        "expected": {
            "header": expected.HEADER,
            "left": expected.LEFT,
            "rows": expected.rows(analysis),
            "note": expected.NOTE,
        },
        "within": {"header": within.HEADER, "left": within.LEFT, "rows": within.rows(analysis), "note": within.NOTE},
        "differences": behind.differences,
        "counted": counted(analysis),
        "stopping": stopping(analysis),
        "fates": fates(behind),
        "behind": behind,
        "fidelity": {
            "header": fidelity.HEADER,
            "sections": fidelity.sections(record, drew),
            "notes": fidelity.notes(drew),
        },
        "noise": _noise(analysis),
        "why": _why(analysis),
        "diagnostics": _diagnostics(record, analysis),
        "again": again(record),
        "raw": raw.shown(record, analysis),
    }


def _why(analysis: Analysis) -> dict[str, Any]:
    return {
        "header": why.HEADER,
        "left": why.LEFT,
        "lines": why.lines(analysis),
        "caution": why.CAUTION,
        "cells": [
            {"cell": cell.cell, "summary": why.summary(cell), "rows": why.rows(cell), "notes": why.notes(cell)}
            for cell in analysis.why
        ],
    }


def _diagnostics(record: Record, analysis: Analysis) -> dict[str, Any]:
    trials = diagnostics.of_record(record) if analysis.contrast == record.plan.arm else []
    return {
        "sentences": diagnostics.summary(record, trials) if trials else [],
        "sections": list(diagnostics.sections(record, trials)),
    }


def _noise(analysis: Analysis) -> dict[str, Any] | None:
    if analysis.noise is None:
        return None
    return {
        "header": noise.HEADER,
        "left": noise.LEFT,
        "rows": noise.rows(analysis.noise),
        "sentences": noise.sentences(analysis.noise),
        "legend": noise.LEGEND,
    }


def _table(analysis: Analysis, table: MetricTable) -> dict[str, Any]:
    return {
        "label": table.definition.label,
        "unit": table.scale.unit,
        "better": table.definition.better,
        "role": table.role,
        "procedure": procedure(analysis, table),
        "floors": noise.floors(analysis, table.definition.name),
        "rows": [
            {
                "levels": row.levels,
                "arm": row.arm.arm,
                "baseline_mean": table.scale.value(row.baseline.mean),
                "arm_mean": table.scale.value(row.arm.mean),
                **dict(zip(("ratio", "interval"), change(row.comparison, table.scale), strict=True)),
                "p": numbers.p_value(row.comparison.p),
                "p_adjusted": numbers.p_value(row.comparison.p_adjusted),
                "kind": kind(row.comparison),
                "verdict": verdict(row.comparison, table.definition, margin=analysis.margin),
            }
            for row in table.rows
        ],
        "ranks": opinions(table),
        "opinions": [
            {
                "levels": row.levels,
                "arm": row.arm.arm,
                "columns": opinion(table, row, confidence=analysis.confidence),
            }
            for row in table.rows
        ],
    }
