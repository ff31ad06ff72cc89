"""Findings about processors: at which pace they run, what they share, and how they tell the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairtrial.doctor.grading import graded, unknown
from fairtrial.doctor.looking import CPU, PlaceObservation
from fairtrial.record.models import Finding, Grade

# Reading these takes some 20 ns and no exit to a hypervisor.
FAST_CLOCKS: Final = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource")
COARSE_CLOCKS: Final = ("jiffies", "refined-jiffies")  # steps of 1 to 10 ms: latencies below them do not exist
NAMED_AT_MOST: Final = 3  # values in a line of the table


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """All of this module, in the order of the table."""
    yield frequency_scaling(observation)
    yield boost(observation)
    yield smt(observation)
    yield numa(observation)
    yield clock_source(observation)
    yield throttling(observation)
    yield virtualisation(observation)


def frequency_scaling(observation: PlaceObservation) -> Finding:
    """Governor and driver. Intel's and AMD's `powersave` scales with load, every other driver's is the lowest pace."""
    name = "frequency_scaling"
    why = (
        "a processor whose frequency follows its load is slower after a pause, so results depend on the order of trials"
    )
    governors = _counted(observation.each(f"{CPU}/cpu*/cpufreq/scaling_governor"))
    if not governors:
        how = "look at /sys/devices/system/cpu/cpu0/cpufreq on the host, or ask its operator for fixed frequencies"
        return unknown(name, why=why, how=how, value="not visible at this place")
    drivers = _counted(observation.each(f"{CPU}/cpu*/cpufreq/scaling_driver"))
    grade: Grade = "fine" if set(governors) == {"performance"} else "caution"
    return graded(
        name=name,
        value=f"governor {_named(governors)}, driver {_named(drivers) or 'unknown'}",
        grade=grade,
        why=why,
        fix="add `settings: {governor: performance}` to the study; the agent undoes it afterwards",
        biases=True,
    )


def boost(observation: PlaceObservation) -> Finding:
    """Turbo: Intel's driver has `no_turbo`, others `boost`, for all or for each processor."""
    name = "boost"
    why = "boost frequencies depend on temperature and on other cores, which adds noise that no setting explains"
    no_turbo = observation.text(f"{CPU}/intel_pstate/no_turbo")
    one = observation.text(f"{CPU}/cpufreq/boost")
    if no_turbo is not None:
        known, off = [no_turbo == "0"], {f"{CPU}/intel_pstate/no_turbo": 1}
    elif one is not None:
        known, off = [one == "1"], {f"{CPU}/cpufreq/boost": 0}
    else:
        switches = observation.each(f"{CPU}/cpu*/cpufreq/boost")
        known, off = [switch == "1" for switch in switches.values()], dict.fromkeys(sorted(switches), 0)
    if not known:
        how = "look at the firmware settings, or at `turbostat` on the host"
        return unknown(name, why=why, how=how, value="not visible at this place")
    files = ", ".join(f"{file}: {value}" for file, value in off.items())
    return graded(
        name=name,
        value="on" if any(known) else "off",
        grade="caution" if any(known) else "fine",
        why=why,
        fix=f"add `settings: {{sysfs: {{{files}}}}}` to the study",
    )


def smt(observation: PlaceObservation) -> Finding:
    """Whether two processors are one core."""
    name = "smt"
    why = "two threads of one core share its units, so a client slows its server without showing as load"
    pairs = set(observation.each(f"{CPU}/cpu*/topology/thread_siblings_list").values())
    active = observation.text(f"{CPU}/smt/active")
    if active is None and not pairs:
        return unknown(name, why=why, how="look at `lscpu --extended` on the host")
    shared = sorted(pair for pair in pairs if "," in pair or "-" in pair)
    on = bool(shared) or active == "1"
    named = "; ".join(shared[:NAMED_AT_MOST]) + ("; …" if len(shared) > NAMED_AT_MOST else "")
    return graded(
        name=name,
        value=(f"on, siblings {named}" if named else "on") if on else "off",
        grade="caution" if on else "fine",
        why=why,
        fix="add `settings: {affinity: …}` with whole cores for client and server, or boot with nosmt",
    )


def numa(observation: PlaceObservation) -> Finding:
    """How many nodes memory is spread over."""
    name = "numa"
    why = "memory of another node is slower, and the placement of pages differs from start to start"
    online = observation.text("/sys/devices/system/node/online")
    if online is None:
        return unknown(name, why=why, how="look at `numactl --hardware` on the host")
    one = online == "0"
    return graded(
        name=name,
        value="one node" if one else f"nodes {online}",
        grade="fine" if one else "caution",
        why=why,
        fix="bind server and memory to one node, with `settings: {affinity: …}` or numactl",
    )


def clock_source(observation: PlaceObservation) -> Finding:
    """What a time stamp costs."""
    name = "clock_source"
    why = "reading the clock from a device costs a microsecond or more for every time stamp of the load"
    current = observation.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if current is None:
        return unknown(name, why=why, how="look at /sys/devices/system/clocksource on the host")
    grade: Grade = "fine" if current in FAST_CLOCKS else "unfit" if current in COARSE_CLOCKS else "caution"
    others = (observation.text("/sys/devices/system/clocksource/clocksource0/available_clocksource") or "").split()
    better = next((each for each in others if each in FAST_CLOCKS), None)
    fix = f"write {better} to /sys/devices/system/clocksource/clocksource0/current_clocksource" if better else ""
    return graded(
        name=name,
        value=current,
        grade=grade,
        why=why,
        fix=fix or "boot with tsc=reliable where the processor's counter is invariant",
        biases=observation.facts.guest is None
        or not observation.facts.guest.emulated,  # times are no evidence there anyway
    )


def throttling(observation: PlaceObservation) -> Finding:
    """How often processors were slowed for their heat: since the boot, and in the sample."""
    name = "throttling"
    why = "a hot processor slows down until it has cooled, so results depend on what ran before"
    pattern = "thermal_throttle/"
    before, after = (
        {path: int(lines[0]) for path, lines in counters.items() if pattern in path and lines}
        for counters in (observation.first, observation.second)
    )
    if not after:
        how = "look at `turbostat` or the kernel log on the host"
        return unknown(name, why=why, how=how, value="not counted here")
    now = sum(after.values()) - sum(before.get(path, count) for path, count in after.items())
    total = max(after.values())
    grade: Grade = "unfit" if now > 0 else "caution" if total > 0 else "fine"
    return graded(
        name=name,
        value=f"{now} times in one second" if now > 0 else f"up to {total} times since boot" if total else "never",
        grade=grade,
        why=why,
        fix="cool the machine, or fix a frequency that it can sustain: boost off, a lower maximum",
        biases=now > 0,
    )


def virtualisation(observation: PlaceObservation) -> Finding:
    """Whether a hypervisor stands between."""
    name = "virtualisation"
    why = "the use of caches, memory and disks by other guests of a shared machine is not visible"
    guest = observation.facts.guest
    if guest is not None and guest.emulated:
        return Finding(
            name=name,
            value=f"emulated ({guest.accelerator})",
            grade="caution",
            why="times and rates of an emulated processor are not evidence; counts are",
            fix="judge counts, or use a machine whose /dev/kvm boots a kernel",
        )
    kind = observation.facts.virtualisation
    if kind == "none":
        return Finding(name=name, value="none", grade="fine", why=why)
    return Finding(
        name=name,
        value=kind,
        grade="caution",
        why=why,
        fix="use a dedicated machine, or repeat the run at another time of day and compare",
    )


def _counted(values: Mapping[str, str]) -> dict[str, int]:
    """How many processors have each value."""
    counts: dict[str, int] = {}
    for value in values.values():
        counts[value] = counts.get(value, 0) + 1
    return counts


def _named(counted: Mapping[str, int]) -> str:
    """`performance`, or `performance (6), powersave (2)`."""
    if len(counted) == 1:
        return next(iter(counted))
    parts: Sequence[str] = [f"{value} ({count})" for value, count in sorted(counted.items())]
    return ", ".join(parts[:NAMED_AT_MOST])
