"""A way to boot a kernel once: what it needs of a host, how it is armed, and what is left of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from fairtrial.places.boot.looking import BootObservation
from fairtrial.programs import Act
from fairtrial.wire.open_place import OpenPlace

DIRECTORY: Final = "/boot/fairtrial"
HINT: Final = "fairtrial doctor names the ways that work on this host"


@dataclass(frozen=True)
class Entry:
    """One boot.

    Attributes:
        image, initial: files of the host: the kernel and its initial file system.
        command_line: the kernel's, with the mark of this boot.
    """

    image: str
    initial: str
    command_line: str


@dataclass(frozen=True)
class WayLack:
    """Why a way does not work on a host, and what to do."""

    what: str
    fix: str


class Way(ABC):
    """A way to boot once.

    Attributes:
        name: as the study says it.
        restart: the command that leads to the next boot, under systemd and elsewhere.
        rehearsed: whether it is shown with the default kernel first that the entry is booted only once.
        kernels: where those lie that it boots, in words.
        once: what makes its entry, in words.
    """

    name: ClassVar[str]
    restart: ClassVar[tuple[str, str]] = ("systemctl --no-block reboot", "reboot")
    rehearsed: ClassVar[bool] = True
    kernels: ClassVar[str] = DIRECTORY
    once: ClassVar[str]

    def acts(self) -> Iterator[Act]:
        """What it changes on a host whose every trial boots, for who reads a study first."""
        if self.rehearsed:
            what = f"what boots: the default kernel by an entry of {self.name} and then by itself, by two restarts"
            yield Act("changes", what, "once, as a rehearsal", user="root", undo="the default kernel runs again")
        undo = "removed when the run ends, or by the next one there"
        yield Act("changes", self.once, "before every boot", user="root", undo=undo)

    @abstractmethod
    def lack(self, seen: BootObservation) -> WayLack | None:
        """What keeps it from working; None: nothing."""

    def directory(self, seen: BootObservation) -> str:
        """Where kernels must lie for it."""
        del seen
        return DIRECTORY

    @abstractmethod
    def arm(self, place: OpenPlace, seen: BootObservation, entry: Entry) -> None:
        """Makes an entry that the next boot takes, and only that one.

        Raises:
            PlaceError: the host's own program refuses, in its words.
        """

    @abstractmethod
    def disarm(self, place: OpenPlace, seen: BootObservation) -> None:
        """Removes the entry, whether it was booted or not."""

    def armed(self, seen: BootObservation) -> str:
        """What would boot the entry again; empty: nothing."""
        del seen
        return ""


def in_sh(place: OpenPlace, script: str, *words: str, hint: str = HINT) -> str:
    """Runs a script of ours there that must succeed, and returns what it prints on standard output."""
    return place.succeeded(["sh", "-euc", script, "sh", *words], hint=hint).stdout
