"""A full or broken disk of this machine, in words. Whoever writes says what, and catches nothing else."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairtrial.errors import PlaceError

# What a disk says, in words; whatever else goes wrong is told as it is.
TROUBLES: Final = {
    errno.ENOSPC: ("no space left on the disk of {}", "free some space"),
    errno.EDQUOT: ("no space left on the disk of {} for this user", "free some space, or raise the quota"),
    errno.EIO: ("the disk of {} reports an error", "look at the kernel's log, and move {} to another disk"),
    errno.EROFS: ("the disk of {} no longer accepts writes", "look at the kernel's log, and mount it writable"),
}


def sync_around(path: Path) -> None:
    """Makes everything in the file system that a path is in durable, by sync(1): of a large tree sooner than each file.

    Raises:
        OSError: the disk reports an error.
    """
    if subprocess.run(["sync", "-f", "--", str(path)], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


@contextlib.contextmanager
def explained(directory: Path, *, written: str) -> Iterator[None]:
    """Turns a disk that is full or broken into an error that says which, and that nothing finished is lost.

    Args:
        directory: that is written to.
        written: what is, as `the record`.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in TROUBLES:
            raise
        what, fix = TROUBLES[error.errno]
        raise PlaceError(
            f"{what.format(directory)} while writing {written}",
            hint=f"{fix.format(written)}, and continue with `fairtrial run … --resume`; all finished trials are kept",
        ) from error
