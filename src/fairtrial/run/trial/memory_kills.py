"""Processes that the kernel killed because memory ran out: what a load that ended with signal 9 does not say itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import SystemStartError
from fairtrial.study.tree.quantities import format_bytes
from fairtrial.wire.open_place import OpenPlace

COUNTER: Final = "oom_kill"  # /proc/vmstat, since Linux 4.13
OF_KERNEL: Final = ("/proc/vmstat",)
# Of control groups of version 2, or of version 1 since Linux 5.3 (cgroup-v1/memory.rst).
OF_CONTAINER: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
# Of the machine and of control groups; dmesg may be root's only, and is then silent.
WORDS: Final = 'dmesg 2>/dev/null | grep -iE "oom-kill:|out of memory: killed process" | tail -n "$1"'
LOOKED_AT_MOST: Final = 100
NAMED_AT_MOST: Final = 3
KILLED: Final = re.compile(r"out of memory: killed process (\d+)", re.IGNORECASE)
OF_GROUP: Final = re.compile(
    r"oom-kill:constraint=CONSTRAINT_MEMCG,.*,oom_memcg=(/[^,]*),.*,pid=(\d+),"
)  # the full group


def count(place: OpenPlace) -> int:
    """How many processes were killed since the place's boot, or in a container; 0 where the kernel does not count."""
    files = OF_CONTAINER if place.agent.container is not None else OF_KERNEL
    words = place.execute(["grep", "-hsw", COUNTER, *files]).output.split()
    return int(words[1]) if words[:1] == [COUNTER] else 0


def from_now(place: OpenPlace, *, groups: Iterable[str] = ()) -> Kills:
    """What the kernel kills from now on; `groups`: the trial's own control groups."""
    return Kills(place, since=count(place), groups=[f"/{PurePosixPath(group).name}" for group in groups])


@dataclass(frozen=True)
class Kills:
    """What the kernel killed since its count was `since`.

    What a full control group has cost others is left out, where the kernel says so: one that is neither around the
    agent, nor below it, nor one of `groups`, the trial's own.
    """

    place: OpenPlace
    since: int
    groups: Sequence[str] = ()

    def report(self) -> str:
        """It in a sentence, in the kernel's own words where it gives them; empty if nothing."""
        if (killed := count(self.place) - self.since) <= 0:
            return ""
        words, others = self._words(killed)
        if killed == others:
            return ""
        container = self.place.agent.container
        limit = ""
        if container is not None and container.memory_bytes is not None:
            limit = f" (place.container.memory is {format_bytes(container.memory_bytes)}: raise it, or use less)"
        said = f": {chr(10).join(words[-NAMED_AT_MOST:])}" if words else ""
        return f"the kernel killed {killed - others} for want of memory{limit}{said}"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Around a start: a server that the kernel killed says nothing of it, so what the kernel says is added.

        Raises:
            SystemStartError: the one from inside, with that.
        """
        try:
            yield
        except SystemStartError as error:
            if not (killed := self.report()):
                raise
            hint = "give the place more memory, or the server less"
            raise SystemStartError(f"{error}; {killed}", hint=hint) from error

    def _words(self, killed: int) -> tuple[list[str], int]:
        """The kernel's lines about the last processes that it killed, and how many were killed elsewhere."""
        most = str(2 * min(killed, LOOKED_AT_MOST))
        said = self.place.execute(["sh", "-c", WORDS, "dmesg", most]).output.splitlines()
        lines = [(found[1], line) for line in said if (found := KILLED.search(line))][-killed:]
        full = {found[2]: found[1] for line in said if (found := OF_GROUP.search(line))}
        if not full:
            return [line for _process, line in lines], 0
        ours = [*self.groups, _around(self.place.execute(["cat", "/proc/self/cgroup"]).output)]
        words = [line for process, line in lines if process not in full or _concerns(full[process], ours)]
        return words, len(lines) - len(words)


def _around(said: str) -> str:
    """The group that counts a process's memory, by /proc/PID/cgroup: version 1 where memory has a hierarchy of it."""
    lines = (line.split(":", 2) for line in said.splitlines())
    of = {name: group for _number, names, group in lines for name in names.split(",")}
    return of.get("memory", of.get("", "/"))


def _concerns(group: str, own: Iterable[str]) -> bool:
    """Whether a group is one of ours, or holds one, or is held by one."""
    full = f"{group.rstrip('/')}/"
    return any(full.startswith(mine := f"{each.rstrip('/')}/") or mine.startswith(full) for each in own)
