"""A process with all that it began: processor time that they took, and how much they may take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairtrial.run.processes import parent, started, ticks

PERIOD_US = 100_000
ROOT = Path("/sys/fs/cgroup")
# By the version of control groups: where they are made, and which file says how much of a period they may run.
VERSIONS = ((ROOT / "cpu", "cpu.cfs_quota_us", "{quota}"), (ROOT, "cpu.max", "{quota} {period}"))


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


def by_age(processes: Iterable[int]) -> list[int]:
    """Those that are still there, eldest first: numbers do not say, as they begin anew from small ones."""
    began = []
    for each in processes:
        with suppress(OSError):
            began.append((started(each), each))
    return [each for _, each in sorted(began)]


def used_s(process: int) -> float:
    """Its processor time so far, seconds."""
    return ticks(process) / os.sysconf("SC_CLK_TCK")


@contextmanager
def processor_share(share: float) -> Iterator[Path | None]:
    """The file to which a process writes its id to get this share of a processor; None where the machine has none."""
    name = f"fairtrial-test-{os.getpid()}"
    for root, file, text in VERSIONS:
        group = root / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            limit = group / file
            if not limit.exists():
                continue
            limit.write_text(text.format(quota=round(share * PERIOD_US), period=PERIOD_US))
            yield group / "cgroup.procs"
            return
        finally:
            _end(group)
    yield None


def _end(group: Path) -> None:
    """Puts what is left in it back, and removes it."""
    for process in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            (group.parent / "cgroup.procs").write_text(process)
    group.rmdir()
