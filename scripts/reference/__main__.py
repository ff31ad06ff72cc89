"""`python -m reference DIRECTORY`: writes every generated reference page into a directory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from fairtrial.catalogue import catalogue
from fairtrial.study.catalogue import Catalogue
from fairtrial.study.reference import page as study
from reference import commands, metrics, record, settings

PAGES: Mapping[str, Callable[[Catalogue], str]] = {
    "study.md": study,
    "metrics.md": metrics.page,
    "settings.md": settings.page,
    "record.md": lambda _catalogue: record.page(),
    "commands.md": lambda _catalogue: commands.page(),
}


def write(directory: Path) -> None:
    """Writes every page; what is there already is replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    known = catalogue()
    for name, page in PAGES.items():
        (directory / name).write_text(page(known), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
