"""Processes of this machine, as /proc has them (proc_pid_stat(5)). Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PARENT: Final = 1  # fields are counted from what follows the program's name
USER_TICKS: Final = 11  # utime; stime is the next
STARTED: Final = 19


def parent(process: int) -> int:
    """Who began it.

    Raises:
        OSError: it is not there.
    """
    return int(_fields(process)[PARENT])


def ticks(process: int) -> int:
    """User and system time of all its threads so far, `SC_CLK_TCK` to the second.

    Raises:
        OSError: it is not there.
    """
    return sum(map(int, _fields(process)[USER_TICKS : USER_TICKS + 2]))


def started(process: int) -> int:
    """When it began, in ticks since the machine did.

    Raises:
        OSError: it is not there.
    """
    return int(_fields(process)[STARTED])


def _fields(process: int) -> list[str]:
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()
