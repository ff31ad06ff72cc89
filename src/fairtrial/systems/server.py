"""What private database servers have in common: their programs found and identified, started, waited for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.systems.system import Identity, Launch
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace

START_S: Final = 120.0  # recovery after a crash takes minutes with large memory, a prepared directory seconds
POLL_S: Final = 0.1
LOG_LINES: Final = 25


def first_of(place: OpenPlace, programs: Sequence[str]) -> str | None:
    """The first that is there to be run, as its path; None if none is."""
    for program in programs:
        found = place.execute(["sh", "-c", 'command -v -- "$1"', "sh", program])
        if found.code == 0:
            return found.output.strip()
    return None


def missing(name: str, tried: Sequence[str], *, hint: str) -> PlaceError:
    """That a program was not found, and where it was looked for."""
    return PlaceError(f"no {name} at this place (looked for {', '.join(tried)})", hint=hint)


def identified(place: OpenPlace, argv: Sequence[str]) -> Identity:
    """Version, hash and path of a server's program; `argv` runs it to print its version."""
    binary = argv[0]
    version = place.require(argv, hint="the server binary must run").strip()
    digest = place.require(["sha256sum", binary], hint="the server binary must be readable").split()[0]
    return Identity(version=version, sha256=digest, facts={"binary": binary})


def spawned(place: OpenPlace, argv: Sequence[str], launch: Launch) -> Process:
    """Starts a server in its work directory, with all that it says in its log."""
    log = {"kind": "file", "path": str(launch.log_path)}
    return place.agent.spawn(
        name="server",
        argv=list(argv),
        environment=dict(launch.environment),
        directory=str(launch.work_directory),
        user=place.server_user,
        processors=list(launch.processors) if launch.processors is not None else None,
        stdout=log,
        stderr=log,
    )


def wait_until_ready(place: OpenPlace, process: Process, launch: Launch, *, looks: Sequence[str], kind: str) -> None:
    """Waits until the command `looks` succeeds at the place.

    Raises:
        SystemStartError: the server, a system of this `kind`, has exited, or is not ready within `START_S`.
    """
    deadline = time.monotonic() + START_S
    while place.execute(looks).code != 0:
        if process.exited is not None or time.monotonic() > deadline:
            happened = "exited at start" if process.exited is not None else f"did not answer within {START_S:.0f} s"
            raise SystemStartError(
                f"the {kind} server {happened}; its own last lines:\n{log_tail(place, launch.log_path)}",
                hint=f"mend system.{kind}.options, or look for what else its log names",
            )
        time.sleep(POLL_S)


def log_tail(place: OpenPlace, log_path: PurePosixPath) -> str:
    """The server's last log lines."""
    return place.execute(["tail", "-n", str(LOG_LINES), str(log_path)]).output


def require_in_effect(wrong: Sequence[str], *, hint: str) -> None:
    """Raises SystemStartError, unless nothing is `wrong`; each entry says of one option what was asked and found."""
    if wrong:
        raise SystemStartError("options that are not in effect: " + "; ".join(wrong), hint=hint)
