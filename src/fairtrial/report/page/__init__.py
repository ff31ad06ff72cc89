"""report.html: one page that needs nothing else, neither files nor network.

The drawing library is inlined once; figures are data. Everything a study says is escaped by the template, and `<` is
escaped in the figures' JSON, so that no name or message can end a script.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

import jinja2
from altair.utils.schemapi import debug_mode

from fairtrial.analyse.models import CellResult
from fairtrial.report import diagnostics, expected, fidelity, hosts, noise, numbers, raw, tables, why, within
from fairtrial.report.background import clients
from fairtrial.report.concerns import concerns, doubts
from fairtrial.report.designs import (
    covariates,
    curve_figures,
    curves,
    interaction_figures,
    interactions,
    layouts,
    screening,
    screening_figures,
)
from fairtrial.report.figures import hosts as host_figures
from fairtrial.report.figures import series, telemetry
from fairtrial.report.figures import shift as shift_figure
from fairtrial.report.figures import verdicts as figures
from fairtrial.report.figures.verdicts import CellFigures, Figure, Spec
from fairtrial.report.page.drawing_library import bundle
from fairtrial.report.scene import Scene
from fairtrial.report.text import summary
from fairtrial.report.words import again, counted, fates, stopping
from fairtrial.words import printable

CELLS_OPEN: Final = 4  # more than a few cells are opened by hand: a page of fifty figures is slow to read and to draw


def ratio_figures(scene: Scene) -> list[Figure]:
    """A figure of ratios over all cells per metric that has any: a metric of zeros has none, and no axis."""
    if scene.analysis.screening is not None:
        return [*screening_figures.figures(scene.analysis)]
    return [
        *curve_figures.figures(scene),
        *(
            figures.forest(scene, table)
            for table in scene.tables
            if any(row.comparison.ratio.estimate is not None for row in table.rows)
        ),
        *(figure for table in scene.tables for figure in interaction_figures.by_condition(scene, table)),
    ]


def cell_figures(scene: Scene) -> Iterator[CellFigures]:
    """The figures of every cell of the contrast, one after the other; of a screening none, a row is no arm."""
    for cell in scene.analysis.cells if scene.analysis.screening is None else ():
        with debug_mode(arg=False):  # Altair's check of every part as it is made costs more than a long run's figures
            figures = _of_cell(scene, cell)
        yield figures


def _of_cell(scene: Scene, cell: CellResult) -> CellFigures:
    own = [figures.trials(scene, cell, table) for table in scene.tables]
    own += [figure for table in scene.tables for figure in host_figures.by_host(scene, cell, table)]
    own += [series.timelines(scene, cell), series.latencies(scene, cell), shift_figure.shift(scene, cell)]
    return CellFigures(
        label=" · ".join(f"{factor} {level}" for factor, level in cell.levels.items()) or "all trials",
        figures=tuple(figure for figure in own if figure is not None),
        telemetry=telemetry.figures(scene, cell),
    )


def render(scene: Scene, *, ratios: Sequence[Figure], cells: Sequence[CellFigures]) -> str:
    """The page."""
    specs: list[Spec] = []
    notes: set[str] = set()  # how to read a kind of figure is said once

    def placed(figure: Figure) -> dict[str, str | int]:
        specs.append(figure.spec)
        noted = figure.note if figure.note not in notes else ""
        notes.add(figure.note)
        return {
            "index": len(specs) - 1,
            "title": figure.title,
            "note": noted,
            "height": figure.spec["height"],
            "width": "wide" if figure.name in ("timeline", "latency", "latency-shift") else "",
        }

    content = _content(scene)
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
    content["script"] = _template("report.js")
    return _rendered(content)


def render_still(scene: Scene, images: Sequence[tuple[str, str]]) -> str:
    """The page without a script, for a site that allows none.

    Args:
        scene: what it says.
        images: address and name of every figure, drawn before.
    """
    content = _content(scene)
    return _rendered({**content, "ratios": [], "cells": [], "images": images, "name": scene.name})


def _rendered(content: dict[str, Any]) -> str:
    return _page().render({"images": None, **content, "style": _template("report.css")})


@cache
def _page() -> jinja2.Template:
    """Kept, because to compile it takes longer than to fill it in."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtrial.report.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,  # markup is ours
    )
    return environment.get_template("report.html.jinja")


def _template(name: str) -> str:
    return (resources.files("fairtrial.report.page") / "templates" / name).read_text(encoding="utf-8")


def _inlined_json(value: Any) -> str:
    """JSON that cannot leave the element it stands in."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _content(scene: Scene) -> dict[str, Any]:
    """What the template says, and the modules whose tables it asks for."""
    record, analysis = scene.record, scene.analysis
    probed = scene.diagnostics if scene.is_of_arm else []
    return {
        "plan": record.plan,
        "analysis": analysis,
        "headline": summary.headline(analysis),
        "sentences": summary.sentences(analysis),
        "conditions": tables.conditions(analysis),
        "several": len(analysis.levels) != tables.TWO_ARMS,  # arms beside the baseline, so a row must say which
        "metrics": scene.tables,
        "methods": sorted({row.comparison.method for table in scene.tables for row in table.rows}),
        "expectations": expected.rows(analysis, record.plan.metrics.definitions),
        "doubts": concerns(doubts(analysis, scene.fidelity)),
        "counted": counted(analysis),
        "stopping": stopping(analysis),
        "fates": fates(scene.background),
        "behind": scene.background,
        "clients": clients(record.trials),
        "fidelity_sections": fidelity.sections(record, scene.fidelity),
        "fidelity_notes": fidelity.notes(scene.fidelity),
        "probe_sentences": diagnostics.summary(record, probed) if probed else [],
        "probe_sections": list(diagnostics.sections(record, probed)),
        "again": again(record, name=scene.name, contrast=scene.analysis.contrast),
        "raw": raw.shown(scene),
        "curves": curves.sections(analysis),
        "curve_title": curves.TITLES[analysis.curves[0].model] if analysis.curves else "",
        "screened": [*screening.sections(analysis, record.plan)],
        **{
            each.__name__.rpartition(".")[2]: each
            for each in (
                covariates,
                expected,
                fidelity,
                hosts,
                interactions,
                layouts,
                noise,
                numbers,
                tables,
                why,
                within,
            )
        },
    }
