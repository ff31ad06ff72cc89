"""figures/*.svg: the page's figures for posts and papers, drawn without a browser, in the light colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import vl_convert

from fairtrial.report.figures.verdicts import CellFigures, Figure
from fairtrial.report.page.drawing_library import vega_lite_version

WIDTH: Final = 720
CONFIG: Final = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"gridColor": "#e2e4e3", "domainColor": "#c5c9c8", "tickColor": "#c5c9c8", "titleFontWeight": "normal"},
}


def write(ratios: Sequence[Figure], cells: Sequence[CellFigures], *, directory: Path) -> None:
    """Draws these figures into `directory`, which is new."""
    directory.mkdir()
    for figure in ratios:
        _draw(figure, directory / f"{_file_name([figure.name])}.svg")
    for index, cell in enumerate(cells):
        for figure in cell.figures:
            _draw(figure, directory / f"{_file_name([f'cell{index}', cell.label, figure.name])}.svg")


def _draw(figure: Figure, path: Path) -> None:
    spec: dict[str, Any] = {**still(figure.spec), "width": WIDTH, "config": CONFIG, "title": figure.title}
    path.write_text(vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version()), encoding="utf-8")


def still(spec: dict[str, Any]) -> dict[str, Any]:
    """A layered specification without what is there for a pointer only: marks that cannot be seen, and their params."""
    return {
        **{name: part for name, part in spec.items() if name != "params"},
        "layer": [_still(layer) for layer in spec["layer"] if layer["mark"].get("opacity") != 0],
    }


def _still(layer: dict[str, Any]) -> dict[str, Any]:
    encoding = {
        channel: {name: part for name, part in how.items() if name != "condition"} if isinstance(how, dict) else how
        for channel, how in layer["encoding"].items()
        if channel != "tooltip"
    }
    return {**layer, "encoding": encoding}


def _file_name(parts: Iterable[str]) -> str:
    """Letters, digits and dashes only: level names are free text, file names are not."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
