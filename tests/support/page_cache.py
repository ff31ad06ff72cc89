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


def keep() -> None:
    """Puts a file over the kernel's, for this process and those that it starts; as another user than root, nothing."""
    if os.geteuid() != 0:
        return
    library = ctypes.CDLL(None)
    flags = ctypes.c_ulong
    with tempfile.NamedTemporaryFile() as stand_in:
        calls = (
            ("unshare", (_CLONE_NEWNS,)),
            ("mount", (b"none", b"/", None, flags(_MS_REC | _MS_PRIVATE), None)),
            ("mount", (stand_in.name.encode(), bytes(DROP), None, flags(_MS_BIND), None)),
        )
        for name, arguments in calls:
            if getattr(library, name)(*arguments) != 0:
                return  # a container may not: its tests take longer
