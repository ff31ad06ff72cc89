"""pgbench at a place: which one it is, its files, its processes, and the files made from what they print and log."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import Server
from fairtrial.record.models import Window
from fairtrial.wire import arriving
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import tool
from fairtrial.workloads.pgbench import arguments, measuring
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.pgbench.scripts import line_of
from fairtrial.workloads.pgbench.transactions import FILE
from fairtrial.workloads.tool import LOAD_S, WORDS, Invocation, Life, ToolRun
from fairtrial.workloads.workload import Drive, ProcessOptions

VERSION: Final = re.compile(r"pgbench \(PostgreSQL\) ([0-9]+)")
OLDEST: Final = 15  # the first that tries again after deadlocks, and says what became of every transaction
# Debian's pgbench is a script that looks for one: what it finds is what runs, and what is hashed.
FIND: Final = """
found=$(command -v pgbench) || exit 1
found=$(readlink -f "$found")
case $found in */pg_wrapper) found=$(ls -d /usr/lib/postgresql/*/bin/pgbench | sort -V | tail -n 1);; esac
[ -x "$found" ] && echo "$found"
"""
FAILED: Final = re.compile(
    r"^(?:psql:.*: |(?:\S*/)?pgbench: )(?!hint:|detail:|setting random seed)(?:error: |fatal: )?(.*)$"
)
HARMLESS: Final = re.compile(r": warning: |^pgbench: setting |^(?:\S*/)?pgbench: hint: ")
ABORTED: Final = re.compile(r"client [0-9]+ (script [0-9]+ )?aborted|Run was aborted|perhaps the backend died")
NUMBERED: Final = re.compile(r"script ([0-9]+) aborted in command ([0-9]+)")
CLIENT: Final = re.compile(r"client [0-9]+ ")
LOG: Final = "transactions"


def words(lines: Sequence[str]) -> str:
    """What pgbench or psql says about a failure; what many clients say alike is said once."""
    said = [line.strip() for line in lines if FAILED.match(line) and not HARMLESS.search(line)]
    once = {CLIENT.sub("", line): line for line in reversed(said)}
    return "; ".join(reversed(once.values()))[:WORDS] or tool.last_words(lines)


def _usable(version: str) -> bool:
    match = VERSION.match(version)
    return match is not None and int(match[1]) >= OLDEST


def _trouble(lines: Sequence[str]) -> str:
    aborted = any(ABORTED.search(line) for line in lines if line.startswith("pgbench: "))
    return words(lines) if aborted else ""


PROGRAM: Final = tool.Tool(
    "pgbench",
    "install pgbench 15 or newer at the place (apt install postgresql)",
    words=words,
    find=FIND,
    usable=_usable,
    needed=f"expected pgbench {OLDEST} or newer",
    trouble=_trouble,
)


@dataclass(frozen=True)
class PgbenchBench(tool.Bench):
    """pgbench with its files in a directory of the place.

    Attributes:
        path: of pgbench; psql lies beside it.
        environment: where the server is.
    """

    parameters: PgbenchParameters
    directory: PurePosixPath
    path: PurePosixPath
    environment: dict[str, str]

    @classmethod
    def set_up(
        cls, place: OpenPlace, parameters: PgbenchParameters, path: str, *, endpoint: Server, directory: PurePosixPath
    ) -> PgbenchBench:
        """Puts the scripts, and where the server is, into the directory."""
        passwords = directory / "pgpass"
        place.agent.put(str(passwords), arguments.password_file(endpoint).encode(), mode=0o600)
        for _name, _weight, file in parameters.scripts:
            if file is not None:
                place.agent.put(str(directory / "scripts" / file.name), file.text.encode())
        if parameters.init is not None:
            place.agent.put(str(directory / "init" / parameters.init.name), parameters.init.text.encode())
        made = [str(directory / name) for name in ("scripts", "log")]
        place.require(["mkdir", "-p", *made], hint="check the disk of the place")
        environment = arguments.environment(endpoint, passwords=passwords)
        return cls(place, parameters, directory, PurePosixPath(path), environment)

    def prepare(self) -> str:
        """Fills the database; returns why it failed, empty if it did not."""
        process_options: ProcessOptions = {"environment": self.environment, "processors": None, "groups": ()}
        failure = ""
        if self.parameters.tables_scale is not None:
            invocation = Invocation("initialize", self.directory, LOAD_S, process_options)
            failure = self._pgbench.run(self.place, arguments.initialize(self.parameters), invocation).failure
        if self.parameters.init is not None and not failure:
            invocation = Invocation("init", self.directory / "init", LOAD_S, process_options)
            psql = replace(PROGRAM, name="psql", command=arguments.clean([str(self.path.with_name("psql"))]))
            argv = arguments.make(self.parameters, file=self.directory / "init" / self.parameters.init.name)
            failure = psql.run(self.place, argv, invocation).failure
        return failure

    def run(self, life: Life, drive: Drive, *, name: str) -> ToolRun:
        """One life, whose failure is told with the script's name and line in the place of numbers."""
        process_options = drive.process_options
        process_options["environment"] = {**self.environment, **process_options["environment"]}
        invocation = Invocation(name, self.directory / "scripts", life.limit_s, process_options)
        ran = self._pgbench.run(self.place, arguments.run(self.parameters, life), invocation)
        return replace(ran, failure=NUMBERED.sub(self._located, ran.failure))

    def measured(self, ran: ToolRun, drive: Drive, clock: wire.Reading) -> tuple[Window, str]:
        """Keeps what pgbench's log of transactions gives, and the log itself if it is asked for."""
        with tempfile.TemporaryDirectory() as scratch:
            measurement = measuring.measured(ran, self._logs(Path(scratch)), parameters=self.parameters, clock=clock)
            files = {name: it for name, it in measurement.files.items() if name != FILE or self.parameters.keep_log}
            tool.keep(self.place, drive, files)
        reason = "" if measurement.done else "pgbench ended no transaction inside the measurement window"
        return measurement.window or ran.life, reason

    def _logs(self, into: Path) -> list[Path]:
        """Every thread's log of transactions, brought here.

        Raises:
            PlaceError: there is none.
        """
        listed = self.place.require(["ls", str(self.log.parent)], hint="check the disk of the place").split()
        names = sorted(name for name in listed if name.startswith(f"{LOG}."))
        paths = [arriving.local_path(into, name) for name in names]
        for name, path in zip(names, paths, strict=True):
            self.place.agent.get_to(str(self.log.parent / name), path)
        return paths

    @property
    def log(self) -> PurePosixPath:
        """The beginning of the names of logs."""
        return self.directory / "log" / LOG

    @property
    def _pgbench(self) -> tool.Tool:
        return replace(PROGRAM, command=arguments.clean([str(self.path)]))

    def _located(self, match: re.Match[str]) -> str:
        number, command = int(match[1]), int(match[2])
        if number >= len(self.parameters.scripts):
            return match[0]
        name, _weight, file = self.parameters.scripts[number]
        line = line_of(file.text, command) if file else None
        return f"{file.name if file else name}{f':{line}' if line else ''} aborted in command {command}"
