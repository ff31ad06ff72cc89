"""Directories at a place: made, owned, filled from prepared data, fetched, removed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.wire import arriving
from fairtrial.wire.open_place import OpenPlace

FETCH_S = 600.0
MAKE_HINT = "check permissions and free space of the place's state directory"
LISTING_BYTES = 64 << 20
LAST_LINES, MOST_CHARACTERS = 5, 1000  # of a log that are told as the reason of a failure
DEEPEST = 64  # directories above a fetched file: what makes or walks them recurses
NAME_CHARACTERS = 12  # of the hash: a Unix socket's path may have 107 bytes in all (unix(7))
# Of names that one place offers with each other, or with what this machine takes for a name.
CLASHES: Final = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)


def work_directory(place: OpenPlace, *parts: str) -> PurePosixPath:
    """Where one trial works. Short, because sockets live below it."""
    name = hashlib.sha256("/".join(parts).encode()).hexdigest()[:NAME_CHARACTERS]
    return place.state_directory / "work" / name


def make(place: OpenPlace, directory: PurePosixPath) -> None:
    """Creates a directory and its parents."""
    place.require(["install", "-d", "-m", "755", str(directory)], hint=MAKE_HINT)


def make_private(place: OpenPlace, directory: PurePosixPath, *, user: str | None) -> None:
    """Creates a directory of the server's own user. A private server asks for no password, so nobody else may enter."""
    owner = ["-o", user] if user else []
    place.require(["install", "-d", "-m", "700", *owner, str(directory)], hint=MAKE_HINT)


def remove(place: OpenPlace, directory: PurePosixPath) -> None:
    """Removes a directory with everything below it; it need not exist."""
    if place.state_directory not in directory.parents:
        raise AssertionError(f"refusing to remove {directory}: not below {place.state_directory}")
    argv = ["rm", "-rf", "--one-file-system", "--", str(directory)]  # what is mounted below is not this trial's
    place.require(argv, hint="remove it by hand", timeout_s=FETCH_S)


def last_words(place: OpenPlace, path: PurePosixPath) -> str:
    """The end of a log, for a sentence about its program; empty if it is."""
    lines = place.execute(["tail", "-n", str(LAST_LINES), str(path)])
    words = "; ".join(lines.output.split("\n")).strip()[-MOST_CHARACTERS:] if lines.code == 0 else ""
    return f"; the end of {path.name}: {words}" if words else ""


def fetch(place: OpenPlace, directory: PurePosixPath, local: Path) -> None:
    """Copies every file below a place's directory into a local one.

    Raises:
        PlaceError: the place offers a name outside the directory, one that cannot be a file's beside the others, too
            many files or too many bytes.
    """
    left = arriving.TRIAL_BYTES
    for name in _listed(place, directory):
        target = arriving.local_path(local, name)
        if name.count("/") > DEEPEST:
            raise _refused(name, why=f"it lies more than {DEEPEST} directories deep")
        with _clashes_explained(name):
            target.parent.mkdir(parents=True, exist_ok=True)
            left -= place.agent.get_to(str(directory / name), target, most_bytes=min(left, arriving.FILE_BYTES))


@contextlib.contextmanager
def _clashes_explained(name: str) -> Iterator[None]:
    """Around the making of a file that a place names.

    Raises:
        PlaceError: its path is too long, or a file, link or directory stands where it or its directory belongs.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in CLASHES:
            raise
        raise _refused(name, why=error.strerror or str(error)) from error


def _refused(name: str, *, why: str) -> PlaceError:
    return PlaceError(
        f"the trial left a file named {name!r:.200}, which cannot be made in the record: {why}",
        hint="let the program write files with short paths into the trial's directory, and none below another file",
    )


def _listed(place: OpenPlace, directory: PurePosixPath) -> list[str]:
    """Names of the files below a place's directory, however many and however they are spelt."""
    listing = directory.with_name(f"{directory.name}.list")  # a file, as output comes in lines and is cut
    argv = ["sh", "-c", 'find "$1" -type f -printf "%P\\0" > "$2"', "sh", str(directory), str(listing)]
    place.require(argv, hint="the trial's directory vanished", timeout_s=FETCH_S)
    listed = place.agent.get(str(listing), most_bytes=LISTING_BYTES)
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    if len(names) > arriving.TRIAL_FILES:
        raise PlaceError(
            f"the trial left {len(names):,} files: at most {arriving.TRIAL_FILES:,} are taken",
            hint="let the program write fewer files into the trial's directory, or pack them",
        )
    return names
