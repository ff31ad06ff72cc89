"""What tests in parallel must not touch at once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

_HELD: list[IO[str]] = []  # until this process ends


@contextmanager
def alone_with(what: str) -> Iterator[None]:
    """Keeps other test processes away from a setting of the whole machine."""
    with _lock(what) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@lru_cache
def number_of_process(what: str, *, below: int) -> int:
    """A number that no other test process has of these, as long as this one lives."""
    for number in range(below):
        lock = _lock(f"{what}-{number}")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _HELD.append(lock)
        return number
    raise AssertionError(f"{below} test processes have a number for {what}")


def _lock(what: str) -> IO[str]:
    """Of this user: nobody else's file can be opened."""
    return (Path(tempfile.gettempdir()) / f"fairtrial-tests-{os.geteuid()}-{what}.lock").open("w")
