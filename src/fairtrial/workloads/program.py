"""Somebody else's program as a load: which one it is, the lives of its processes, and how each ended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.workloads.workload import Starting

OnLine = Callable[[str], None]

SEED_BITS: Final = 48  # fio multiplies seeds with job numbers in 64 bits


@dataclass(frozen=True)
class Ran:
    """One process from its start to its end.

    Attributes:
        lines: all that it printed, on either stream.
        life: on the place's clock.
        usage: the kernel's accounting.
        failure: that it ran too long, or ended with anything but 0; empty if it did neither.
    """

    lines: Sequence[str]
    life: Window
    usage: wire.Usage
    failure: str

    @property
    def text(self) -> str:
        """What it printed."""
        return "".join(f"{line}\n" for line in self.lines)


def seed_of(trial_seed: int, part: str, *, bits: int = SEED_BITS) -> int:
    """A seed for a part of a trial, such as `window` or `ramp-up`, from 0 to all `bits` set."""
    digest = hashlib.sha256(f"{trial_seed} {part}".encode()).digest()
    return int.from_bytes(digest, "big") >> 8 * len(digest) - bits


@dataclass(frozen=True)
class Running:
    """How one of a program's processes runs.

    Attributes:
        name: of the process.
        directory: in which it works.
        limit_s: after which it is stopped.
        starting: what the settings say about it.
        on_line: gets each of its lines as it comes, in the stream's thread; must not call the agent.
    """

    name: str
    directory: PurePosixPath
    limit_s: float
    starting: Starting
    on_line: OnLine | None = None


@dataclass(frozen=True)
class Program:
    """A program of the place.

    Attributes:
        name: by which the place finds it, and messages call it.
        hint: what to do where it is missing.
        words: its own about a failure, from all its lines.
        stop_s: that it is given to end by itself once it was told to.
        command: what starts it, if that is more than its name.
    """

    name: str
    hint: str
    words: Callable[[Sequence[str]], str]
    stop_s: float
    command: Sequence[str] = ()

    def identify(self, place: OpenPlace) -> dict[str, str]:
        """Its path, version and SHA-256, by names that begin with its own.

        Raises:
            PlaceError: there is none.
        """
        path = place.require(["sh", "-c", f"command -v {self.name}"], hint=self.hint).strip()
        version = place.require([path, "--version"], hint=self.hint).strip()
        digest = place.require(["sha256sum", path], hint=self.hint).split()[0]
        return {self.name: path, f"{self.name}_version": version, f"{self.name}_sha256": digest}

    def run(self, place: OpenPlace, arguments: Sequence[str], running: Running) -> Ran:
        """Runs it to its end."""
        lines: list[str] = []

        def heard(_stream: str, line: str) -> None:
            lines.append(line)
            if running.on_line is not None:
                running.on_line(line)

        process = place.agent.spawn(
            name=running.name,
            argv=[*(self.command or [self.name]), *arguments],
            directory=str(running.directory),
            **running.starting,
            on_line=heard,
        )
        failure = ""
        try:
            exited = process.wait(running.limit_s)
        except TimeoutError:
            exited = process.stop(self.stop_s)
            failure = f"{self.name} ran longer than {running.limit_s:g} s and was stopped"
        if not failure and exited.code != 0:
            failure = f"{self.name} ended with {how(exited)}: {self.words(lines)}"
        life = Window(start_ns=process.started_ns, end_ns=exited.time_ns)
        return Ran(lines=lines, life=life, usage=exited.usage, failure=failure)
