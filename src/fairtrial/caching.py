"""Where fairtrial keeps what can be made again: unpacked servers, the page's drawing library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "FAIRTRIAL_CACHE_DIRECTORY"
ROOT, OTHERS_WRITE = 0, 0o022
OF_ROOT: Final = Path("/var/cache/fairtrial")  # root's home is closed to the users that servers run as


def cache_directory() -> Path:
    """The directory that is kept between runs; it need not exist yet."""
    directory = os.environ.get(CACHE_VARIABLE)
    if directory:
        return Path(directory)
    if os.geteuid() == 0:
        return OF_ROOT
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairtrial"


def others_write(path: Path) -> bool:
    """Whether other users can change what is kept there, which then is neither run nor booted nor shown.

    Raises:
        OSError: it is not there.
    """
    status = path.stat(follow_symlinks=False)
    return status.st_uid not in (ROOT, os.geteuid()) or bool(status.st_mode & OTHERS_WRITE)
