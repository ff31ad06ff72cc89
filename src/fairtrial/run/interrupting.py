"""Signals that end a run, or a block of one, in order."""

from __future__ import annotations

import contextlib
import importlib
import signal
from collections.abc import Iterator
from types import FrameType


def as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Ends it as Ctrl-C does: what it changed is undone, what is finished stays."""
    raise KeyboardInterrupt


def behind(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that an error came in place of, while that unwound."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__context__
    return found


@contextlib.contextmanager
def goes_first() -> Iterator[None]:
    """What fails while an interrupt unwinds is no reason to go on: the interrupt is raised in its place."""
    try:
        yield
    except Exception as error:
        if (interrupt := behind(error)) is not None:
            raise interrupt from error
        raise


def heed() -> None:
    """From now on SIGTERM ends this process as Ctrl-C does, and what becomes of Ctrl-C is for Python to say.

    Polars, as it is imported, puts a handler of its own before Python's. An interrupt while it computes then comes
    twice. And a process that ignores Ctrl-C, such as one in the background of a script, no longer looks as if it did:
    `steering` would send it a signal that is lost.
    """
    importlib.import_module("polars")
    signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))
    signal.signal(signal.SIGTERM, as_interrupt)
