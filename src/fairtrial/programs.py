"""Programs of a place that a kind runs: what `doctor` looks for, and how a missing one is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial.errors import NOT_FOUND, AgentError


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        name: by which a shell finds it.
        use: what runs it, as a sentence without its end.
        package: Debian's; its own name if not given.
        version: arguments at which it prints its version.
    """

    name: str
    use: str
    package: str = ""
    version: str = "--version"

    @property
    def install(self) -> str:
        """How to get it."""
        return f"`apt install {self.package or self.name}` at the place, as root"


@contextlib.contextmanager
def asked_for(field: str) -> Iterator[None]:
    """Around the start of a program that a field of the study names, which is then what asks for it.

    Raises:
        AgentError: the one from inside; of a program that cannot be found, with that field.
    """
    try:
        yield
    except AgentError as error:
        if error.code == NOT_FOUND:
            error.field = field
        raise
