"""pgbench at a place: which one it is, its files, and its processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.wire import arriving
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.pgbench import arguments
from fairtrial.workloads.pgbench.arguments import Life
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.pgbench.scripts import line_of
from fairtrial.workloads.program import Program, Ran, Running
from fairtrial.workloads.workload import Drive, Starting

HINT: Final = "install pgbench 15 or newer at the place (apt install postgresql)"
VERSION: Final = re.compile(r"pgbench \(PostgreSQL\) ([0-9]+)")
OLDEST: Final = 15  # the first that tries again after deadlocks, and says what became of every transaction
# Debian's pgbench is a script that looks for one: what it finds is what runs, and what is hashed.
FIND: Final = """
found=$(command -v pgbench) || exit 1
found=$(readlink -f "$found")
case $found in */pg_wrapper) found=$(ls -d /usr/lib/postgresql/*/bin/pgbench | sort -V | tail -n 1);; esac
[ -x "$found" ] && echo "$found"
"""
LOAD_S: Final = 24 * 3600.0
DRIVE_GRACE_S: Final = 300.0  # beyond what is asked: connections are opened, and the last transactions end
COUNTED_S: Final = 6 * 3600.0  # a life by count; slower servers are broken
STOP_S: Final = 10.0
FAILED: Final = re.compile(
    r"^(?:psql:.*: |(?:\S*/)?pgbench: )(?!hint:|detail:|setting random seed)(?:error: |fatal: )?(.*)$"
)
HARMLESS: Final = re.compile(r": warning: |^pgbench: setting |^(?:\S*/)?pgbench: hint: ")
ABORTED: Final = re.compile(r"client [0-9]+ (script [0-9]+ )?aborted|Run was aborted|perhaps the backend died")
NUMBERED: Final = re.compile(r"script ([0-9]+) aborted in command ([0-9]+)")
CLIENT: Final = re.compile(r"client [0-9]+ ")
WORDS: Final = 400  # characters of pgbench's own that are kept of a failure
LAST_LINES: Final = 5
LOG: Final = "transactions"


def words(lines: Sequence[str]) -> str:
    """What pgbench or psql says about a failure; what many clients say alike is said once."""
    said = [line.strip() for line in lines if FAILED.match(line) and not HARMLESS.search(line)]
    once = {CLIENT.sub("", line): line for line in reversed(said)}
    return "; ".join(reversed(once.values()))[:WORDS] or "; ".join(lines[-LAST_LINES:])[-WORDS:]


PROGRAM: Final = Program("pgbench", HINT, words=words, stop_s=STOP_S)


def identify(place: OpenPlace) -> dict[str, str]:
    """Which pgbench this is.

    Raises:
        PlaceError: there is none, or one that is too old.
    """
    path = place.require(["sh", "-c", FIND], hint=HINT).strip()
    version = place.require([path, "--version"], hint=HINT).strip()
    found = VERSION.match(version)
    if found is None or int(found[1]) < OLDEST:
        raise PlaceError(f"{path} says it is `{version}`: pgbench {OLDEST} or newer is needed", hint=HINT)
    digest = place.require(["sha256sum", path], hint=HINT).split()[0]
    return {"pgbench": path, "pgbench_version": version, "pgbench_sha256": digest}


@dataclass(frozen=True)
class Bench:
    """pgbench with its files in a directory of the place.

    Attributes:
        program: where pgbench is; psql lies beside it.
        environment: where the server is.
    """

    place: OpenPlace
    asked: PgbenchParameters
    directory: PurePosixPath
    program: PurePosixPath
    environment: dict[str, str]

    @classmethod
    def set_up(
        cls, place: OpenPlace, asked: PgbenchParameters, *, program: str, endpoint: Any, directory: PurePosixPath
    ) -> Bench:
        """Puts the scripts, and where the server is, into the directory."""
        passwords = directory / "pgpass"
        place.agent.put(str(passwords), arguments.password_file(endpoint).encode(), mode=0o600)
        files = [file for _name, _weight, file in asked.scripts if file]
        for file in files:
            place.agent.put(str(directory / "scripts" / file.name), file.text.encode())
        if asked.init is not None:
            place.agent.put(str(directory / "init" / asked.init.name), asked.init.text.encode())
        place.require(["mkdir", "-p", str(directory / "scripts")], hint="check the place's disk")
        environment = arguments.environment(endpoint, passwords=passwords)
        return cls(place, asked, directory, PurePosixPath(program), environment)

    def prepare(self) -> str:
        """Fills the database; returns why it failed, empty if it did not."""
        starting: Starting = {"environment": self.environment, "processors": None, "groups": ()}
        failure = ""
        if self.asked.tables_scale is not None:
            running = Running("initialize", self.directory, LOAD_S, starting)
            failure = self._pgbench.run(self.place, arguments.initialize(self.asked), running).failure
        if self.asked.init is not None and not failure:
            running = Running("init", self.directory / "init", LOAD_S, starting)
            psql = replace(PROGRAM, name="psql", command=arguments.clean([str(self.program.with_name("psql"))]))
            argv = arguments.make(self.asked, file=self.directory / "init" / self.asked.init.name)
            failure = psql.run(self.place, argv, running).failure
        return failure

    def run(self, life: Life, drive: Drive, *, name: str) -> Ran:
        """Drives for one life; what pgbench prints becomes part of the trial's record."""
        starting = drive.starting
        starting["environment"] = {**self.environment, **starting["environment"]}
        running = Running(name, self.directory / "scripts", (life.duration_s or COUNTED_S) + DRIVE_GRACE_S, starting)
        ran = self._pgbench.run(self.place, arguments.run(self.asked, life), running)
        self.place.agent.put(str(drive.directory / "log" / f"{name}.log"), ran.text.encode(), mode=0o644)
        if ran.failure:
            return replace(ran, failure=self._located(ran.failure))
        if any(ABORTED.search(line) for line in ran.lines if line.startswith("pgbench: ")):
            said = self._located(words(ran.lines))
            return replace(ran, failure=f"pgbench ended with exit code 0, and said: {said}")
        return ran

    def logs(self, into: Path) -> list[Path]:
        """Every thread's log of transactions, brought here.

        Raises:
            PlaceError: there is none.
        """
        listed = self.place.require(["ls", str(self.directory / "log")], hint="check the place's disk").split()
        names = sorted(name for name in listed if name.startswith(f"{LOG}."))
        paths = [arriving.local_path(into, name) for name in names]
        for name, path in zip(names, paths, strict=True):
            self.place.agent.get_to(str(self.directory / "log" / name), path)
        return paths

    def log_prefix(self) -> PurePosixPath:
        """For the names of logs, in a directory that is there."""
        self.place.require(["mkdir", "-p", str(self.directory / "log")], hint="check the place's disk")
        return self.directory / "log" / LOG

    @property
    def _pgbench(self) -> Program:
        return replace(PROGRAM, command=arguments.clean([str(self.program)]))

    def _located(self, said: str) -> str:
        """The same words with the script's name and line in the place of numbers."""

        def named(found: re.Match[str]) -> str:
            number, command = int(found[1]), int(found[2])
            if number >= len(self.asked.scripts):
                return found[0]
            name, _weight, file = self.asked.scripts[number]
            line = line_of(file.text, command) if file else None
            return f"{file.name if file else name}{f':{line}' if line else ''} aborted in command {command}"

        return NUMBERED.sub(named, said)
