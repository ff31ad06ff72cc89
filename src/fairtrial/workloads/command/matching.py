"""A study's regular expression over a program's output, for a bounded time: an expression can take years."""

from __future__ import annotations

import re
import signal
import threading
import time
from typing import Final, NoReturn

MATCH_S: Final = 60.0
SHORTEST_S: Final = 1e-6  # of a timer that was another's: 0 would end it


def last(pattern: str, text: str) -> str:
    """What the only group of the last match holds.

    Raises:
        IndexError: nothing matches.
        ValueError: looking takes too long. In a thread nothing ends it: signals arrive in the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        return str(re.findall(pattern, text, re.MULTILINE)[-1])

    def late(*_: object) -> NoReturn:
        raise ValueError(f"the expression {pattern!r} takes longer than {MATCH_S:g} s")

    handler, began_s = signal.signal(signal.SIGALRM, late), time.monotonic()
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, MATCH_S)
    try:
        return str(re.findall(pattern, text, re.MULTILINE)[-1])
    finally:
        rest_s = max(SHORTEST_S, left_s - (time.monotonic() - began_s)) if left_s else 0
        signal.setitimer(signal.ITIMER_REAL, rest_s)
        signal.signal(signal.SIGALRM, handler)
