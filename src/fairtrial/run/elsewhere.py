"""A workload at other places than its system: what that needs, how they reach the other, and one time for all.

Owns the address and the clocks. It must not know how a load is driven.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, NoReturn

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.places import is_fresh, place_of
from fairtrial.record.models import ClockShift
from fairtrial.settings import ANY_TRIAL, TrialContext
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import system_of
from fairtrial.wire import Agent
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import workload_of

FIELD: Final = "workload.place"
LOOKS: Final = 16  # at a clock: the quickest answer tells most, and one of a few is rarely delayed
# What sshd says of a connection (sshd(8)): client's address and port, server's address and port.
CONNECTION: Final = 'echo "$SSH_CONNECTION"'
CONNECTION_WORDS: Final = 4


@dataclass(frozen=True)
class Client:
    """A place that drives, open.

    Attributes:
        place: where the workload runs.
        address: at which it reaches the system's place, unless a trial's study chooses another; empty: unknown.
        title: the place in words.
    """

    place: OpenPlace
    address: str
    title: str = ""


def of(trial: ResolvedTrial) -> tuple[Section, ...]:
    """Where a trial's clients run, in the study's order; empty if its workload is beside its system."""
    return () if trial.clients == (trial.place,) else trial.clients


def context(
    trial: ResolvedTrial, clients: Sequence[Client] = (), *, directory: PurePosixPath = ANY_TRIAL.directory
) -> TrialContext:
    """What a trial's settings may go by beside its place's facts: where its load runs, and on which processors there.

    Args:
        trial: whose settings they are.
        clients: the other places, once they are open; processors are those that each of them has, unknown before.
        directory: the trial's own at the system's place.
    """
    if not of(trial):
        return TrialContext(directory, load="beside" if system_of(trial.system).has_server() else "within")
    every = [set(client.place.facts.processors) for client in clients]
    processors = tuple(sorted(set.intersection(*every))) if every else None
    return TrialContext(directory, load="elsewhere", client_processors=processors)


def driven_from(place: Section, resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[ResolvedTrial]:
    """Every trial of a plan whose workload, or a part of it, runs at a place."""
    every = [trial for arms in resolved.values() for trial in arms.values()]
    return [trial for trial in every if place in (of(trial) or (trial.place,))]


def require(trial: ResolvedTrial) -> None:
    """Refuses what cannot be done over a network, before anything is opened.

    Raises:
        InputError: the system is none that listens or encrypts, a guest takes part, or the workload has one client.
    """
    clients = of(trial)
    if not clients:
        _require_nothing(trial)
        return
    system = system_of(trial.system)
    if not system.has_server():
        _refuse(
            f"the system `{system.name}` has no server that another place could reach",
            "take a system that runs a server, such as mariadb or postgres, or leave `place` out",
        )
    if any(is_fresh(place) for place in (trial.place, *clients)):
        _refuse(
            "a guest or container has no network but its own loopback",
            "use hosts, `local` and `ssh` or several of `ssh`",
        )
    _require_network(trial)
    if len(clients) > 1:
        _require_fleet(trial, clients)


def _require_nothing(trial: ResolvedTrial) -> None:
    """A load beside its system has no network that a study could choose."""
    for key, is_given in (("address", trial.network.address is not None), ("tls", trial.network.tls)):
        if is_given:
            problem = "the load runs beside its system, which it reaches without a network"
            _refuse(problem, f"name another `place`, or leave `{key}` out", field=f"workload.{key}")


def _require_network(trial: ResolvedTrial) -> None:
    """Its server must be one that trials start, and one that this version can tell how to encrypt."""
    system, workload = system_of(trial.system), workload_of(trial.workload)
    network = trial.network
    if system.there() is not None and (network.address is not None or network.tls):
        key = "address" if network.address is not None else "tls"
        _refuse(
            "the server is there already, so `at` says where it listens and how it encrypts",
            f"leave `{key}` out",
            field=f"workload.{key}",
        )
    if network.tls and not system.encrypts:
        _refuse(
            f"the system `{system.name}` is not told how to encrypt", "use mariadb, mysql or postgres", "workload.tls"
        )
    if network.tls and not workload.is_native:
        _refuse(
            f"the workload `{workload.name}` is not told how to encrypt", "use tpcc, oltp or script", "workload.tls"
        )


def _require_fleet(trial: ResolvedTrial, clients: Sequence[Section]) -> None:
    """Several clients drive one workload that can be divided, none of them beside the system."""
    if trial.place in clients:
        _refuse(
            f"client {clients.index(trial.place) + 1} runs at the system's own place",
            "several clients reach the system over one network: use hosts other than the system's",
        )
    if problem := workload_of(trial.workload).undividable(len(clients)):
        _refuse(problem, "change the workload, or name one place")


def _refuse(message: str, suggestion: str, field: str = FIELD) -> NoReturn:
    raise InputError([Problem(message, "the study", field=field, suggestion=suggestion)], hint="nothing was started")


def reached(system: OpenPlace, client: OpenPlace, *, places: tuple[Section, Section], must_know: bool = True) -> Client:
    """A client with the address of the system's place as it sees it, taken from the connections to both.

    Args:
        system: the system's place, open.
        client: the workload's, open.
        places: both as the study names them.
        must_know: whether there are trials for which the study chooses no address; else it may stay unknown.

    Raises:
        PlaceError: neither was reached over SSH, so that no address is known.
    """
    first, second = (place.kind for place in places)
    address = ""
    if first == "ssh":
        words = _connection(system)
        address = words[2] if words else ""
    elif second == "ssh":
        words = _connection(client)
        address = words[0] if words else ""
    if must_know and not address:
        raise PlaceError(
            "the workload's place does not know an address of the system's",
            hint="name at least one of them as `ssh: {host: …}`, or set `address` beside the workload's `place`",
        )
    return Client(place=client, address=address.removeprefix("::ffff:"), title=place_of(places[1]).title)


def _connection(place: OpenPlace) -> list[str]:
    words = place.execute(["sh", "-c", CONNECTION]).output.split()
    return words if len(words) == CONNECTION_WORDS else []


def shift(system: Agent, client: Agent) -> ClockShift:
    """How far a client's monotonic clock is ahead of the system's; each is asked some times, the quickest counts.

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
