"""Programs of a place that a kind runs, and whatever else it does: for `doctor`, and for who reads a study first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from fairtrial.errors import NOT_FOUND, AgentError

SERVERS: Final = "servers' user"  # of an act: who runs servers where the agent is root


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


@dataclass(frozen=True)
class Act:
    """One thing that a run does, as the study alone tells it, for `fairtrial plan --effects`.

    Attributes:
        kind: what is done; `knows not` is of a kind from another package.
        what: the command line, source, address, path, or setting with its value; what is handed in is in braces.
        when: in words.
        user: who does it; empty: the agent's own user, or, `here`, the user who runs fairtrial.
        here: on the machine that runs fairtrial, wherever the trial is.
        undo: how a change is taken back.
    """

    kind: Literal["runs", "downloads", "connects", "listens", "changes", "writes", "reads", "knows not"]
    what: str
    when: str = "in every trial"
    user: str = ""
    here: bool = False
    undo: str = ""


def untold(room: str, name: str) -> Act:
    """What is said of a kind that does not say what it does."""
    return Act("knows not", f"what the {room} `{name}` does: read the package that it is from", when="")


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
