"""What tests in parallel must not touch at once."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone_with(what: str) -> Iterator[None]:
    """Keeps other test processes away from a setting of the whole machine."""
    with (Path(tempfile.gettempdir()) / f"fairtrial-tests-{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
