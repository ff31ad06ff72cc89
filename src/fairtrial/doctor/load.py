"""Findings about who else uses the processors: a hypervisor's other guests, and this place's other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.doctor.grading import GradeLimits, graded, share, unknown
from fairtrial.doctor.looking import PlaceObservation, processes, spent
from fairtrial.record.models import Finding

# A hundredth of the time is about what two runs of one thing differ by; a tenth is more than most effects asked for.
STEAL: Final = GradeLimits(caution=0.01, unfit=0.1)
# A twentieth is a monitoring agent or a cron job, which blocks average out; at a quarter a trial's figure is the
# scheduler's as much as the system's.
OTHER_LOAD: Final = GradeLimits(caution=0.05, unfit=0.25)
BUSY_NAMED: Final = 3  # processes in the value
FLAGS: Final = 6  # index in /proc/PID/stat, counted after the name
KERNEL_THREAD: Final = 0x00200000  # PF_KTHREAD of the kernel's include/linux/sched.h


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """All of this module, in the order of the table."""
    yield steal(observation)
    yield other_load(observation)


def steal(observation: PlaceObservation) -> Finding:
    """Time that processors were ready and the hypervisor ran others, in the sample."""
    name = "steal"
    why = "every latency and rate includes the time that the hypervisor gives to other guests"
    sample = spent(observation)
    if sample is None:
        return unknown(name, why=why, how="read the eighth figure of the `cpu` line of /proc/stat twice")
    grade = STEAL.grade(sample.steal)
    return graded(
        name=name,
        value=f"{share(sample.steal)} of {sample.ticks} ticks",
        grade=grade,
        why=why,
        fix="use dedicated processors, or run while other guests are idle",
        biases=True,
    )


def other_load(observation: PlaceObservation) -> Finding:
    """What runs before anything of this study does."""
    name = "other_load"
    why = "other programs take processors and caches from some trials but not from others"
    sample = spent(observation)
    if sample is None:
        return unknown(name, why=why, how="look at `top` at the place")
    # What runs in a guest is its start, and this look; a container sees its machine's load, which is looked at there.
    inside = observation.facts.guest is not None or observation.facts.container is not None
    grade = "fine" if inside else OTHER_LOAD.grade(sample.busy)
    averages = (observation.text("/proc/loadavg") or "").split()
    load = f", load average {averages[0]}" if averages else ""
    named = list(dict.fromkeys(process for process, _ticks in processes(observation)))
    kernel = _kernel_threads(observation)
    busiest = named[: BUSY_NAMED if grade != "fine" else 1]
    top = f", most by {', '.join(busiest)}" if busiest else ""
    others = max(0, sample.runnable - 1)  # grep itself, which reads the file
    return graded(
        name=name,
        value=f"{share(sample.busy)} busy, {others} runnable{load}{top}",
        grade=grade,
        why=why,
        fix=_fix([name for name in busiest if name not in kernel]),
        biases=True,
    )


def _kernel_threads(observation: PlaceObservation) -> set[str]:
    """Names of those that nobody can stop, by the ninth field of /proc/PID/stat (proc(5))."""
    threads = set()
    for path, lines in observation.second.items():
        if path.endswith("/stat") and path != "/proc/stat":
            head, _, tail = "\n".join(lines).rpartition(")")
            fields = tail.split()[FLAGS:]
            if fields and int(fields[0]) & KERNEL_THREAD:
                threads.add(head.partition("(")[2])
    return threads


def _fix(busiest: list[str]) -> str:
    named = f" ({', '.join(busiest)})" if busiest else ""
    return f"stop the other programs{named}, or wait for their end"
