"""figures/*.svg: the page's figures for posts and papers, drawn without a browser, in the light colours."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Final, Self, cast

from fairtrial.errors import PlaceError
from fairtrial.record.models import COMPONENT_BYTES
from fairtrial.report.figures.verdicts import Figure, Spec
from fairtrial.report.page.drawing_library import vega_lite_version

WIDTH: Final = 720
LOOK_EVERY_S: Final = 0.2
SUFFIX: Final = ".svg"
NAME_CHARACTERS: Final = COMPONENT_BYTES - len(SUFFIX)
OWN_CHARACTERS: Final = 120  # of them a figure's own at most: the rest is for the cell's number and levels
DIGITS: Final = 8  # of a digest, which keep apart what is cut, or differs in what file names lack
CONFIG: Final = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"gridColor": "#e2e4e3", "domainColor": "#c5c9c8", "tickColor": "#c5c9c8", "titleFontWeight": "normal"},
}


class SvgWriter:
    """Draws figures as files while others are made: vl-convert takes as long as all else, and holds the GIL.

    Used as a context manager; its end waits for what is not drawn yet.

    Args:
        directory: of the files; made here.

    Raises:
        PlaceError: the program that draws cannot start, or was killed.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        program = [sys.executable, "-P", str(Path(__file__).with_name("svg_renderer.py")), vega_lite_version()]
        try:
            self._renderer = subprocess.Popen(  # an interrupt is for the parent alone, which ends it
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except (OSError, TypeError) as error:  # an embedded interpreter has no path
            hint = "give fairtrial a Python of its own, as in a virtual environment, or use `--plain`"
            raise PlaceError(f"cannot draw figures: {sys.executable!r} does not start: {error}", hint=hint) from error
        self._queue = ThreadPoolExecutor(max_workers=1)
        self._drawn: set[Future[None]] = set()
        self._names: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while kind is None and self._drawn:  # with a limit: Polars lets no interrupt end a wait without one
                done, self._drawn = wait(self._drawn, timeout=LOOK_EVERY_S, return_when=FIRST_EXCEPTION)
                for each in done:
                    each.result()
        finally:
            self._renderer.kill()
            self._queue.shutdown(cancel_futures=True)
            self._renderer.communicate()

    def draw(self, figure: Figure, *within: str) -> None:
        """Draws a figure in time, its file named by what it is `within` and itself.

        Of figures whose names differ in nothing that file names have, as those of arms `8+` and `8-`, the first has
        the name alone.
        """
        parts = [*within, figure.name]
        name = _file_name(parts)
        if name in self._names:
            name = f"{name[: NAME_CHARACTERS - DIGITS - 1]}-{_digest(parts)}"
        self._names.add(name)
        self._drawn.add(self._queue.submit(self._draw, figure, self._directory / f"{name}{SUFFIX}"))

    def _draw(self, figure: Figure, path: Path) -> None:
        spec: Spec = {**still(figure.spec), "width": WIDTH, "config": CONFIG, "title": figure.title}
        if (content := self._rendered(json.dumps(spec, separators=(",", ":")).encode())) is None:
            if (code := self._renderer.wait()) > 0:
                raise RuntimeError(f"{figure.name} cannot be drawn: see the lines above")
            hint = "look for lack of memory (`dmesg`), and write the report again with `fairtrial report`"
            raise PlaceError(f"{figure.name} cannot be drawn: signal {-code} ended the renderer", hint=hint)
        path.write_bytes(content)

    def _rendered(self, spec: bytes) -> bytes | None:
        """The SVG; None if the renderer ends."""
        requests, answers = cast("IO[bytes]", self._renderer.stdin), cast("IO[bytes]", self._renderer.stdout)
        try:
            requests.write(spec + b"\n")
            requests.flush()
        except BrokenPipeError:
            return None
        size = int(answers.readline() or -1)
        content = answers.read(max(0, size))
        return content if len(content) == size else None


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


def _file_name(parts: Sequence[str]) -> str:
    """Letters, digits and dashes only, as many as a file system takes: level names are free text, file names are not.

    Where all are too many, the figure's own name (the last part) stays and the end of the others goes: a cell's number
    is their start.
    """
    if len(whole := _plain(parts)) <= NAME_CHARACTERS:
        return whole
    *within, own = parts
    end = _plain([own])
    if len(end) > OWN_CHARACTERS:
        end = f"{end[: OWN_CHARACTERS - DIGITS - 1]}-{_digest([own])}"
    return _plain([_plain(within)[: NAME_CHARACTERS - len(end) - 1], end])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]


def _plain(parts: Sequence[str]) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
