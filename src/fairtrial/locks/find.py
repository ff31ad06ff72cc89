"""Finding the lock library on this machine."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import PlaceError

NAME = "libfairtrial_locks.so"


def library() -> Path:
    """The shared object to preload: it lies in this package, in a wheel as in a checkout that was set up.

    Raises:
        PlaceError: it is not there.
    """
    path = Path(__file__).with_name(NAME)
    if not path.is_file():
        raise PlaceError(
            f"no lock library: {path} does not exist",
            hint="install fairtrial as a wheel for x86-64 Linux, or run `make setup` in a checkout",
        )
    return path
