"""A workload at another place than its system: what that needs, how the one reaches the other, and one time for both.

Owns the address and the clocks. It must not know how a load is driven.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, NoReturn

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.places import is_fresh
from fairtrial.record.models import ClockShift, Plan
from fairtrial.settings import ANY_TRIAL, TrialContext
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import system_of
from fairtrial.wire import Agent
from fairtrial.wire.open_place import OpenPlace

FIELD: Final = "workload.place"
LOOKS: Final = 16  # at a clock: the quickest answer tells most, and one of a few is rarely delayed
# What sshd says of a connection (sshd(8)): client's address and port, server's address and port.
CONNECTION: Final = 'echo "$SSH_CONNECTION"'
CONNECTION_WORDS: Final = 4


@dataclass(frozen=True)
class Client:
    """The other place, open.

    Attributes:
        place: where the workload runs.
        address: at which it reaches the system's place.
    """

    place: OpenPlace
    address: str


def of(trial: ResolvedTrial) -> Section | None:
    """Where a trial's workload runs; None if it is beside its system."""
    own = trial.workload_place
    return None if own is None or own == trial.place else own


def context(
    trial: ResolvedTrial, client: Client | None = None, *, directory: PurePosixPath = ANY_TRIAL.directory
) -> TrialContext:
    """What a trial's settings may go by beside its place's facts: where its load runs, and on which processors there.

    Args:
        trial: whose settings they are.
        client: the other place, once it is open; its processors are unknown before.
        directory: the trial's own at the system's place.
    """
    if of(trial) is None:
        return TrialContext(directory, load="beside" if system_of(trial.system).has_server() else "within")
    processors = None if client is None else tuple(client.place.facts.processors)
    return TrialContext(directory, load="elsewhere", client_processors=processors)


def driven_from(place: Section, resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[ResolvedTrial]:
    """Every trial of a plan whose workload runs at a place."""
    every = [trial for arms in resolved.values() for trial in arms.values()]
    return [trial for trial in every if (of(trial) or trial.place) == place]


def require(plan: Plan, trial: ResolvedTrial) -> None:
    """Refuses what cannot be done over a network, before anything is opened.

    Raises:
        InputError: the system is none that listens, a guest takes part, or the study has probes.
    """
    client = of(trial)
    if client is None:
        return
    system = system_of(trial.system)
    if not system.has_server():
        _refuse(
            f"the system `{system.name}` has no server that another place could reach",
            "take a system that runs a server, such as mariadb or postgres, or leave `place` out",
        )
    if any(is_fresh(place) for place in (trial.place, client)):
        _refuse(
            "a guest or container has no network but its own loopback",
            "use two hosts, `local` and `ssh` or two of `ssh`",
        )
    if plan.probes:
        _refuse("probes cannot follow a load of another place yet", "leave `telemetry.probes` out, or `place`")


def _refuse(message: str, suggestion: str) -> NoReturn:
    raise InputError([Problem(message, "the study", field=FIELD, suggestion=suggestion)], hint="nothing was started")


def reached(system: OpenPlace, client: OpenPlace, *, places: tuple[Section, Section]) -> Client:
    """The address of the system's place as the workload's place sees it, taken from the connections to both.

    Args:
        system: the system's place, open.
        client: the workload's, open.
        places: both as the study names them.

    Raises:
        PlaceError: neither was reached over SSH, so that no address is known.
    """
    first, second = (place.kind for place in places)
    if first == "ssh":
        words = _connection(system)
        address = words[2] if words else ""
    elif second == "ssh":
        words = _connection(client)
        address = words[0] if words else ""
    else:
        address = ""
    if not address:
        raise PlaceError(
            "the workload's place does not know an address of the system's",
            hint="name at least one of them as `ssh: {host: …}`",
        )
    return Client(place=client, address=address.removeprefix("::ffff:"))


def _connection(place: OpenPlace) -> list[str]:
    words = place.execute(["sh", "-c", CONNECTION]).output.split()
    return words if len(words) == CONNECTION_WORDS else []


def shift(system: Agent, client: Agent) -> ClockShift:
    """How far the workload's monotonic clock is ahead of the system's; each is asked some times, the quickest counts.

    An answer was given somewhere between question and answer (Cristian, 1989), so half the time that both took bounds
    the error.
    """
    (system_ahead, system_error), (client_ahead, client_error) = (_ahead(each) for each in (system, client))
    return ClockShift(shift_ns=client_ahead - system_ahead, error_ns=system_error + client_error)


def _ahead(agent: Agent) -> tuple[int, int]:
    """How far a place's clock is ahead of this process's, and by how much that may be wrong, nanoseconds."""
    best: tuple[int, int] | None = None
    for _ in range(LOOKS):
        start = time.monotonic_ns()
        there = agent.clock().monotonic_ns
        took = time.monotonic_ns() - start
        if best is None or took < 2 * best[1]:
            best = (there - start - took // 2, (took + 1) // 2)
    assert best is not None  # noqa: S101 - LOOKS is not 0
    return best
