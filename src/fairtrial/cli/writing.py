"""Files that the command line is asked for: what stands in their way is the user's to mend."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import PlaceError


def write_text(path: Path, text: str) -> None:
    """Writes a file.

    Raises:
        PlaceError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlaceError(
            f"cannot write {path}: {error.strerror}", hint="name a file in a directory that exists"
        ) from error


def make_directory(path: Path) -> None:
    """Makes a directory, unless it is there.

    Raises:
        PlaceError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlaceError(f"cannot make {path}: {error.strerror}", hint="name another directory") from error
