"""HammerDB at a place: where it is and which one, its files, and its processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import PurePosixPath
from typing import ClassVar, Final

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import MeasuringProgress, RampUpProgress
from fairtrial.record.models import Window
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import tool
from fairtrial.workloads.hammerdb import output, script
from fairtrial.workloads.hammerdb.output import HammerdbClock
from fairtrial.workloads.hammerdb.parameters import HammerdbParameters
from fairtrial.workloads.tool import LOAD_S, WORDS, Invocation, Life, OnLine, Tool, ToolRun, last_words
from fairtrial.workloads.workload import Drive, ProcessOptions

HINT: Final = (
    "install HammerDB at the place, and set `workload.hammerdb.directory` to its directory or put "
    "`hammerdbcli` on the PATH there"
)
VERSION: Final = re.compile(r"HammerDB CLI v?([0-9]+)\.([0-9]+)")
OLDEST: Final = (4, 6)  # before it, `vurun` did not wait, and a script ended its own run
OBSERVER: Final = "observing.tcl"
# All files that decide what it does, by their names and contents; libraries below `lib` are not among them.
SUM: Final = "find hammerdbcli config modules src -type f -exec sha256sum {} + 2>/dev/null | LC_ALL=C sort | sha256sum"
TROUBLE: Final = re.compile(
    r"^Error|FINISHED FAILED|exists but key \"|^Failed to|^Unknown (prefix|benchmark)|could not be established"
    r"|^Transaction Counter (Error|Failed)|^While loading|can't find package|:ERROR:|:error, failed to"
    r"|^fairtrial: [0-9]+ too many lines"
)
BEGUN: Final = re.compile(r"fairtrial: ([0-9]+) begun")
# Beyond it the window's place on the monotonic clock is a guess; slewing moves a clock by 500 millionths at most.
CLOCK_MOVES_NS: Final = 20_000_000
SLEWED: Final = 5e-4
WINDOW_DEVIATION: Final = 0.01  # of the length it divides by; what lies between its counts is 0.1 % longer
PASSWORD: Final = re.compile(r"_(super)?(user)?pass\b")
FIGURES: Final = re.compile(r"^fairtrial: |TEST RESULT|Timing test period|^>>>>> |^CALLS: |^P99: ")  # hold no password


def _trouble(lines: Sequence[str]) -> str:
    plain = (line.strip() for line in lines)
    return "; ".join(dict.fromkeys(line for line in plain if TROUBLE.search(line)))[:WORDS]


def _without_passwords(lines: Sequence[str], password: str) -> list[str]:
    """What HammerDB printed, which repeats every setting; it ends its own lines as for a terminal."""
    plain = [line.strip("\r") for line in lines if not PASSWORD.search(line)]
    return [line for line in plain if not password or password not in line or FIGURES.search(line)]


# By a path below the directory in which it runs: it finds its own files in no other.
PROGRAM: Final = Tool(
    "HammerDB",
    HINT,
    words=lambda lines: _trouble(lines) or last_words(lines),
    command=("./hammerdbcli",),
    trouble=_trouble,  # a script goes on after most of what its commands refuse
)


def find(place: OpenPlace, parameters: HammerdbParameters) -> PurePosixPath:
    """HammerDB's directory.

    Raises:
        PlaceError: there is none.
    """
    if parameters.directory is not None:
        place.require(["test", "-x", f"{parameters.directory}/hammerdbcli"], hint=HINT)
        return PurePosixPath(parameters.directory)
    path = place.require(["sh", "-c", 'readlink -f "$(command -v hammerdbcli)"'], hint=HINT).strip()
    if not path:
        raise PlaceError("hammerdbcli is not on the place's PATH", hint=HINT)
    return PurePosixPath(path).parent


def identify(place: OpenPlace, directory: PurePosixPath) -> dict[str, str]:
    """Which HammerDB this is.

    Raises:
        PlaceError: it does not start, or is of an older generation.
    """
    within = ["sh", "-c", 'cd "$1" && shift && eval "$*"', "sh", str(directory)]
    said = place.require([*within, "./hammerdbcli version"], hint=HINT)  # it knows no such word, and says who it is
    version = VERSION.search(said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise PlaceError(f"{directory}/hammerdbcli says: {said[:WORDS].strip()}: expected 4.6 or later", hint=HINT)
    digest = place.require([*within, SUM], hint=HINT).split()[0]
    return {"hammerdb": str(directory), "hammerdb_version": f"{version[1]}.{version[2]}", "hammerdb_sha256": digest}


@dataclass(frozen=True)
class HammerdbBench(tool.Bench):
    """HammerDB with its files in a directory of the place that only its user can read.

    Attributes:
        home: where HammerDB is.
        scratch: ours; HammerDB keeps its settings there, the password among them.
    """

    parameters: HammerdbParameters
    endpoint: Server
    home: PurePosixPath
    scratch: PurePosixPath
    begins: ClassVar[type[MeasuringProgress | RampUpProgress]] = RampUpProgress

    @classmethod
    def set_up(
        cls, place: OpenPlace, parameters: HammerdbParameters, *, endpoint: Server, directory: PurePosixPath
    ) -> HammerdbBench:
        """Makes the directory, and puts what observes HammerDB there."""
        scratch = directory / "hammerdb"
        place.require(["mkdir", "-p", "-m", "700", str(scratch)], hint="check the disk of the place")
        observer = resources.files("fairtrial.workloads.hammerdb").joinpath(OBSERVER).read_bytes()
        place.agent.put(str(scratch / OBSERVER), observer)
        return cls(place, parameters, endpoint, home=find(place, parameters), scratch=scratch)

    def build(self) -> ToolRun:
        """Fills the database."""
        text = script.building(self.parameters, self.endpoint, observer=self.scratch / OBSERVER)
        process_options: ProcessOptions = {"environment": {}, "processors": None, "groups": ()}
        return self._execute(text, name="build", limit_s=LOAD_S, process_options=process_options)

    @property
    def window(self) -> Life:
        """Ramp-up, window, and the users' late end, in one process."""
        late_s = script.PROFILE_S if self.parameters.time_profile else script.END_S
        return Life(self.parameters.ramp_up + self.parameters.duration + late_s, None, seed=None)

    def run(self, life: Life, drive: Drive, *, name: str) -> ToolRun:
        """Its one life, which says itself when it begins to measure."""
        text = script.driving(self.parameters, self.endpoint, observer=self.scratch / OBSERVER)
        clock = self.place.agent.clock()

        def hear(line: str) -> None:
            if begun := BEGUN.match(line):
                time_ns = HammerdbClock.of(clock, clock).monotonic_ns(int(begun[1]))
                drive.on_progress(MeasuringProgress(time_ns=time_ns))

        return self._execute(text, name=name, limit_s=life.limit_s, process_options=drive.process_options, on_line=hear)

    def measured(self, ran: ToolRun, drive: Drive, clock: wire.Reading) -> tuple[Window, str]:
        """Keeps what HammerDB counted in its window, and its counter's intervals."""
        clocks = HammerdbClock.of(clock, self.place.agent.clock())
        if clocks.moved_ns > CLOCK_MOVES_NS + SLEWED * (ran.life.end_ns - ran.life.start_ns):
            moved_s = clocks.moved_ns / 1e9
            return ran.life, f"the place's clock, which HammerDB's window depends on, was set by {moved_s:.2f} s"
        try:
            result = output.result(ran.text, clocks)
        except PlaceError as error:
            return ran.life, str(error)
        timeline = output.timeline(ran.text, clocks, interval_s=int(self.parameters.interval))
        self.leave(drive, ran, result=result, files={"timeline.parquet": timeline})
        return result.window, self._why_invalid(result)

    def _why_invalid(self, result: output.HammerdbResult) -> str:
        """Why a trial is invalid; empty if it is valid."""
        if result.nopm <= 0:
            return "HammerDB counted no new order inside its window"
        if result.tpm <= 0:
            return f"the server's counts of transactions were reset inside HammerDB's window: {result.tpm} TPM"
        window_s = (result.window.end_ns - result.window.start_ns) / 1e9
        divisor_s = 60.0 * result.minutes
        if abs(window_s / divisor_s - 1) > WINDOW_DEVIATION:
            return f"HammerDB divides its counts by {divisor_s:.0f} s, and {window_s:.1f} s lay between them"
        if self.parameters.time_profile and not result.latency_ms:
            return "HammerDB printed no time profile"
        return ""

    def _execute(
        self, text: str, *, name: str, limit_s: float, process_options: ProcessOptions, on_line: OnLine | None = None
    ) -> ToolRun:
        path = self.scratch / f"{name}.tcl"
        self.place.agent.put(str(path), text.encode(), mode=0o600)
        process_options["environment"] = {**process_options["environment"], "TMP": str(self.scratch)}
        program = replace(PROGRAM, clean=partial(_without_passwords, password=self.endpoint.password))
        invocation = Invocation(name, self.home, limit_s, process_options, on_line=on_line)
        return program.run(self.place, ["tcl", "auto", str(path)], invocation)
