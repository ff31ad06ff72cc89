"""What a farm's back end offers: hosts that take one block at a time each, and blocks that come back or are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairtrial.farm.orders import Order, Outcome


@dataclass(frozen=True)
class Returned:
    """A block that is out no longer.

    Attributes:
        order: as it was handed out.
        host: that had it; empty if nobody knows.
        outcome: None if the host, or the process on it, was lost.
        directory: with a directory for each finished trial, on this machine and the record's file system.
        lost: why there is no outcome.
    """

    order: Order
    host: str
    outcome: Outcome | None = None
    directory: Path | None = None
    lost: str = ""


class Executor(Protocol):
    """A back end. Used by one thread.

    Attributes:
        kinds: of places that studies may name.
        has_places: whether each host is a place of its own, which takes that of the study's trials.
    """

    kinds: Sequence[str]
    has_places: bool

    def idle(self) -> Sequence[str]:
        """Hosts that would take a block at once, the longest idle first; nameless where the back end chooses.

        Raises:
            PlaceError: no host is left, and none will come.
        """

    def submit(self, order: Order, *, host: str) -> None:
        """Hands a block to one of the idle hosts."""

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        """Blocks that came back or were lost; waits for the first if none has."""

    def bar(self, host: str) -> None:
        """Gives a host no more blocks."""

    def close(self) -> Sequence[str]:
        """Ends what still runs; what that had changed is undone where it ran.

        Returns:
            Names of processes that were killed because they did not get that far.
        """
