"""Counters whose meaning may differ between arms, and which subsystem a counter tells of.

Sources: kernel's mm/workingset.c and mm/vmscan.c; what was measured on Debian's 6.12: with multi-generational LRU
`workingset_activate_file` equals `workingset_refault_file`, without it is about a quarter. Refaults: "Multi-gen LRU:
fix workingset accounting" of May 2023, in 6.5 and not in Debian's 6.1. Scans: `scan_folios` counts what it isolates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.why.models import Subsystem


@dataclass(frozen=True)
class CounterNote:
    """Said of counters that match, where a path at which the arms differ matches."""

    counters: re.Pattern[str]
    paths: re.Pattern[str]
    text: str


OTHER_SERVER: Final = re.compile(r"system\.(?!\w+\.(options|pragmas)\b).*")
REFAULTS: Final = "before Linux 6.5, multi-generational LRU counts only refaults of pages that it evicted recently"
SCANS: Final = (
    "multi-generational LRU counts as scanned the pages that it takes off its lists, the other policy all pages that "
    "it looks at"
)

SLOW: Final = "readings took so long that its growth may be off by more than the margin"

POLICY: Final = re.compile(r"lru_gen|kernel")

NOTES: Final = tuple(
    CounterNote(counters=re.compile(counters), paths=re.compile(paths), text=text)
    for counters, paths, text in (
        (
            r"vmstat:(workingset_(activate|restore)_.*|pgactivate|pgdeactivate|pgrefill|pgrotated)",
            POLICY,
            "counted by a different rule under multi-generational LRU: compare pgsteal_file or _anon, pgpgin or pswpin",
        ),
        (r"vmstat:workingset_refault.*", POLICY, REFAULTS),
        (r"vmstat:pgscan_.*", POLICY, SCANS),
        (
            r"memory:(Active|Inactive).*",
            POLICY,
            "generations are divided into active and inactive by a different rule under multi-generational LRU",
        ),
        (r"vmstat:.*", r"place.*kernel", "a different kernel may count it elsewhere or split it"),
        (
            r"vmstat:workingset_refault.*",
            r"drop_caches",
            "dropping caches removes the traces that identify refaults: fewer refaults than misses",
        ),
        (r"disks:.*|cpu:iowait.*", r"dax|pmem", "direct access to persistent memory bypasses these counters"),
        (r"(server|prometheus-\d+|command-\d+):.*", OTHER_SERVER, "a different server may count it elsewhere"),
    )
)

_SUBSYSTEMS: Final[tuple[tuple[re.Pattern[str], Subsystem], ...]] = (
    (re.compile(r"(server|prometheus-\d+|command-\d+):.*"), "server"),
    (re.compile(r"cpu:(context_switches|forks|running|blocked)"), "scheduler"),
    (re.compile(r"process-.*:.*(switches|threads|processes)"), "scheduler"),
    (re.compile(r"pressure:cpu\..*"), "scheduler"),
    (re.compile(r"pressure:io\..*|disks:.*|cpu:iowait.*|vmstat:(pgpgin|pgpgout|nr_dirtied|nr_written)"), "io"),
    (re.compile(r"process-.*:.*(read|write|written|io_).*"), "io"),
    (re.compile(r"pressure:memory\..*|vmstat:.*|memory:.*|process-.*:.*(fault|resident|swapped).*"), "memory"),
    (re.compile(r"cpu:.*|process-.*:.*ticks.*"), "cpu"),
    (re.compile(r"net.*"), "network"),
)


def subsystem(counter: str) -> Subsystem:
    """Which part of the machine a counter tells of."""
    return next((name for pattern, name in _SUBSYSTEMS if pattern.fullmatch(counter)), "other")


def note(counter: str, *, paths: Iterable[str], is_slow: bool = False) -> str:
    """Why a counter may not mean the same in both arms, given the paths at which they differ, or is not exact."""
    differing = list(paths)
    notes = [
        each.text
        for each in NOTES
        if each.counters.fullmatch(counter) and any(each.paths.search(path) for path in differing)
    ]
    return "; ".join([*notes, SLOW] if is_slow else notes)
