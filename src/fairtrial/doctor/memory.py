"""Findings about memory: who waits for it, how much is left, what was swapped, and how large its pages are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.doctor.grading import GradeLimits, graded, size, unknown
from fairtrial.doctor.looking import PlaceObservation, moved
from fairtrial.record.models import Finding, Grade

# Per cent of the last ten seconds in which some task waited for memory (Documentation/accounting/psi.rst). A hundredth
# is reclaim beside the work; a tenth is a machine that is short of memory before the study takes any.
PRESSURE: Final = GradeLimits(caution=1.0, unfit=10.0)
TAKEN: Final = GradeLimits(caution=0.8, unfit=0.95)  # of all memory: a study's server and page cache need the rest
SWAP_USED: Final = 0.01  # of memory: less is what every long-running machine has put away


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """All of this module, in the order of the table."""
    yield memory_pressure(observation)
    yield memory_available(observation)
    yield swap(observation)
    yield huge_pages(observation)


def memory_pressure(observation: PlaceObservation) -> Finding:
    """Stalls of some task in the last ten seconds (avg10 of `some`)."""
    name = "memory_pressure"
    why = "a machine that is reclaiming memory evicts pages that a trial has just read"
    some = next((line for line in observation.files.get("/proc/pressure/memory", ()) if line.startswith("some")), None)
    if some is None:
        return unknown(name, why=why, how="boot with psi=1, or use a kernel with CONFIG_PSI")
    stalled = float(dict(part.split("=") for part in some.split()[1:])["avg10"])
    grade = PRESSURE.grade(stalled)
    return graded(
        name=name,
        value=f"{stalled:g} % of the last 10 s",
        grade=grade,
        why=why,
        fix="stop the programs that use the memory (`ps --sort=-rss`), or give the place more",
        biases=True,
    )


def memory_available(observation: PlaceObservation) -> Finding:
    """What could be had without swapping."""
    name = "memory_available"
    why = "the size of the page cache decides how much a trial reads from its disk"
    total, available = observation.kibibytes("MemTotal"), observation.kibibytes("MemAvailable")
    if not total or available is None:
        return unknown(name, why=why, how="look at /proc/meminfo at the place")
    grade = TAKEN.grade(1 - available / total)
    return graded(
        name=name,
        value=f"{size(available)} of {size(total)}",
        grade=grade,
        why=why,
        fix="stop the programs that use the memory (`ps --sort=-rss`), or give the place more",
        biases=grade == "unfit",
    )


def swap(observation: PlaceObservation) -> Finding:
    """What is swapped out, and whether pages move now."""
    name = "swap"
    why = "a page swapped out before a trial is read back during one"
    total, free, memory = map(observation.kibibytes, ("SwapTotal", "SwapFree", "MemTotal"))
    if total is None or free is None or not memory:
        return unknown(name, why=why, how="look at `swapon --show` and /proc/meminfo at the place")
    pages = [moved(observation, "/proc/vmstat", counter) or 0 for counter in ("pswpin", "pswpout")]
    used = total - free
    grade: Grade = "unfit" if sum(pages) > 0 else "caution" if used > SWAP_USED * memory else "fine"
    value = f"{size(used)} of {size(total)} used" if total else "none"
    return graded(
        name=name,
        value=f"{value}, {pages[0]} pages in and {pages[1]} out within a second" if sum(pages) else value,
        grade=grade,
        why=why,
        fix="empty the swap while memory is free: `swapoff -a && swapon -a`, as root",
        biases=grade == "unfit",
    )


def huge_pages(observation: PlaceObservation) -> Finding:
    """Transparent huge pages: where they are made unasked, when and how many depends on fragmentation."""
    name = "huge_pages"
    why = "transparent huge pages depend on fragmentation, so equal trials get unequal memory"
    enabled = observation.text("/sys/kernel/mm/transparent_hugepage/enabled")
    if enabled is None:
        return Finding(name=name, value="not supported by this kernel", grade="fine", why=why)
    chosen = enabled.partition("[")[2].partition("]")[0]
    grade: Grade = "caution" if chosen == "always" else "fine"
    return graded(
        name=name,
        value=chosen or enabled,
        grade=grade,
        why=why,
        fix="add `settings: {transparent_huge_pages: …}` to the study, with the value of production",
    )
