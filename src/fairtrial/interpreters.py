"""Python processes that this one starts find no module in the current directory, which may be a stranger's record."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

SAFE_PATH: Final = "PYTHONSAFEPATH"  # python(1), as -P


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """What `multiprocessing` starts meanwhile, which it gives no option of its own, has the variable."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        restore(before)


def restore(before: str | None) -> None:
    """The variable as it was: a program of a study may rely on its own directory."""
    if before is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = before
