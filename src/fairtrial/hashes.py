"""SHA-256 of what a study names and does not hold: archives, packages, kernels, images."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import StringConstraints

from fairtrial.errors import PlaceError
from fairtrial.record.files import sha256

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
MOST_KEPT: Final = 1 << 16  # files whose hash is kept: two builds of a kernel with every driver have 15,000


def of_file(path: Path) -> str:
    """A file's, kept as long as the file is as it was: hosts boot and servers start before every trial."""
    status = path.stat()
    return _of_file(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=MOST_KEPT)
def _of_file(path: Path, _mtime_ns: int, _size: int) -> str:
    return sha256(path)


def require(found: str, expected: str | None, *, what: str, field: str = "") -> None:
    """Lets only what is expected pass; None expects nothing.

    Raises:
        PlaceError: the hash is different; the message has the one that was found.
    """
    if expected not in (None, found):
        raise PlaceError(
            f"{what} has the SHA-256 {found}: expected {expected}",
            hint="find out who changed it; if you trust this one, write its hash into the study",
            field=field,
        )
