"""Whether a process has the lock library in effect, and how: it announces itself as the name of a mapping.

A set-uid program, one that is linked statically and one for another system start without it, and without a word of
it; `/proc/PID/environ` shows the variables all the same. So only the announcement counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAPPING = re.compile(r"/memfd:fairtrial-locks (?P<words>.*?)(?: \(deleted\))?$", re.MULTILINE)


@dataclass(frozen=True)
class Announcement:
    """What is in effect in a process.

    Attributes:
        kind: how threads wait, as FAIRTRIAL_LOCK spells it.
        spins: tries, or looks, before sleeping; None: the kind has no such number.
        count: whether it counts.
        fastmutex: what became of a MySQL server's own; None: nothing was asked.
        refused: why the kind that was asked for is not in effect; None: it is.
    """

    kind: str
    spins: int | None
    count: bool
    fastmutex: str | None
    refused: str | None

    @property
    def words(self) -> str:
        """As the mapping's name has it."""
        said = {
            "kind": self.kind,
            "spins": self.spins,
            "count": "yes" if self.count else "no",
            "fastmutex": self.fastmutex,
            "refused": self.refused,
        }
        return " ".join(f"{name}={value}" for name, value in said.items() if value is not None)


def announcement_in(maps: str) -> Announcement | None:
    """What the text of a process's `/proc/PID/maps` says; None: the library is not in it."""
    match = MAPPING.search(maps)
    if match is None:
        return None
    said = dict(word.partition("=")[::2] for word in match["words"].split())
    return Announcement(
        kind=said.get("kind", ""),
        spins=int(said["spins"]) if "spins" in said else None,
        count=said.get("count") == "yes",
        fastmutex=said.get("fastmutex"),
        refused=said.get("refused"),
    )
