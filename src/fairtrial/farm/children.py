"""Processes of this machine that work for a controller, end in order when it says so, and do not outlive it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process
from typing import Any, Final

from fairtrial import interpreters
from fairtrial.run.interrupting import heed

END_S: Final = 60.0  # within which a process that shall end has undone what its block changed
PRELOADED: Final = "fairtrial.farm.station"
_CONTEXT: Final = multiprocessing.get_context("forkserver")


def child(body: Callable[..., None], *arguments: Any, name: str) -> tuple[BaseProcess, Connection]:
    """Starts one, with a connection to it as its last argument."""
    _CONTEXT.set_forkserver_preload([PRELOADED])
    ours, theirs = _CONTEXT.Pipe()
    given = body, *arguments, theirs
    process = _CONTEXT.Process(target=_begin, args=(os.environ.get(interpreters.SAFE_PATH), *given), name=name)
    with interpreters.safe_path():  # of the server of forks, whose environment is that of all
        process.start()
    theirs.close()
    return process, ours


def end(processes: Iterable[BaseProcess], *, longer_s: float = 0.0) -> list[str]:
    """Waits until they have ended, so much longer than `END_S`, and kills those that do not; the names of these."""
    deadline = time.monotonic() + END_S + longer_s
    killed = []
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()
            killed.append(process.name)
    return killed


def how(process: BaseProcess) -> str:
    """How one ended, in words."""
    process.join()
    code = process.exitcode
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _begin(safe_path: str | None, body: Callable[..., None], *arguments: Any) -> None:
    interpreters.restore(safe_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for the controller, which ends this one in order
    heed()
    threading.Thread(target=_end_with_controller, daemon=True).start()
    body(*arguments)


def _end_with_controller() -> None:
    controller = parent_process()
    if controller is not None:
        wait([controller.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
