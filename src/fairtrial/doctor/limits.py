"""Findings about limits that end a trial in the middle of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.doctor.grading import graded, unknown
from fairtrial.doctor.looking import PlaceObservation
from fairtrial.record.models import Finding, Grade

# A server opens a file per table and a socket per client, a client as many sockets.
FILES_ENOUGH: Final = 65_536  # thousands of clients and tables
FILES_NEEDED: Final = 1_024  # a few hundred of each: below it a usual study fails
# InnoDB reserves 256 requests for each of 4 to 64 threads; several servers of one machine share what there is.
AIO_ENOUGH: Final = 65_536


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """All of this module, in the order of the table."""
    yield open_files(observation)
    yield aio(observation)


def open_files(observation: PlaceObservation) -> Finding:
    """Soft and hard limit of what the agent starts (getrlimit(2), RLIMIT_NOFILE)."""
    name = "open_files"
    why = "a server or client that cannot open another file or socket fails in the middle of a trial"
    line = next(
        (line for line in observation.files.get("/proc/self/limits", ()) if line.startswith("Max open files")), ""
    )
    words = line.removeprefix("Max open files").split()
    if len(words) < 2:  # noqa: PLR2004 - soft and hard
        return unknown(name, why=why, how="look at `ulimit -Sn` and `ulimit -Hn` at the place")
    hard = FILES_ENOUGH if words[1] == "unlimited" else int(words[1])
    grade: Grade = "unfit" if hard < FILES_NEEDED else "caution" if hard < FILES_ENOUGH else "fine"
    return graded(
        name=name,
        value=f"{words[0]}, can be raised to {words[1]}",
        grade=grade,
        why=why,
        fix=f"raise `nofile` to {FILES_ENOUGH} in /etc/security/limits.conf, and log in again",
    )


def aio(observation: PlaceObservation) -> Finding:
    """Asynchronous requests left for all programs together (fs.aio-max-nr)."""
    name = "aio"
    why = "a server that cannot issue asynchronous requests falls back to slower ones or does not start"
    most, used = observation.number("/proc/sys/fs/aio-max-nr"), observation.number("/proc/sys/fs/aio-nr")
    if most is None or used is None:
        return unknown(name, why=why, how="look at `sysctl fs.aio-max-nr fs.aio-nr` at the place")
    fine = most - used >= AIO_ENOUGH
    return graded(
        name=name,
        value=f"{most - used} of {most} requests left",
        grade="fine" if fine else "caution",
        why=why,
        fix="`sysctl fs.aio-max-nr=1048576`, as root",
    )
