"""Disks with prepared data: a file system that mkfs fills from a directory of this machine, with nothing mounted.

Owns where they are and what they hold. Whoever prepares data says when.
"""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairtrial.wire.open_place import OpenPlace

FORMAT = ("mkfs.xfs", "-q", "-m", "reflink=1")  # it can reflink: prepared data are restored in constant time
FORMAT_S = 3600.0  # of what is prepared, written once more
MOST_FILE_BYTES = (1 << 31) - 1  # mkfs.xfs reads a file whole, and counts its bytes in 31 bits
PREPARED = "prepared"  # below the state directory, of this machine as of a guest
DIRECTORY, NEW = "data", "running"  # disks; where they grow, which is emptied when a guest next boots
END = "$"
PERMISSIONS = 0o777


def path(state: Path, *, key: str, size: int) -> Path:
    """The disk with the data of a key, among a place's own files; a disk of another size is another file system."""
    return state / DIRECTORY / f"{key}-{size}"


def make(host: OpenPlace, state: Path, *, key: str, size: int) -> bool:
    """Makes it from what was prepared on this machine; it gets its name when it is whole.

    Args:
        host: this machine.
        state: directory of a place's own files.
        key: of data that are prepared.
        size: of the disk, bytes.

    Returns:
        False where mkfs cannot write such files.

    Raises:
        PlaceError: there is no mkfs.xfs, or not enough room.
    """
    source, target = Path(host.state_directory) / PREPARED / key, path(state, key=key, size=size)
    lines = listing(source, below=(PREPARED, key))
    if lines is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    (state / NEW).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=state / NEW) as temporary:
        image, listed = Path(temporary) / "disk", Path(temporary) / "listing"
        listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with image.open("wb") as file:
            file.truncate(size)
        # By this machine's agent, which ends it if the control plane dies.
        host.require(
            [*FORMAT, "-p", str(listed), str(image)],
            hint="install xfsprogs; is there room on the disk, and is `place.vm.disk` large enough for the data?",
            timeout_s=FORMAT_S,
        )
        image.replace(target)
    return True


def listing(source: Path, *, below: tuple[str, ...]) -> list[str] | None:
    """A directory as mkfs.xfs(8) takes it (`-p`), in directories `below` the root; None for what it cannot express."""
    made = [f"{name} d--755 0 0" for name in below]
    try:
        content = list(_content(source))
    except ValueError:
        return None
    return [str(source), "0 0", "d--755 0 0", *made, *content, *[END] * (len(below) + 1)]


def _content(directory: Path) -> Iterator[str]:
    """Entries of a directory; names and paths end at white space.

    Raises:
        ValueError: something there cannot be listed.
    """
    for entry in sorted(directory.iterdir()):
        status = entry.lstat()
        special = stat.S_IMODE(status.st_mode) & ~PERMISSIONS
        owned = f"{stat.S_IMODE(status.st_mode):03o} {status.st_uid} {status.st_gid}"
        if len(str(entry).split()) != 1 or special:
            raise ValueError(entry)
        if stat.S_ISDIR(status.st_mode):
            yield f"{entry.name} d--{owned}"
            yield from _content(entry)
            yield END
        elif stat.S_ISREG(status.st_mode) and status.st_size <= MOST_FILE_BYTES:
            yield f"{entry.name} ---{owned} {entry}"
        else:
            raise ValueError(entry)
