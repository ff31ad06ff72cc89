"""Files that a place hands over: where they may land on this machine, and how large they may be.

An agent runs on a machine that others may own: it names files of its own, never of this machine's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError

READ_BYTES: Final = 1 << 30  # of a file that is read into memory
FILE_BYTES: Final = 16 << 30  # of a file that is kept
TRIAL_BYTES: Final = 64 << 30  # of all files that one trial keeps
TRIAL_FILES: Final = 100_000
NAME_BYTES: Final = 255  # of one component (limits.h, NAME_MAX)

_HINT: Final = "check which host and which agent answer at this place"


def local_path(directory: Path, name: str) -> Path:
    """Where a file that a place names belongs below `directory`.

    Raises:
        PlaceError: the name is absolute, empty, leaves the directory, or does not print.
    """
    parts = PurePosixPath(name).parts
    usable = all(part not in ("..", "/", "//") and len(os.fsencode(part)) <= NAME_BYTES for part in parts)
    if not parts or not usable or "\0" in name or not name.isprintable():
        raise PlaceError(f"the place offers a file named {name!r}: expected a name below its directory", hint=_HINT)
    return directory.joinpath(*parts)


def write(path: Path, chunks: Iterable[bytes]) -> int:
    """Writes a file without following a link that stands in its place, and returns its bytes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        return sum(file.write(chunk) for chunk in chunks)


def require_bytes(path: str, size: int, *, most: int) -> None:
    """Refuses a file that is larger than its reader allows.

    Raises:
        PlaceError: it is.
    """
    if size > most:
        raise PlaceError(
            f"{path} at the place is too large: expected at most {most:,} bytes, found {size:,}",
            hint="log or sample less: set a longer interval, a shorter run or a quieter program",
        )
