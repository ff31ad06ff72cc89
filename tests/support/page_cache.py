"""The page cache of the machine that tests share.

As root, every trial drops it: right for a trial, but each of thousands would make all processes beside it read their
programs anew. Tests therefore write into a file of their own instead of the kernel's. Guests have a kernel of their
own, whose cache is dropped.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import Final

DROP: Final = Path("/proc/sys/vm/drop_caches")
_CLONE_NEWNS: Final = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 1 << 18
_LIBRARY: Final = ctypes.CDLL(None)


def keep() -> None:
    """Puts a file over the kernel's, for this process and those that it starts; as another user than root, nothing."""
    private = ctypes.c_ulong(_MS_REC | _MS_PRIVATE)
    # A container may not: its tests take longer.
    if os.geteuid() == 0 and _LIBRARY.unshare(_CLONE_NEWNS) == 0 and _mount(b"none", b"/", private) == 0:
        with tempfile.NamedTemporaryFile() as stand_in:
            _mount(stand_in.name.encode(), bytes(DROP), ctypes.c_ulong(_MS_BIND))


def dropping(*command: str | Path) -> list[str | Path]:
    """A command whose trials drop the kernel's page cache, for what is about a cold one; trials beside it still do not.

    They would add misses to what it counts, as often as one begins.
    """
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    if not any(line.split()[4] == str(DROP) for line in mounts):
        return [*command]
    return ["unshare", "--mount", "sh", "-ec", f'umount {DROP}; exec "$@"', "sh", *command]


def _mount(source: bytes, target: bytes, flags: ctypes.c_ulong) -> int:
    return int(_LIBRARY.mount(source, target, None, flags, None))
