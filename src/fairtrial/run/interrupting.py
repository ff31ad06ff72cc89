"""Signals that end a run, or a block of one, in order."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final

ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM})
WAKING: Final = signal.SIGURG  # ignored by whoever does not know it, socket(7), and used by nobody else here
WAKE_AFTER_S: Final = (0.05, 0.5, 5.0)
AGAIN_S: Final = 0.05
HEARD_BYTES: Final = 1 << 10

_heeded: Final[list[int]] = []  # signals to end, since `heed`; a handler may come within a handler, so no lock


def as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Ends it as Ctrl-C does: what it changed is undone, what is finished stays."""
    raise KeyboardInterrupt


def behind(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that an error came in place of, while that unwound.

    Of one that came in a function which a library calls, such as a serializer, only the library's own error is left.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__context__
    return KeyboardInterrupt() if found is None and _heeded else found


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
    """From now on SIGTERM ends this process as Ctrl-C does, whose handler is not Polars', and neither is lost.

    Polars, as it is imported, puts a handler of its own before Python's. An interrupt while it computes then comes
    twice. And a process that ignores Ctrl-C, such as one in the background of a script, no longer looks as if it did:
    `steering` would send it a signal that is lost.
    """
    importlib.import_module("polars")
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, _end if before is signal.default_int_handler else before)
    signal.signal(signal.SIGTERM, _end)
    sys.unraisablehook = _raise_again
    heard, told = socket.socketpair()
    told.settimeout(0)
    signal.signal(WAKING, lambda _signal, _frame: None)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    threading.Thread(
        target=_wake, args=(heard, told, threading.get_ident()), name="fairtrial-signals", daemon=True
    ).start()


def _end(number: int, frame: FrameType | None) -> None:
    _heeded.append(number)
    as_interrupt(number, frame)


def _wake(heard: socket.socket, _told: socket.socket, main: int) -> None:
    """Wakes the main thread whenever a signal has come, so that its handler runs.

    A wait without a limit goes on where another thread took the signal, or where it came just before the wait began.
    """
    while numbers := heard.recv(HEARD_BYTES):
        if ENDING.intersection(numbers):
            for pause_s in WAKE_AFTER_S:
                time.sleep(pause_s)
                signal.pthread_kill(main, WAKING)


def _raise_again(dropped: sys.UnraisableHookArgs) -> None:
    """Python only prints what is raised in a destructor or the like: an interrupt is sent once more."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    sending = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM))
    sending.daemon = True
    sending.start()
