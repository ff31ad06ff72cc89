"""Directories at a place: made, owned, filled from prepared data, fetched, removed."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from fairtrial.errors import PlaceError
from fairtrial.wire.open_place import OpenPlace

FETCH_S = 600.0
NAME_CHARACTERS = 12  # of the hash: a Unix socket's path may have 107 bytes in all (unix(7))


def work_directory(place: OpenPlace, *parts: str) -> PurePosixPath:
    """Where one trial works. Short, because sockets live below it."""
    name = hashlib.sha256("/".join(parts).encode()).hexdigest()[:NAME_CHARACTERS]
    return place.state_directory / "work" / name


def make(place: OpenPlace, directory: PurePosixPath, *, owner: str | None = None) -> None:
    """Creates a directory (and its parents), owned by `owner` where the agent is root."""
    argv = ["install", "-d", "-m", "755", *(["-o", owner] if owner else []), str(directory)]
    place.require(argv, hint="check permissions and free space of the place's state directory")


def remove(place: OpenPlace, directory: PurePosixPath) -> None:
    """Removes a directory with everything below it; it need not exist."""
    if place.state_directory not in directory.parents:
        raise AssertionError(f"refusing to remove {directory}: not below {place.state_directory}")
    argv = ["rm", "-rf", "--one-file-system", "--", str(directory)]  # what is mounted below is not this trial's
    place.require(argv, hint="remove it by hand", timeout_s=FETCH_S)


def fetch(place: OpenPlace, directory: PurePosixPath, local: Path) -> None:
    """Copies every file below a place's directory into a local one."""
    listing = place.require(
        ["find", str(directory), "-type", "f", "-printf", "%P\\0"], hint="the trial's directory vanished"
    )
    for name in filter(None, listing.split("\0")):
        target = local / name
        if ".." in PurePosixPath(name).parts:
            raise PlaceError(f"the place offers a file named {name}", hint="is this the agent you meant to talk to?")
        target.parent.mkdir(parents=True, exist_ok=True)
        place.agent.get_to(str(directory / name), target)
