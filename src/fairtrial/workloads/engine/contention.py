"""Scalars of threads that take locks: how much got through, how evenly, how long a thread waited and for whom.

Waits are those of timed acquisitions, one in `sample_every` of each thread; throughput, shares of threads and
handovers count all. Who meets whom at a lock is a matter of clocks: under emulation those shares are no evidence,
though they are counted. It must not know how locks are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from fairtrial import foreign
from fairtrial.metrics import latency
from fairtrial.metrics.drive import FILE as RESULT
from fairtrial.metrics.drive import NANOSECONDS_PER_SECOND, TransactionOutcomes, seconds
from fairtrial.metrics.latency.percentiles import COUNT
from fairtrial.metrics.series import stability, steadiness
from fairtrial.protocol import generated
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

FILE: Final = "contention.json"
ACQUISITION: Final = "acquisition"  # the one type of transaction


class Contention(generated.Contention):
    """`contention.json`, as the engine wrote it."""

    @property
    def acquisitions(self) -> int:
        """Of the window."""
        return sum(thread.acquisitions for thread in self.threads)

    @property
    def sampled(self) -> int:
        """Those of them that were timed."""
        return sum(thread.sampled for thread in self.threads)

    @property
    def not_excluded(self) -> str:
        """Why the locks did not exclude; empty if they did."""
        lost = self.acquired - self.guarded
        if not (lost or self.intruded or self.torn_lines):
            return ""
        return (
            f"the lock failed to exclude: of {self.acquired} acquisitions {self.guarded} were counted under it, "
            f"{self.intruded} times another thread was inside, {self.torn_lines} guarded lines lost an addition"
        )


class LockUsage(BaseModel):
    """What the kernel accounts to the process of the threads, in the window."""

    user_s: float
    system_s: float
    voluntary_switches: int
    involuntary_switches: int


class LockDriveResult(BaseModel):
    """The part of `result.json` that scalars come from."""

    transactions: dict[str, TransactionOutcomes]
    client: LockUsage


def read(directory: Path) -> tuple[Contention, LockDriveResult]:
    """A trial's `contention.json` and `result.json`.

    Raises:
        RecordError: one is missing, cut or changed.
    """
    contention = foreign.of_trial(directory / FILE, Contention)
    return contention, foreign.of_trial(directory / RESULT, LockDriveResult)


def compute(directory: Path, *, window: Window) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `definitions`.

    Raises:
        RecordError: a file is damaged, or the window has no length.
    """
    contention, result = read(directory)
    length_s = seconds(directory, window)
    counts = [thread.acquisitions for thread in contention.threads]
    count = sum(counts)
    values = {
        "acquisitions": float(count),
        "acquisitions_per_s": count / length_s,
        "starvation_ns": float(max(thread.longest_gap_ns for thread in contention.threads)),
        "turn_ns": contention.turn_ns,
    }
    if count:
        values |= _shares(contention, counts) | _costs(result.client, count)
    return (
        values
        | latency.compute(directory, by_type=False)
        | stability.compute(directory, window=window)
        | steadiness.compute(directory, window=window)
    )


def jain(counts: list[int]) -> float:
    """Jain's index of fairness: 1 if all get the same, 1/n if one of n gets all (DEC-TR-301, 1984).

    Args:
        counts: what each got, shape (n,); one at least above 0.
    """
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


def _shares(contention: Contention, counts: list[int]) -> dict[str, float]:
    count = sum(counts)
    mean = count / len(counts)
    handed = sum(thread.handed for thread in contention.threads) / count
    values = {
        "fairness_jain": jain(counts),
        "least_thread_share": min(counts) / mean,
        "most_thread_share": max(counts) / mean,
        "handed_over_share": handed,
    }
    if contention.sampled:
        contended = sum(thread.contended for thread in contention.threads)
        values["contended_share"] = contended / contention.sampled
    return values


def _costs(spent: LockUsage, count: int) -> dict[str, float]:
    return {
        "cpu_ns_per_acquisition": (spent.user_s + spent.system_s) * NANOSECONDS_PER_SECOND / count,
        "voluntary_switches_per_acquisition": spent.voluntary_switches / count,
        "involuntary_switches_per_acquisition": spent.involuntary_switches / count,
    }


def contradictions(directory: Path) -> Iterator[str]:
    """Where `contention.json` disagrees with `result.json` and `latency.hlog`, a sentence each.

    Raises:
        RecordError: a file is damaged.
    """
    contention, result = read(directory)
    done = result.transactions[ACQUISITION].done
    if contention.acquisitions != done:
        yield f"{FILE}: threads got {contention.acquisitions} acquisitions, {RESULT} says {done}"
    timed = sum(each.n for each in latency.read(directory).values())
    if contention.sampled != timed:
        yield f"{latency.FILE}: {timed} waits, {FILE} says {contention.sampled} were timed"


def _definition(name: str, label: str, *, unit: str, better: Better = "lower", source: str) -> MetricDefinition:
    kind: MetricKind = "count" if name == "acquisitions" or "switches" in name else "wall_clock"
    return MetricDefinition(name=name, label=label, unit=unit, better=better, kind=kind, source=source)


_OWN: Final = (
    _definition(
        "acquisitions",
        "acquisitions",
        unit="acquisitions",
        better="higher",
        source=f"{FILE}: acquisitions of all threads in the window",
    ),
    _definition(
        "acquisitions_per_s",
        "throughput",
        unit="acquisitions/s",
        better="higher",
        source=f"{FILE}: acquisitions over the length of the window",
    ),
    _definition(
        "fairness_jain",
        "fairness (Jain)",
        unit="index",
        better="higher",
        source=f"{FILE}: squared sum of the threads' acquisitions over their number times the sum of squares; "
        "1 is even, 1 over the number of threads is one thread alone",
    ),
    _definition(
        "least_thread_share",
        "thread that got least",
        unit="share of the mean",
        better="higher",
        source=f"{FILE}: fewest acquisitions of a thread over the mean",
    ),
    _definition(
        "most_thread_share",
        "thread that got most",
        unit="share of the mean",
        source=f"{FILE}: most acquisitions of a thread over the mean",
    ),
    _definition(
        "starvation_ns",
        "longest starvation",
        unit="ns",
        source=f"{FILE}: longest time in which a thread got fewer than `sample_every` acquisitions; longer than any "
        "wait, timed or not, by what these take",
    ),
    _definition(
        "contended_share",
        "found the lock taken",
        unit="share of timed acquisitions",
        source=f"{FILE}: timed acquisitions whose first try or look was in vain",
    ),
    _definition(
        "handed_over_share",
        "handed to another thread",
        unit="share of acquisitions",
        source=f"{FILE}: acquisitions of a lock whose last holder was another thread; the others took it again",
    ),
    _definition(
        "cpu_ns_per_acquisition",
        "CPU per acquisition",
        unit="ns",
        source=f"{RESULT}: user and system time in the window, work inside and outside included",
    ),
    _definition(
        "voluntary_switches_per_acquisition",
        "voluntary switches per acquisition",
        unit="switches/acquisition",
        source=f"{RESULT}: times a thread slept (getrusage), over the acquisitions of the window",
    ),
    _definition(
        "involuntary_switches_per_acquisition",
        "involuntary switches per acquisition",
        unit="switches/acquisition",
        source=f"{RESULT}: times a thread was taken off its processor (getrusage), over the same",
    ),
    _definition(
        "turn_ns",
        "a turn of the loop",
        unit="ns",
        source=f"{FILE}: `critical` and `outside` count these; best of seven looks right before ramp-up, one thread "
        "alone. A difference between arms is the machine's",
    ),
)


def definitions() -> Mapping[str, MetricDefinition]:
    """Every metric; latencies are waits for a lock."""
    waits = {
        name: each.model_copy(
            update={
                "label": each.label.replace("latency", "wait"),
                "source": f"{latency.FILE}: waits of timed acquisitions",
            }
        )
        for name, each in latency.definitions().items()
    }
    waits[COUNT] = waits[COUNT].model_copy(update={"label": "timed acquisitions", "unit": "acquisitions"})
    return {**stability.DEFINITIONS, **steadiness.DEFINITIONS, **{each.name: each for each in _OWN}, **waits}
