"""Where fairtrial keeps what can be made again: unpacked servers, the page's drawing library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "FAIRTRIAL_CACHE_DIRECTORY"
OF_ROOT: Final = Path("/var/cache/fairtrial")  # root's home is closed to the users that servers run as


def cache_directory() -> Path:
    """The directory that is kept between runs; it need not exist yet."""
    directory = os.environ.get(CACHE_VARIABLE)
    if directory:
        return Path(directory)
    if os.geteuid() == 0:
        return OF_ROOT
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairtrial"
