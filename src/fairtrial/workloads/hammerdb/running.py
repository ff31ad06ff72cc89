"""HammerDB at a place: where it is and which one, its files, and its processes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.hammerdb import script
from fairtrial.workloads.hammerdb.output import Clock
from fairtrial.workloads.hammerdb.parameters import HammerdbParameters
from fairtrial.workloads.tool import GRACE_S, LOAD_S, WORDS, OnLine, Ran, Running, Tool, keep, last_words
from fairtrial.workloads.workload import Drive, Starting

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
PASSWORD: Final = re.compile(r"_(super)?(user)?pass\b")


def _trouble(lines: Sequence[str]) -> str:
    plain = (line.strip() for line in lines)
    return "; ".join(dict.fromkeys(line for line in plain if TROUBLE.search(line)))[:WORDS]


def _words(lines: Sequence[str]) -> str:
    return _trouble(lines) or last_words(lines)


def _without_passwords(lines: Sequence[str], password: str | None) -> list[str]:
    """What HammerDB printed, which repeats every setting; it ends its own lines as for a terminal."""
    plain = [line.strip("\r") for line in lines if not PASSWORD.search(line)]
    return [line for line in plain if not password or password not in line]


# By a path below the directory in which it runs: it finds its own files in no other.
PROGRAM: Final = Tool("./hammerdbcli", HINT, words=_words)


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
class Bench:
    """HammerDB with its files in a directory of the place that only its user can read.

    Attributes:
        home: where HammerDB is.
        scratch: ours; HammerDB keeps its settings there, the password among them.
    """

    place: OpenPlace
    parameters: HammerdbParameters
    endpoint: Mapping[str, Any]
    home: PurePosixPath
    scratch: PurePosixPath

    @classmethod
    def set_up(
        cls, place: OpenPlace, parameters: HammerdbParameters, *, endpoint: Mapping[str, Any], directory: PurePosixPath
    ) -> Bench:
        """Makes the directory, and puts what observes HammerDB there."""
        scratch = directory / "hammerdb"
        place.require(["mkdir", "-p", "-m", "700", str(scratch)], hint="check the disk of the place")
        observer = resources.files("fairtrial.workloads.hammerdb").joinpath(OBSERVER).read_bytes()
        place.agent.put(str(scratch / OBSERVER), observer)
        return cls(place, parameters, endpoint, find(place, parameters), scratch)

    def build(self) -> Ran:
        """Fills the database."""
        text = script.building(self.parameters, self.endpoint, observer=self.scratch / OBSERVER)
        starting: Starting = {"environment": {}, "processors": None, "groups": ()}
        return self._execute(text, name="build", limit_s=LOAD_S, starting=starting)

    def run(self, drive: Drive) -> tuple[Ran, Clock]:
        """Drives; what HammerDB prints becomes part of the trial's record."""
        text = script.driving(self.parameters, self.endpoint, observer=self.scratch / OBSERVER)
        late_s = script.PROFILE_S if self.parameters.time_profile else script.END_S
        limit_s = self.parameters.ramp_up + self.parameters.duration + late_s + GRACE_S
        before_ns = self._ahead_ns()

        def hear(line: str) -> None:
            if begun := BEGUN.match(line):
                time_ns = int(begun[1]) * 1000 - before_ns
                drive.on_progress({"progress": "measuring", "time_ns": time_ns})

        ran = self._execute(text, name="load", limit_s=limit_s, starting=drive.starting, on_line=hear)
        clock = Clock(before_ns, self._ahead_ns())
        keep(self.place, drive, {"log/load.log": ran.text.encode()})
        return ran, clock

    def _ahead_ns(self) -> int:
        now = self.place.agent.clock()
        return now.realtime_ns - now.monotonic_ns

    def _execute(
        self, text: str, *, name: str, limit_s: float, starting: Starting, on_line: OnLine | None = None
    ) -> Ran:
        path = self.scratch / f"{name}.tcl"
        self.place.agent.put(str(path), text.encode(), mode=0o600)
        starting["environment"] = {**starting["environment"], "TMP": str(self.scratch)}
        password = self.endpoint.get("password")
        program = replace(PROGRAM, words=lambda lines: _words(_without_passwords(lines, password)))
        running = Running(name, self.home, limit_s, starting, on_line=on_line)
        ran = program.run(self.place, ["tcl", "auto", str(path)], running)
        ran = replace(ran, lines=_without_passwords(ran.lines, password))
        said = _trouble(ran.lines)
        if said and said not in ran.failure:  # a script goes on after most of what its commands refuse
            return replace(ran, failure=f"{ran.failure or 'HammerDB ended with exit code 0'}, and printed: {said}")
        return ran
