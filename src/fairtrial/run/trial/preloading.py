"""The lock library at the place: put there for a trial's server, and its counts kept among the raw files."""

from __future__ import annotations

from pathlib import PurePosixPath

from fairtrial.errors import PlaceError
from fairtrial.locks import library
from fairtrial.settings.locks import COUNTS, LIBRARY
from fairtrial.settings.steps.effect import Effect
from fairtrial.wire.open_place import OpenPlace

# Not moved, and through no link: the directory is the server's user's, and what is kept is fetched as root.
KEEP = 'mkdir -p "$2" && find "$1" -maxdepth 1 -type f -name "$3.*" -exec cp -P -t "$2" {} +'


def put(place: OpenPlace, effect: Effect, directory: PurePosixPath, *, served: bool) -> None:
    """Puts the library where the server finds it, if one is to be preloaded.

    Raises:
        PlaceError: there is no server of the system's own to preload it into, or no library on this machine.
    """
    if effect.preloaded is None:
        return
    if not served:
        raise PlaceError(
            "settings.locks preloads a library into the system's server, and this system has none",
            hint="take a system that runs a server, such as mariadb, mysql or postgres",
        )
    place.agent.put(str(directory / LIBRARY), library(), mode=0o755)


def keep(place: OpenPlace, effect: Effect, remote: PurePosixPath) -> None:
    """Copies what was counted to the trial's raw files: `locks/lock-counts.PID`, one file per process."""
    if effect.preloaded is not None and effect.preloaded.count:
        argv = ["sh", "-c", KEEP, "keep", str(remote / "server"), str(remote / "out" / "locks"), COUNTS]
        place.require(argv, hint="check the place's disk")
