"""What a controller and the process that talks to Ray for it say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RESOURCE: Final = "fairtrial"  # that a node offers


@dataclass(frozen=True)
class Submit:
    """To the driver: hand a block to whichever node is free."""

    number: int
    order: bytes


@dataclass(frozen=True)
class Bar:
    """To the driver: no more blocks for a host."""

    host: str


@dataclass(frozen=True)
class Nodes:
    """From the driver: how many blocks the cluster runs at once, and which nodes take none, and why."""

    slots: int
    why: str = ""


@dataclass(frozen=True)
class Unreachable:
    """From the driver, before it ends: there is no way to the cluster."""

    why: str


@dataclass(frozen=True)
class Done:
    """From the driver: a block came back, with its directory on this machine, or was lost, by a host if it is known."""

    number: int
    outcome: bytes = b""
    directory: str = ""
    lost: str = ""
    host: str = ""
