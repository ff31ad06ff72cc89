"""Somebody else's program as a load: which one it is, the lives of its processes, and what they make of a trial."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from fairtrial.errors import PlaceError
from fairtrial.metrics import drive as driving
from fairtrial.protocol import generated as wire
from fairtrial.protocol.generated import MeasuringProgress, RampUpProgress
from fairtrial.record.models import Window
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.workloads.made_files import ToolResult
from fairtrial.workloads.workload import Drive, DriveOutcome, ProcessOptions

OnLine = Callable[[str], None]

SEED_BITS: Final = 48  # fio multiplies seeds with job numbers in 64 bits
LOAD_S: Final = 24 * 3600.0
COUNTED_S: Final = 6 * 3600.0  # a life by count; slower servers are broken
GRACE_S: Final = 300.0  # beyond what is asked: connections are opened, and the last transactions end
STOP_S: Final = 10.0
OUTPUT: Final = "log/load.log"  # in a trial's directory: all that the measured process printed
WORDS: Final = 400  # characters of a program's own that are kept of a failure
COUNT: Final = "([0-9]{1,18})"  # as tools print one: 64 bits hold no more digits
DECIMAL: Final = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"
LAST_LINES: Final = 5


@dataclass(frozen=True)
class Life:
    """One process that loads: how long, and with which seed.

    Attributes:
        duration_s, count: one of them is None; what is counted is the program's affair.
        seed: None of a program that takes none.
        log: beginning of the names of the logs of a program that keeps some; else None.
    """

    duration_s: float | None
    count: int | None
    seed: int | None
    log: PurePosixPath | None = None

    @property
    def limit_s(self) -> float:
        """After which it hangs."""
        return (self.duration_s or COUNTED_S) + GRACE_S


def build(identity: Mapping[str, str], name: str) -> dict[str, str]:
    """The version and SHA-256 of a program that was identified, wherever it is."""
    return {each: value for each, value in identity.items() if each != name}


@dataclass(frozen=True)
class ToolRun:
    """One process from its start to its end.

    Attributes:
        lines: all that it printed, on either stream.
        life: on the place's clock.
        usage: the kernel's accounting.
        failure: that it ran too long, ended with anything but 0, or said that it failed; empty if it did none of these.
    """

    lines: Sequence[str]
    life: Window
    usage: wire.Usage
    failure: str

    @property
    def text(self) -> str:
        """What it printed."""
        return "".join(f"{line}\n" for line in self.lines)


def last_words(lines: Sequence[str]) -> str:
    """The end of what a program printed, for one whose own words about a failure are not known."""
    return "; ".join(lines[-LAST_LINES:])[-WORDS:]


def keep(place: OpenPlace, drive: Drive, files: Mapping[str, bytes | Path]) -> None:
    """Puts files, by their names, where they become part of the trial's record: content, or where it lies here."""
    for name, content in files.items():
        place.agent.put(str(drive.directory / name), content)


def seed_of(trial_seed: int, part: str, *, bits: int = SEED_BITS) -> int:
    """A seed for a part of a trial, such as `window` or `ramp-up`, from 0 to all `bits` set."""
    digest = hashlib.sha256(f"{trial_seed} {part}".encode()).digest()
    return int.from_bytes(digest, "big") >> 8 * len(digest) - bits


@dataclass(frozen=True)
class Invocation:
    """How one of a program's processes runs.

    Attributes:
        name: of the process.
        directory: in which it works.
        limit_s: after which it is stopped.
        process_options: what the settings say about it; nothing if it only loads data.
        on_line: gets each of its lines as it comes, in the stream's thread; must not call the agent.
    """

    name: str
    directory: PurePosixPath
    limit_s: float
    process_options: ProcessOptions = field(
        default_factory=lambda: ProcessOptions(environment={}, processors=None, groups=())
    )
    on_line: OnLine | None = None


@dataclass(frozen=True)
class Tool:
    """A program of the place.

    Attributes:
        name: by which the place finds it, and messages call it.
        hint: what to do where it is missing.
        words: its own about a failure, from all its lines.
        stop_s: that it is given to end by itself once it was told to.
        command: what starts it, if that is more than its name.
        find: the shell's words that print its path, if that is not the one of its name.
        usable: whether a version, as it prints it, can be used.
        needed: which versions can.
        trouble: its words about a failure that it ends with 0 all the same; empty if there was none.
        clean: its lines as they may be kept and shown.
    """

    name: str
    hint: str
    words: Callable[[Sequence[str]], str]
    stop_s: float = STOP_S
    command: Sequence[str] = ()
    find: str = ""
    usable: Callable[[str], bool] = lambda _version: True
    needed: str = ""
    trouble: Callable[[Sequence[str]], str] = lambda _lines: ""
    clean: Callable[[Sequence[str]], Sequence[str]] = lambda lines: lines

    def identify(self, place: OpenPlace) -> dict[str, str]:
        """Its path, version and SHA-256, by names that begin with its own.

        Raises:
            PlaceError: there is none, or one of an unusable version.
        """
        path = place.require(["sh", "-c", self.find or f"command -v {self.name}"], hint=self.hint).strip()
        version = place.require([path, "--version"], hint=self.hint).strip()
        if not self.usable(version):
            raise PlaceError(f"{path} reports version `{version}`: {self.needed}", hint=self.hint)
        digest = place.require(["sha256sum", path], hint=self.hint).split()[0]
        return {self.name: path, f"{self.name}_version": version, f"{self.name}_sha256": digest}

    def run(self, place: OpenPlace, arguments: Sequence[str], invocation: Invocation) -> ToolRun:
        """Runs it to its end."""
        printed: list[str] = []

        def heard(_stream: str, line: str) -> None:
            printed.append(line)
            if invocation.on_line is not None:
                invocation.on_line(line)

        process = place.agent.spawn(
            name=invocation.name,
            argv=[*(self.command or [self.name]), *arguments],
            directory=str(invocation.directory),
            **invocation.process_options,
            of_trial=True,
            on_line=heard,
        )
        try:
            exited = process.wait(invocation.limit_s)
            stopped = ""
        except TimeoutError:
            exited = process.stop(self.stop_s)
            stopped = f"{self.name} ran longer than {invocation.limit_s:g} s and was stopped"
        lines = self.clean(printed)
        trouble = self.trouble(lines)
        if stopped:
            failure = f"{stopped}, and printed: {trouble}" if trouble else stopped
        elif exited.code != 0:
            failure = f"{self.name} ended with {how(exited)}: {self.words(lines)}"
        else:
            failure = f"{self.name} ended with exit code 0, but printed: {trouble}" if trouble else ""
        life = Window(start_ns=process.started_ns, end_ns=exited.time_ns)
        return ToolRun(lines=lines, life=life, usage=exited.usage, failure=failure)


@dataclass(frozen=True)
class Bench(ABC):
    """A program with its files at a place, of which a trial has one life that is measured, or two: one ramps up before.

    Attributes:
        ramps: what the first one does, as a verb.
        seed: the option of the trial that has a life's seed.
        begins: what is said just before the measured process starts.
    """

    place: OpenPlace
    ramps: ClassVar[str] = "ramp"
    seed: ClassVar[str] = "seed"
    begins: ClassVar[type[MeasuringProgress | RampUpProgress]] = MeasuringProgress

    @abstractmethod
    def run(self, life: Life, drive: Drive, *, name: str) -> ToolRun:
        """One life."""

    @abstractmethod
    def measured(self, ran: ToolRun, drive: Drive, clock: wire.Reading) -> tuple[Window, str]:
        """Keeps the trial's files, made from a life that began just after `clock`.

        Returns:
            The measured window, and why the trial cannot count; empty if it can.
        """

    def look(self) -> None:  # noqa: B027 - most have nothing to read
        """What is read before the measured process is announced."""

    def drive(
        self, drive: Drive, identity: Mapping[str, str], *, window: Life, ramp_up: Life | None = None
    ) -> DriveOutcome:
        """Ramps up, unless that takes no time, and measures."""
        effective = {**identity} if window.seed is None else {**identity, self.seed: str(window.seed)}
        if ramp_up is not None and (ramp_up.duration_s or ramp_up.count):
            effective[f"{self.ramps}_up_{self.seed}"] = str(ramp_up.seed)
            ran = self._lived(ramp_up, drive, name=f"{self.ramps}-up")
            if ran.failure:
                return DriveOutcome(ran.life, effective, invalid_reason=f"{self.ramps}ing up: {ran.failure}")
        self.look()
        clock = self.place.agent.clock()
        drive.on_progress(self.begins(time_ns=clock.monotonic_ns))
        ran = self._lived(window, drive, name="load")
        measured, reason = (ran.life, ran.failure) if ran.failure else self.measured(ran, drive, clock)
        return DriveOutcome(measured, effective, invalid_reason=reason)

    def _lived(self, life: Life, drive: Drive, *, name: str) -> ToolRun:
        ran = self.run(life, drive, name=name)
        keep(self.place, drive, {f"log/{name}.log": ran.text.encode()})
        return ran

    def leave(self, drive: Drive, ran: ToolRun, *, result: ToolResult, files: Mapping[str, bytes | Path]) -> None:
        """Puts what was made from a life into the trial's record."""
        keep(self.place, drive, {driving.FILE: result.written(ran.usage), **files})
