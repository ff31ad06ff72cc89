"""A record's report: text, one HTML page, JSON, CSV, R and figures, all from an analysis and a record.

Renders what it is given and decides nothing: every figure in a report is in the `Analysis` or in the record's files.
Drawing libraries load when something is drawn.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.analyse.models import Analysis
from fairtrial.errors import PlaceError
from fairtrial.record import Record

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fairtrial.report.scene import Scene

__all__ = ["terminal", "write"]

PAGE = "report.html"
FIGURES = "figures"


def write(record: Record, analysis: Analysis, directory: Path, *, drawn: bool = True) -> Path:
    """Writes report.txt, report.html, report.json, raw_data.csv, raw_data.r and figures/*.svg into `directory`.

    The report is derived: what is there already is replaced.

    Args:
        record: what was measured.
        analysis: of it.
        directory: the report's.
        drawn: with its page and figures, which take most of the time.

    Returns:
        What a person opens: the page, or without one the text.

    Raises:
        RecordError: a raw file the figures need is damaged.
        PlaceError: the disk is full, or a directory stands where a file of the report belongs.
    """
    from fairtrial.record.files import disk_explained  # noqa: PLC0415 - see the module's docstring
    from fairtrial.report import document  # noqa: PLC0415
    from fairtrial.report.scene import Scene  # noqa: PLC0415

    scene = Scene(record=record, analysis=analysis)
    contents = {**plain(scene), "report.json": document.render(scene)}
    with disk_explained(directory), replaced(directory) as fresh:
        if drawn:
            contents[PAGE] = _page(scene, fresh / FIGURES)
        else:
            (fresh / FIGURES).mkdir()  # what else stands there is kept in it
        for name, content in contents.items():
            (fresh / name).write_text(content, encoding="utf-8")
    with contextlib.suppress(OSError):  # a file of the user's is in it, or figures are
        (directory / FIGURES).rmdir()
    return directory / (PAGE if drawn else "report.txt")


def _page(scene: Scene, figures: Path) -> str:
    """The page, and what it draws as files: the libraries for it take a second to load."""
    from fairtrial.report import page  # noqa: PLC0415 - see the module's docstring
    from fairtrial.report.figures import svg  # noqa: PLC0415 - see the module's docstring

    with svg.SvgWriter(figures) as writer:
        ratios, cells = page.ratio_figures(scene), []
        for figure in ratios:
            writer.draw(figure)
        for index, cell in enumerate(page.cell_figures(scene)):
            cells.append(cell)
            for figure in cell.figures:
                writer.draw(figure, f"cell{index}", cell.label)
        return page.render(scene, ratios=ratios, cells=cells)


def page_of(scene: Scene) -> str:
    """The page alone; `verify` renders it again."""
    from fairtrial.report import page  # noqa: PLC0415 - see the module's docstring

    return page.render(scene, ratios=page.ratio_figures(scene), cells=[*page.cell_figures(scene)])


@contextlib.contextmanager
def replaced(directory: Path) -> Iterator[Path]:
    """A fresh directory whose files take the places of those in `directory` at the end, each in one step.

    What else `directory` holds (notes) stays where it is, whatever fails. Nothing that stands there is written to: in
    somebody else's record it could be anything.

    Raises:
        PlaceError: a directory stands where a file of the report belongs.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}-") as temporary:
        fresh = Path(temporary)
        yield fresh
        _put(fresh, directory)


def _put(fresh: Path, directory: Path) -> None:
    """Moves every file of `fresh` into `directory`, without the page and the figures that are not drawn any more."""
    there = {new: directory / new.relative_to(fresh) for new in sorted(fresh.rglob("*"))}  # directories come first
    for new, old in there.items():
        if not new.is_dir() and _is_directory(old):
            raise PlaceError(
                f"{old} is a directory: expected a file of the report",
                hint="rename the directory, and write the report again with `fairtrial report`",
            )
    for made in (directory, *(old for new, old in there.items() if new.is_dir())):
        if not _is_directory(made):  # a link is not followed
            made.unlink(missing_ok=True)
            made.mkdir()
    for old in {directory / PAGE, *(directory / FIGURES).glob("*.svg")} - set(there.values()):
        if not _is_directory(old):
            old.unlink(missing_ok=True)
    for new, old in there.items():
        if not new.is_dir():
            new.replace(old)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def plain(scene: Scene) -> dict[str, str]:
    """The parts of a report that are nothing but figures and words, by file name; `verify` renders them again."""
    from fairtrial.report import r_script, raw, text  # noqa: PLC0415 - see the module's docstring
    from fairtrial.report.designs import screening_r  # noqa: PLC0415 - as above

    of, result = scene.record.plan.screening, scene.analysis.screening
    return {
        "report.txt": text.render(scene),
        "raw_data.csv": raw.csv(scene.record, used=scene.used),
        "raw_data.r": r_script.render(scene.analysis)
        if result is None or of is None
        else screening_r.render(scene, of, result),
    }


def terminal(analysis: Analysis, record: Record | None = None) -> RenderableType:
    """The compact verdict table with its doubts, for a terminal; those about what drives drew come from the record.

    Raises:
        RecordError: a trial's `result.json` is missing or damaged.
    """
    from fairtrial.metrics import fidelity  # noqa: PLC0415
    from fairtrial.report.text import console  # noqa: PLC0415

    return console.render(analysis, () if record is None else fidelity.of_record(record))
