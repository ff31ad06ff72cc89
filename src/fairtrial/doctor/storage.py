"""Findings about where data are kept: what the file system can do, and how much is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.doctor.grading import GradeLimits, graded, size, unknown
from fairtrial.doctor.looking import PlaceObservation
from fairtrial.record.models import Finding, Grade
from fairtrial.wire.facts import Facts

IN_MEMORY: Final = ("tmpfs", "ramfs")
# Solid-state disks and copy-on-write file systems slow down as they fill: many by a fifth full, all when nearly full.
FULL: Final = GradeLimits(caution=0.9, unfit=0.98)
LEAST_FREE_KIB: Final = 64 << 10  # 64 MiB: less holds no server's log, on however small a disk of a guest
_KIBIBYTE: Final = 1024


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """All of this module, in the order of the table."""
    yield file_system(observation)
    yield reflink(observation)
    yield disk_space(observation)


def file_system(observation: PlaceObservation) -> Finding:
    """What the state directory is on."""
    name = "file_system"
    why = "data are stored here, so all disk figures are those of this file system"
    kind = observation.facts.file_system
    if kind == "unknown":
        return unknown(name, why=why, how="look at `findmnt --target` of the state directory")
    if kind in IN_MEMORY:
        return Finding(
            name=name,
            value=f"{kind}, in memory",
            grade="caution",
            why="writes here never reach a disk, and use memory that the system under test needs",
            fix="give the place a `state_directory` on a disk, unless the study is about memory",
        )
    return Finding(name=name, value=kind, grade="fine", why=why)


def reflink(observation: PlaceObservation) -> Finding:
    """Whether prepared data come back in constant time."""
    name = "reflink"
    why = "without reflinks, prepared data are copied before every trial, which takes time and warms caches"
    can = observation.state.get("reflink")
    if can is None:
        how = "run a study here once, or give the place a `state_directory` that this user may write to"
        return unknown(name, why=why, how=how, value="not tried: the state directory does not exist")
    return graded(
        name=name,
        value="yes" if can == "yes" else "no",
        grade="fine" if can == "yes" else "caution",
        why=why,
        fix="give the place a `state_directory` on XFS (made with reflink=1) or btrfs",
    )


def more_room(facts: Facts) -> str:
    """What to do about a disk that is too small; a guest's is a file of this machine's."""
    if facts.guest is not None:
        return (
            "raise `place.vm.disk`: each size is a separate disk, empty at first; the smaller one is the file "
            "`vm/disk-BYTES` of the state directory here, and can be deleted"
        )
    return "free some space there, or give the place a `state_directory` on a larger disk"


def disk_space(observation: PlaceObservation) -> Finding:
    """What is free, and of how much."""
    name = "disk_space"
    why = "a nearly full disk writes more slowly, and a run that fills it fails"
    whole, available = (int(observation.state.get(key, "0")) for key in ("size_kib", "available_kib"))
    free = available or observation.facts.free_bytes // _KIBIBYTE
    if not whole and not free:
        return unknown(name, why=why, how="look at `df` of the state directory")
    grade: Grade = FULL.grade(1 - available / whole) if whole else "fine"
    grade = "unfit" if free < LEAST_FREE_KIB else grade
    total = f" of {size(whole)}" if whole else ""
    return graded(
        name=name,
        value=f"{size(free)} free{total}",
        grade=grade,
        why=why,
        fix=more_room(observation.facts),
        biases=grade == "unfit",
    )
