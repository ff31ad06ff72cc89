"""Reading the file of counts; `crates/locks/src/sites.rs` has its layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.errors import RecordError

MAGIC = b"FTLOCKS1"
HEADER = struct.Struct("=8s4QQ256s")
OBJECT = struct.Struct("=2Q")  # and its path
COUNTERS = (
    "acquisitions",
    "contended",
    "spins",
    "busy",
    "timed_out",
    "reacquired",
    "left_alone",
    "wait_ns",
    "hold_ns",
)
WORD = 8
FINE = 4  # buckets to an octave


@dataclass(frozen=True)
class Site:
    """What was counted at one place in a program.

    Attributes:
        object: path of the program or library that it is in; empty where that is not known (glibc before 2.35).
        address: to which the call returns, in the object's file; in memory where the object is not known. None: of all
            call sites for which the table had no room.
        counters: by name: `acquisitions` (tries that succeeded among them), `contended`, `spins` (tries in vain, at a
            ticket lock looks at the queue), `busy` (trylocks in vain), `timed_out`, `reacquired` (ends of waits for a
            condition), `left_alone` (calls with a recursive, robust, shared … mutex), `wait_ns`, `hold_ns`.
        waits: how often who found the lock taken waited how long: lowest nanoseconds of a bucket → times.
        holds: how long what was taken here was held, likewise.
    """

    object: str
    address: int | None
    counters: Mapping[str, int]
    waits: Mapping[int, int]
    holds: Mapping[int, int]


@dataclass(frozen=True)
class LockCounts:
    """Of one process.

    Attributes:
        process: its number.
        announcement: what was in effect in it.
        sites: those that were seen, by acquisitions, the most first.
    """

    process: int
    announcement: str
    sites: tuple[Site, ...]


def lowest_ns(bucket: int) -> int:
    """The lowest time of a bucket in nanoseconds (`crates/locks/src/histogram.rs`)."""
    return bucket if bucket < FINE else (FINE + bucket % FINE) << (bucket // FINE - 1)


def counted(path: Path) -> LockCounts:
    """The counts in a file, of a process that runs or has ended in any way.

    Raises:
        RecordError: the file is no such file, or a part of one.
    """
    data = path.read_bytes()
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise RecordError(
            f"{path} holds no counts of the lock library", hint="give a file that FAIRTRIAL_LOCK_COUNT named"
        )
    _, sites, objects, path_bytes, buckets, process, announcement = HEADER.unpack_from(data)
    words = 2 + len(COUNTERS) + 2 * buckets
    first = HEADER.size + objects * (OBJECT.size + path_bytes)
    if len(data) != first + sites * words * WORD:
        raise RecordError(
            f"{path} has {len(data)} bytes, not the {first + sites * words * WORD} of its tables",
            hint="copy it whole, and read it with the fairtrial that wrote it",
        )
    names = [_object(data, HEADER.size + number * (OBJECT.size + path_bytes), path_bytes) for number in range(objects)]
    slots = (struct.unpack_from(f"={words}Q", data, first + number * words * WORD) for number in range(sites))
    entries = [_site(slot, names, buckets) for slot in slots if any(slot)]
    entries.sort(key=lambda site: -site.counters["acquisitions"])
    return LockCounts(process=process, announcement=announcement.rstrip(b"\0").decode(), sites=tuple(entries))


def _object(data: bytes, at: int, path_bytes: int) -> tuple[int, str]:
    """An object's bias and path."""
    _, bias = OBJECT.unpack_from(data, at)
    name = data[at + OBJECT.size : at + OBJECT.size + path_bytes].partition(b"\0")[0]
    return bias, name.decode(errors="replace")


def _site(slot: tuple[int, ...], objects: list[tuple[int, str]], buckets: int) -> Site:
    address, number, *rest = slot
    bias, name = objects[number]
    counters, histograms = rest[: len(COUNTERS)], rest[len(COUNTERS) :]
    return Site(
        object=name,
        address=address - bias if address else None,
        counters=dict(zip(COUNTERS, counters, strict=True)),
        waits=_histogram(histograms[:buckets]),
        holds=_histogram(histograms[buckets:]),
    )


def _histogram(times: list[int]) -> dict[int, int]:
    return {lowest_ns(bucket): count for bucket, count in enumerate(times) if count}
