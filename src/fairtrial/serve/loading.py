"""Loads what pages are made from, once and in one thread at a time.

Threads that begin at different modules of one package wait for each other in a circle; Python then gives one of them a
module that is half there (`importlib._bootstrap._DeadlockError`).
"""

from __future__ import annotations

import importlib
import threading
from typing import Final

LOADED: Final = ("fairtrial.serve.following", "fairtrial.analyse", "scipy.stats")  # the latter two look for doubts
_LOCK: Final = threading.Lock()


def load() -> None:
    """Before anything else of it is imported; whoever comes second waits."""
    with _LOCK:
        for name in LOADED:
            importlib.import_module(name)
