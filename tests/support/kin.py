"""A process with all that it began, and the processor time that they took."""

from __future__ import annotations

import os
from pathlib import Path

from fairtrial.run.processes import parent, ticks


def descendants(process: int) -> list[int]:
    """A process and all below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = parent(int(entry.name))
            except OSError:
                continue
    found = [process]
    for each in found:  # grows meanwhile
        found += [child for child, above in parents.items() if above == each]
    return found


def used_s(process: int) -> float:
    """Its processor time so far, seconds."""
    return ticks(process) / os.sysconf("SC_CLK_TCK")
