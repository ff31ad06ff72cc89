"""Parts of a page, each with the version at which it last changed: whoever has seen a version gets what is newer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Final

VERSIONS: Final = itertools.count(
    1
)  # of the process: a page that is made anew begins with none that a browser has seen


@dataclass
class Fragments:
    """HTML by the id of its element.

    Attributes:
        version: grows with every change of any part.
    """

    version: int = 0
    parts: dict[str, tuple[int, str]] = field(default_factory=dict)

    def put(self, name: str, html: str) -> None:
        """A part as it is now; the same as before changes nothing."""
        if self.parts.get(name, (0, ""))[1] != html:
            self.version = next(VERSIONS)
            self.parts[name] = (self.version, html)

    def since(self, version: int) -> dict[str, str]:
        """Parts that changed after a version."""
        return {name: html for name, (at, html) in list(self.parts.items()) if at > version}

    def html(self, name: str) -> str:
        """One part; empty if there is none."""
        return self.parts.get(name, (0, ""))[1]
