"""Where a server's files come from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

UNUSUAL = re.compile(r"[^A-Za-z0-9.+_-]+")


@dataclass(frozen=True)
class Source:
    """One place to get a server's files from.

    Attributes:
        kind: an artefact of a Maven repository, an archive on this machine, or a Debian package.
        name: its coordinates, its path, its name.
        sha256: of the archive, where it is known beforehand.
    """

    kind: Literal["maven", "archive", "debian"]
    name: str
    sha256: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def slug(self) -> str:
        """The source as the name of a directory."""
        return UNUSUAL.sub("_", f"{self.kind}-{self.name}")
