"""What a place might show, written as the kernel writes it, for the modules of findings that see no place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.doctor import PlaceObservation
from support.facts import facts_of

CPU = "/sys/devices/system/cpu"
FACTS: Mapping[str, Any] = {"free_bytes": 100 << 30, "user_id": 0}


def seen(
    files: Mapping[str, str] | None = None, *, facts: Mapping[str, Any] | None = None, **also: Any
) -> PlaceObservation:
    """A place with these files: path → content, as it is read once."""
    lines = {path: tuple(text.splitlines()) for path, text in (files or {}).items()}
    return PlaceObservation(facts=facts_of(**{**FACTS, **(facts or {})}), files=lines, **also)


def sampled(
    before: Mapping[str, str], after: Mapping[str, str], files: Mapping[str, str] | None = None, **also: Any
) -> PlaceObservation:
    """A place whose counters were read twice."""
    first, second = (
        {path: tuple(text.splitlines()) for path, text in readings.items()} for readings in (before, after)
    )
    return seen(files, first=first, second=second, **also)


def stat(*, user: int = 0, idle: int = 0, steal: int = 0, running: int = 1) -> str:
    """/proc/stat of a machine that spent so many ticks."""
    return (
        f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 {user} 0 0 {idle} 0 0 0 {steal} 0 0\nprocs_running {running}"
    )


def process(name: str, ticks: int, *, number: int = 7) -> str:
    """/proc/N/stat of a process that ran so many ticks, half of them in the kernel."""
    user, system = ticks - ticks // 2, ticks // 2
    return f"{number} ({name}) R 1 {number} {number} 0 -1 4194304 100 0 0 0 {user} {system} 0 0 20 0 1 0 1 1 1"
