"""Processes that the kernel killed because memory ran out: what a load that ended with signal 9 does not say itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import SystemStartError
from fairtrial.settings.steps.effect import Effect
from fairtrial.study.tree.quantities import format_bytes
from fairtrial.wire.open_place import OpenPlace

COUNTER: Final = "oom_kill"  # /proc/vmstat, since Linux 4.13
OF_KERNEL: Final = ("/proc/vmstat",)
# Of control groups of version 2, or of version 1 since Linux 5.3 (cgroup-v1/memory.rst).
OF_CONTAINER: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
SUMMARY: Final = "oom-kill:"
FULL_GROUP: Final = re.compile(r"constraint=CONSTRAINT_MEMCG,.*,oom_memcg=(/[^,]*),")
# Of the machine and of control groups; dmesg may be root's only, and is then silent.
WORDS: Final = f'dmesg 2>/dev/null | grep -iE "{SUMMARY}|out of memory: killed process" | tail -n "$1"'
LOOKED_AT_MOST: Final = 100
NAMED_AT_MOST: Final = 3


def count(place: OpenPlace) -> int:
    """How many processes were killed since the place's boot, or in a container; 0 where the kernel does not count."""
    files = OF_CONTAINER if place.agent.container is not None else OF_KERNEL
    words = place.execute(["grep", "-hsw", COUNTER, *files]).output.split()
    return int(words[1]) if words[:1] == [COUNTER] else 0


def from_now(place: OpenPlace, effect: Effect | None) -> Kills:
    """What the kernel kills from now on; without the `effect` that its server starts with, where that is is unknown."""
    groups = None if effect is None else effect.server_groups + effect.client_groups
    return Kills(place, since=count(place), groups=groups)


@dataclass(frozen=True)
class Kills:
    """What the kernel killed since its count was `since`.

    What a full control group has cost others is left out, where the kernel says so: one that is neither around the
    agent, nor below it, nor one of `groups`. These are the trial's own, which lie at the top; None where the server may
    be in any.
    """

    place: OpenPlace
    since: int
    groups: Sequence[str] | None = ()

    def report(self) -> str:
        """It in a sentence, in the kernel's own words where it gives them; empty if nothing."""
        if (killed := count(self.place) - self.since) <= 0:
            return ""
        most = str(2 * min(killed, LOOKED_AT_MOST))
        said = self.place.execute(["sh", "-c", WORDS, "dmesg", most]).output.splitlines()
        lines = _killed(said)[-killed:]
        container = self.place.agent.container
        if container is None and self.groups is not None and any(group for group, _line in lines):
            around = _around(self.place.execute(["cat", "/proc/self/cgroup"]).output)
            ours = [around, *(f"/{PurePosixPath(group).name}" for group in self.groups)]
            concern = [(group, line) for group, line in lines if not group or _concerns(group, ours)]
            if not concern:
                return ""
            killed, lines = killed - len(lines) + len(concern), concern
        limit = ""
        if container is not None and container.memory_bytes is not None:
            limit = f" (place.container.memory is {format_bytes(container.memory_bytes)}: raise it, or use less)"
        words = "\n".join(line for _group, line in lines[-NAMED_AT_MOST:])
        return f"the kernel killed {killed} for want of memory{limit}" + (f": {words}" if words else "")

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


def _killed(said: Sequence[str]) -> list[tuple[str, str]]:
    """Of each line about a process that was killed: the control group that was full, or nothing, and the line.

    One summary precedes the kills of all processes of a group that dies as one (`memory.oom.group`).
    """
    found, group = [], ""
    for line in said:
        if SUMMARY in line:
            full = FULL_GROUP.search(line)
            group = full[1] if full else ""
        else:
            found.append((group, line))
    return found


def _around(said: str) -> str:
    """The group that counts a process's memory, by /proc/PID/cgroup: version 1 where memory has a hierarchy of it."""
    lines = (line.split(":", 2) for line in said.splitlines())
    of = {name: group for _number, names, group in lines for name in names.split(",")}
    return of.get("memory", of.get("", "/"))


def _concerns(group: str, own: Iterable[str]) -> bool:
    """Whether a group is one of ours, or holds one, or is held by one."""
    full = f"{group.rstrip('/')}/"
    return any(full.startswith(mine := f"{each.rstrip('/')}/") or mine.startswith(full) for each in own)
