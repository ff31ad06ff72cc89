"""What was found of a place before it measured, as doubts: findings that shift results, not those that cost time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from fairtrial.analyse.doubts import existing
from fairtrial.analyse.models import Doubt
from fairtrial.record.models import Finding, PlaceOpened, Plan
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.words import counted

LOCKS: Final = "locks"  # a setting, and a workload
MACHINE: Final = ("host", "memory_bytes", "processors", "kernel_command_line")  # facts that machines rarely share
OF_FRESH: Final = {"accelerator", "image_id"}  # facts of guests and containers
SAME_START_NS: Final = 10 * 10**9  # a clock that is set meanwhile moves the start that it tells
INTERFACE: Final = "client_interface"  # a fact of places that the native load engine drives a server from
NATIVE: Final = ("oltp", "script", "tpcc")  # workloads of that engine
EMBEDDED: Final = "sqlite"  # it is called, and waits for no server
SETS: Final = {"frequency_scaling": "governor"}  # findings that a setting of a study replaces


def doubts(plan: Plan, places: Sequence[PlaceOpened]) -> Iterator[Doubt]:
    """One for each finding below fine that biases, naming the place where there are several.

    None for what every trial of the place sets for itself: the look was before the settings. After these, what a server
    that was there already keeps from the study.

    A look of one second: how often it cries wolf is how often something else happens to run in that second.
    """
    for opened in places:
        for finding in opened.findings:
            doubtful = finding.biases and finding.grade in ("caution", "unfit")
            if doubtful and not _is_set(plan, opened, finding):
                yield Doubt(
                    code="place_unfit",
                    message=f"{_where(opened, finding, several=len(places) > 1)}{finding.name.replace('_', ' ')}: "
                    f"{finding.value}; {finding.why}",
                    advice=finding.fix,
                )
        yield from _one_node(plan, opened, several=len(places) > 1)
    yield from _one_machine(places)
    yield from _two_clients(plan, places)
    yield from existing.doubts(plan)


def _two_clients(plan: Plan, places: Sequence[PlaceOpened]) -> Iterator[Doubt]:
    """Arms of a cell whose clients wait for answers by other calls of the kernel; a single user always waits alike."""
    offered: dict[Section, set[str]] = defaultdict(set)
    for opened in places:
        if INTERFACE in opened.facts:
            offered[opened.place].add(str(opened.facts[INTERFACE]))
    apart: dict[str, str] = {}
    for cell, arms in plan.resolved.items():
        found = {
            arm: " and ".join(sorted(set().union(*(offered[place] for place in trial.clients or (trial.place,)))))
            for arm, trial in arms.items()
            if _users(trial) > 1
        }
        if len({each for each in found.values() if each}) > 1:
            apart[cell] = ", ".join(f"{each} with {arm}" for arm, each in found.items())
    if apart:
        cell, words = next(iter(apart.items()))
        yield Doubt(
            code="clients_differ",
            message=f"the load engine waits for answers by {words}"
            + (f", in {counted(len(apart), 'cell')}" if len(apart) > 1 else f", in {cell}"),
            advice="with many users, `epoll` takes up to twice the client's processor time of `io_uring`, so part of "
            "the difference may be the client's: drive all arms from one place (`workload_place`), or give the client "
            "processors of its own",
        )


def _users(trial: ResolvedTrial) -> int:
    """Of the native load engine, if a server is under test."""
    parameters = trial.workload.parameters
    if trial.workload.kind not in NATIVE or trial.system.kind == EMBEDDED:
        return 0
    users = parameters.get("virtual_users", 1) if isinstance(parameters, dict) else 1
    return users if isinstance(users, int) else 1


def _one_machine(places: Sequence[PlaceOpened]) -> Iterator[Doubt]:
    """Hosts of a farm that are one machine, started in one moment; guests and containers are not looked at."""
    alike: dict[str, list[PlaceOpened]] = defaultdict(list)
    for opened in places:
        facts = opened.facts
        if opened.host and "host" in facts and not OF_FRESH & facts.keys():
            alike[str([facts.get(name) for name in MACHINE])].append(opened)
    for group in alike.values():
        for first, second in pairwise(sorted(group, key=_started_ns)):
            if first.host != second.host and _started_ns(second) - _started_ns(first) < SAME_START_NS:
                yield Doubt(
                    code="hosts_share_machine",
                    message=f"{first.host} and {second.host} seem to be one machine, {first.facts['host']}, "
                    "where their blocks ran at the same time",
                    advice="list each machine once, and run the study again",
                )


def _started_ns(opened: PlaceOpened) -> int:
    return opened.clock.realtime_ns - opened.clock.monotonic_ns


def _one_node(plan: Plan, opened: PlaceOpened, *, several: bool) -> Iterator[Doubt]:
    """Where arms wait for locks in different ways, and no cache line can travel between nodes."""
    here = [trial for arms in plan.resolved.values() for trial in arms.values() if trial.place == opened.place]
    nodes, processors = opened.facts.get("nodes"), opened.facts.get("processors")
    if not isinstance(nodes, dict) or not isinstance(processors, list):
        return
    if len(nodes) == 1 and any(LOCKS in trial.settings or trial.workload.kind == LOCKS for trial in here):
        yield Doubt(
            code="one_node",
            message=f"cross-node mechanism not testable here: the {_named(opened, several=several)} has one NUMA node "
            f"({counted(len(processors), 'processor')}), so no lock's cache line travels between nodes",
            advice="limit the claim to waiting on one node; repeat the study on a machine with several nodes",
        )


def _is_set(plan: Plan, opened: PlaceOpened, finding: Finding) -> bool:
    """Whether the study itself sees to it, in every trial there."""
    here = [trial for arms in plan.resolved.values() for trial in arms.values() if trial.place == opened.place]
    setting = SETS.get(finding.name)
    return bool(here) and not finding.of_host and all(setting in trial.settings for trial in here)


def _where(opened: PlaceOpened, finding: Finding, *, several: bool) -> str:
    host = "host of the " if finding.of_host else ""
    return f"before the run, at the {host}{_named(opened, several=several)}, "


def _named(opened: PlaceOpened, *, several: bool) -> str:
    return f"place {opened.place.kind}" if several else "place"
