"""sysbench at a place: which one it is, its files, and its processes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.program import Program, Ran, Running
from fairtrial.workloads.sysbench import arguments
from fairtrial.workloads.sysbench.arguments import Life
from fairtrial.workloads.sysbench.parameters import LuaFile
from fairtrial.workloads.workload import Drive, Starting

HINT: Final = "install sysbench 1.0 at the place (apt install sysbench)"
VERSION: Final = re.compile(r"sysbench 1\.0\.")
OBSERVER: Final = "observing.lua"
SCRIPTS: Final = "scripts"
SCRIPT: Final = "OBSERVED_SCRIPT"
LOAD_S: Final = 24 * 3600.0
DRIVE_GRACE_S: Final = 300.0  # beyond what is asked: connections are opened, and the last events end
EVENTS_S: Final = 6 * 3600.0  # a life by count; slower servers are broken
STOP_S: Final = 10.0
TROUBLE: Final = ("FATAL:", "ALERT:", "PANIC:", "PANIC ", "invalid option:")
WORDS: Final = 400  # characters of sysbench's own that are kept of a failure
LAST_LINES: Final = 5


def _trouble(lines: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(line.strip() for line in lines if line.startswith(TROUBLE)))[:WORDS]


def _words(lines: Sequence[str]) -> str:
    return _trouble(lines) or "; ".join(lines[-LAST_LINES:])[-WORDS:]


PROGRAM: Final = Program("sysbench", HINT, words=_words, stop_s=STOP_S)


def identify(place: OpenPlace) -> dict[str, str]:
    """Which sysbench this is.

    Raises:
        PlaceError: there is none, or one of another generation.
    """
    found = PROGRAM.identify(place)
    version = found["sysbench_version"]
    if not VERSION.match(version):
        said = f"{found['sysbench']} says it is `{version}`: sysbench 1.0 is needed, whose reports are known"
        raise PlaceError(said, hint=HINT)
    return found


@dataclass(frozen=True)
class Bench:
    """sysbench with its files in a directory of the place.

    Attributes:
        script: a name that sysbench knows, or a path.
    """

    place: OpenPlace
    parameters: Mapping[str, Any]
    directory: PurePosixPath
    configuration: PurePosixPath
    script: str

    @classmethod
    def set_up(
        cls, place: OpenPlace, parameters: Mapping[str, Any], *, endpoint: Mapping[str, Any], directory: PurePosixPath
    ) -> Bench:
        """Puts the script, its modules, and where the server is into the directory."""
        configuration = directory / "sysbench.cnf"
        place.agent.put(str(configuration), arguments.connection(endpoint).encode(), mode=0o600)
        own = LuaFile.model_validate(parameters["file"]) if parameters["file"] is not None else None
        modules = [LuaFile.model_validate(each) for each in parameters["modules"]]
        scripts = directory / SCRIPTS  # where `require` looks for modules, and nothing of ours lies
        for file in [*([own] if own else []), *modules]:
            place.agent.put(str(scripts / file.name), file.text.encode())
        observer = resources.files("fairtrial.workloads.sysbench").joinpath(OBSERVER).read_bytes()
        place.agent.put(str(directory / OBSERVER), observer)
        place.require(["mkdir", "-p", str(scripts)], hint="check the place's disk")
        script = str(scripts / own.name) if own else parameters["script"]
        return cls(place, parameters, directory, configuration, script)

    def prepare(self) -> Ran:
        """Fills the database."""
        argv = arguments.prepare(self.parameters, script=self.script, configuration=self.configuration)
        starting: Starting = {"environment": {}, "processors": None, "groups": ()}
        return self._execute(argv, name="prepare", limit_s=LOAD_S, starting=starting)

    def run(self, life: Life, drive: Drive, *, name: str) -> Ran:
        """Drives for one life; what sysbench prints becomes part of the trial's record."""
        observer = str(self.directory / OBSERVER)
        argv = arguments.run(self.parameters, life, script=observer, configuration=self.configuration)
        starting = drive.starting
        starting["environment"] = {**starting["environment"], SCRIPT: self.script}
        limit_s = (life.duration_s or EVENTS_S) + DRIVE_GRACE_S
        ran = self._execute(argv, name=name, limit_s=limit_s, starting=starting)
        self.place.agent.put(str(drive.directory / "log" / f"{name}.log"), ran.text.encode(), mode=0o644)
        return ran

    def _execute(self, argv: Sequence[str], *, name: str, limit_s: float, starting: Starting) -> Ran:
        running = Running(name, self.directory / SCRIPTS, limit_s, starting)
        ran = PROGRAM.run(self.place, argv, running)
        if not ran.failure and (said := _trouble(ran.lines)):  # some of its failures end with 0
            return replace(ran, failure=f"sysbench ended with exit code 0, and said: {said}")
        return ran
