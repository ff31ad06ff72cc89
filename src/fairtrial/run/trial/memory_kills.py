"""Processes that the kernel killed because memory ran out: what a load that ended with signal 9 does not say itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairtrial.errors import SystemStartError
from fairtrial.study.tree.quantities import format_bytes
from fairtrial.wire.open_place import OpenPlace

COUNTER: Final = "oom_kill"  # /proc/vmstat, since Linux 4.13
OF_KERNEL: Final = ("/proc/vmstat",)
# Of control groups of version 2, or of version 1 since Linux 5.3 (cgroup-v1/memory.rst).
OF_CONTAINER: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
# Global and of control groups; dmesg may be root's only, and is then silent.
WORDS: Final = 'dmesg 2>/dev/null | grep -i "out of memory: killed process" | tail -n "$1"'
NAMED_AT_MOST: Final = 3


def count(place: OpenPlace) -> int:
    """How many processes were killed since the place's boot, or in a container; 0 where the kernel does not count."""
    files = OF_CONTAINER if place.agent.container is not None else OF_KERNEL
    words = place.execute(["grep", "-hsw", COUNTER, *files]).output.split()
    return int(words[1]) if words[:1] == [COUNTER] else 0


def report(place: OpenPlace, *, since: int) -> str:
    """What the kernel killed since its count was `since`, in its own words where it gives them; empty if nothing."""
    killed = count(place) - since
    if killed <= 0:
        return ""
    said = place.execute(["sh", "-c", WORDS, "dmesg", str(min(killed, NAMED_AT_MOST))])
    words = f": {said.output.strip()}" if said.output.strip() else ""
    container = place.agent.container
    limit = ""
    if container is not None and container.memory_bytes is not None:
        limit = f" (place.container.memory is {format_bytes(container.memory_bytes)}: raise it, or use less)"
    return f"the kernel killed {killed} for want of memory{limit}{words}"


@contextmanager
def named(place: OpenPlace, *, since: int) -> Iterator[None]:
    """Around a start: a server that the kernel killed says nothing of it, so what the kernel says is added.

    Raises:
        SystemStartError: the one from inside, with that.
    """
    try:
        yield
    except SystemStartError as error:
        killed = report(place, since=since)
        if not killed:
            raise
        raise SystemStartError(f"{error}; {killed}", hint="give the place more memory, or the server less") from error
