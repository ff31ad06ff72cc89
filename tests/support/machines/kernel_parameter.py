"""A kernel parameter that a test may change, where it runs as root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.machines.machine import alone_with

NAME = "vm.page-cluster"  # how many pages are read from swap at once: nothing that a test is about
PATH = Path("/proc/sys/vm/page-cluster")


@dataclass(frozen=True)
class Parameter:
    """The parameter as it was, and a study's settings that change it; nothing without root."""

    before: str

    @property
    def other(self) -> str:
        """What the study's settings set."""
        return "2" if self.before.strip() != "2" else "3"

    @property
    def settings(self) -> str:
        return f"{{sysctl: {{{NAME}: {self.other}}}}}" if os.geteuid() == 0 else "{}"

    def changed(self) -> bool:
        """Whether the study's value is in effect; always where nothing can be changed."""
        return os.geteuid() != 0 or PATH.read_text() != self.before

    def restored(self) -> bool:
        return PATH.read_text() == self.before


@contextmanager
def kernel_parameter() -> Iterator[Parameter]:
    """Keeps other tests away from it."""
    with alone_with("page-cluster"):
        yield Parameter(PATH.read_text())
