"""figures/*.svg: the page's figures for posts and papers, drawn without a browser, in the light colours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Final, Self, cast

from fairtrial.report.figures.verdicts import Figure, Spec
from fairtrial.report.page.drawing_library import vega_lite_version

WIDTH: Final = 720
CONFIG: Final = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"gridColor": "#e2e4e3", "domainColor": "#c5c9c8", "tickColor": "#c5c9c8", "titleFontWeight": "normal"},
}


class Easel:
    """Draws figures as files while others are made: vl-convert takes as long as all else, and holds Python's lock.

    Used as a context manager; its end waits for what is not drawn yet.

    Args:
        directory: of the files; made here.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        program = [sys.executable, "-P", str(Path(__file__).with_name("artist.py")), vega_lite_version()]
        self._artist = subprocess.Popen(  # an interrupt is for the parent alone, which ends it
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._queue = ThreadPoolExecutor(max_workers=1)
        self._drawn: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._queue.shutdown(cancel_futures=kind is not None)
        self._artist.communicate()
        if kind is None:
            for each in self._drawn:
                each.result()

    def draw(self, figure: Figure, *within: str) -> None:
        """Draws a figure in time, its file named by what it is `within` and itself."""
        path = self._directory / f"{_file_name([*within, figure.name])}.svg"
        self._drawn.append(self._queue.submit(self._draw, figure, path))

    def _draw(self, figure: Figure, path: Path) -> None:
        spec: Spec = {**still(figure.spec), "width": WIDTH, "config": CONFIG, "title": figure.title}
        asked, answered = cast("IO[bytes]", self._artist.stdin), cast("IO[bytes]", self._artist.stdout)
        asked.write(json.dumps(spec, separators=(",", ":")).encode() + b"\n")
        asked.flush()
        size = answered.readline()
        if not size:
            raise RuntimeError(f"{figure.name} cannot be drawn: see the lines above")
        path.write_bytes(answered.read(int(size)))


def still(spec: Spec) -> Spec:
    """A layered specification without what is there for a pointer only: marks that cannot be seen, and their params."""
    return {
        **{name: part for name, part in spec.items() if name != "params"},
        "layer": [_still(layer) for layer in spec["layer"] if layer["mark"].get("opacity") != 0],
    }


def _still(layer: Spec) -> Spec:
    encoding = {
        channel: {name: part for name, part in how.items() if name != "condition"} if isinstance(how, dict) else how
        for channel, how in layer["encoding"].items()
        if channel != "tooltip"
    }
    return {**layer, "encoding": encoding}


def _file_name(parts: Iterable[str]) -> str:
    """Letters, digits and dashes only: level names are free text, file names are not."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
