"""The initial file system of a guest: the agent, the modules it needs, and what it shall do.

Source of the format: Documentation/driver-api/early-userspace/buffer-format.rst (newc).
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from fairtrial.protocol.generated import Boot

MAGIC = b"070701"
ALIGNMENT = 4
DIRECTORY = stat.S_IFDIR | 0o755
PROGRAM = stat.S_IFREG | 0o755
FILE = stat.S_IFREG | 0o644
DIRECTORIES = ("dev", "proc", "sys", "fairtrial", "fairtrial/modules")
END = "TRAILER!!!"
MODULE = "/fairtrial/modules/{name}.ko"


class Archive:
    """Writes entries one after another."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._written = 0
        self._entries = 0

    def add(self, name: str, mode: int, data: bytes = b"") -> None:
        """Adds a directory or file; parents first."""
        self._entries += 1
        path = name.encode() + b"\0"
        fields = (self._entries, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        self._write(MAGIC + b"".join(b"%08X" % field for field in fields) + path)
        self._write(data)

    def end(self) -> None:
        """Nothing comes after this."""
        self.add(END, 0)

    def _write(self, data: bytes) -> None:
        padding = -(self._written + len(data)) % ALIGNMENT
        self._file.write(data + b"\0" * padding)
        self._written += len(data) + padding


def write(target: Path, *, agent: Path, modules: Mapping[str, bytes], boot: Boot) -> None:
    """Writes the initial file system; `modules` by name, in the order of loading, which `boot` is given."""
    listed = boot.model_copy(update={"modules": [MODULE.format(name=name) for name in modules]})
    with target.open("wb") as file:
        archive = Archive(file)
        for directory in DIRECTORIES:
            archive.add(directory, DIRECTORY)
        archive.add("fairtrial/agent", PROGRAM, agent.read_bytes())
        for name, module in modules.items():
            archive.add(MODULE.format(name=name).lstrip("/"), FILE, module)
        archive.add("fairtrial/boot.json", FILE, listed.model_dump_json().encode())
        archive.end()
