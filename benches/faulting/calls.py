"""The calls of a process that write below a directory: which is struck, and the log of all of them."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SOURCE = Path(__file__).with_name("preloaded.c")
Call = Literal["write", "fsync", "rename", "create", "any"]
CALLS: tuple[Call, ...] = ("write", "fsync", "rename", "create")
KILLED = 0  # instead of an error's number


@dataclass(frozen=True)
class Strike:
    """What happens to the n-th call of a kind below a directory.

    Attributes:
        at: n, from 1.
        error: its error's number, or `KILLED`.
        lasts: whether every later one fails as well.
    """

    call: Call
    at: int
    error: int = KILLED
    lasts: bool = False

    def __str__(self) -> str:
        what = errno.errorcode[self.error] if self.error else "SIGKILL"
        return f"{what} at {self.call} {self.at}{' and after' if self.lasts else ''}"

    def environment(self, mark: Path) -> Mapping[str, str]:
        """Of the process. `mark`: a file that is made when the call is struck."""
        return {
            "FAULT_MARK": str(mark),
            "FAULT_CALL": self.call,
            "FAULT_AT": str(self.at),
            "FAULT_ERRNO": str(self.error),
            "FAULT_LASTS": str(int(self.lasts)),
        }


@dataclass(frozen=True)
class Logged:
    """One call. `kind` is a letter: write, truncate, create, make a directory, rename, unlink or sync."""

    kind: str
    path: str
    other: str
    offset: int
    data: bytes


def compiled(directory: Path) -> Path:
    """The library that is preloaded."""
    library = directory / "faults.so"
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run(["cc", *flags, "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    return library


def begin(environment: Mapping[str, str]) -> None:
    """Strikes or logs this process's calls from now on."""
    os.environ.update(environment)
    ctypes.CDLL(None).fault_begin()


def read(log: Path) -> Iterator[Logged]:
    """What a log holds; a last call that a kill cut is left out."""
    with log.open("rb") as file:
        while head := file.readline():
            kind, *numbers = head.split()
            offset, data, path, other = map(int, numbers)
            parts = file.read(path), file.read(other), file.read(data if kind == b"w" else 0)
            if kind == b"w" and len(parts[2]) < data:
                return
            yield Logged(kind.decode(), os.fsdecode(parts[0]), os.fsdecode(parts[1]), offset, parts[2])
