"""Ray's processes on a node, which are there while trials run: their processor time, and where they may run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairtrial.errors import InputError, Problem
from fairtrial.run import processes

PROCESSORS: Final = "FAIRTRIAL_FARM_PROCESSORS"  # of a node: numbers with commas between them


class Company:
    """The node's daemon and all that it started, but for this process and what it starts."""

    def __init__(self) -> None:
        self._processes = set(_beside())
        self._before = {process: _used_s(process) for process in self._processes}
        self._began = time.monotonic()
        if processors := _housekeeping():
            for process in self._processes:
                _keep_to(process, processors)
            # This worker may be one that was kept there, or have been started since; its trials get what there is.
            os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))

    def used_s(self) -> float:
        """Processor time since the beginning, user and system."""
        now = {process: _used_s(process) for process in {*self._processes, *_beside()}}
        return sum(used - self._before.get(process, 0.0) for process, used in now.items() if used)

    def elapsed_s(self) -> float:
        """Time since the beginning."""
        return time.monotonic() - self._began


def _housekeeping() -> set[int]:
    text = os.environ.get(PROCESSORS, "")
    try:
        return {int(number) for number in text.split(",") if number}
    except ValueError as error:
        problem = Problem(message=f"expected numbers with commas between them, found {text}", file=PROCESSORS)
        raise InputError([problem], hint="write it as in `FAIRTRIAL_FARM_PROCESSORS=0,1 ray start …`") from error


def _keep_to(process: int, processors: set[int]) -> None:
    """All threads of a process."""
    for thread in _numbers(Path(f"/proc/{process}/task")):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(thread, processors)


def _beside() -> Iterator[int]:
    """Ray's daemon is this process's parent; its other children and theirs are agents of its own and idle workers."""
    daemon = os.getppid()
    parents = {process: _parent(process) for process in _numbers(Path("/proc"))}
    kin = {daemon}
    while more := {each for each, above in parents.items() if above in kin and each != os.getpid()} - kin:
        kin |= more
    yield from kin


def _numbers(directory: Path) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(entry.name) for entry in directory.iterdir() if entry.name.isdigit()]
    return []


def _parent(process: int) -> int:
    with contextlib.suppress(OSError):
        return processes.parent(process)
    return 0


def _used_s(process: int) -> float:
    with contextlib.suppress(OSError):
        return processes.ticks(process) / os.sysconf("SC_CLK_TCK")
    return 0.0
