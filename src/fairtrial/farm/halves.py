"""Two halves of one machine as hosts: a process each, bound to its processors, that starts to drive when it is told to.

A half says every phase that its trial enters. When it is ready to drive, it waits for the controller's answer.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from fairtrial.errors import PlaceError
from fairtrial.farm import children
from fairtrial.farm.leases import Lease, Leases, serve
from fairtrial.farm.orders import Crossing, Order, Outcome
from fairtrial.farm.processors import listed
from fairtrial.farm.station import Quiet, Station
from fairtrial.protocol.progress import ProgressLine
from fairtrial.study.resolved import Section

READY: Final = "drive"  # the phase that both begin together
PREPARING: Final = "prepare"  # may take as long as in any run
GO, STAY = b"go", b"stay"
HALVES: Final = (1, 2)


class Phase(Crossing):
    """What a half's trial does now; empty: still the same."""

    phase: str


_ARRIVING: Final[TypeAdapter[Phase | Outcome]] = TypeAdapter(Phase | Outcome)


class Announcing(Quiet):
    """Tells the controller how far the trial is, and begins to drive only when the other half does."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection, self._waits = connection, True

    def phase(self, name: str) -> None:
        """Tells; returns from `drive` once both halves are there.

        Raises:
            PlaceError: the other half does not get there.
            EOFError: the controller is gone.
        """
        self._tell(name)
        if name == READY:
            self._waits = False
            if self._connection.recv_bytes() != GO:
                raise PlaceError("the other half of the duet did not get ready", hint="its own error says why")

    def load(self, line: ProgressLine) -> None:
        """A sign of life, before the window alone."""
        del line
        self._tell("")

    def _tell(self, name: str) -> None:
        if self._waits:
            self._connection.send_bytes(Phase(phase=name).model_dump_json().encode())


class Halves(Leases):
    """The halves of this machine; see `Executor`.

    Args:
        processors: of each half.
        state: below which each half's agent keeps its own.
        directory: for what comes back.
    """

    def __init__(self, processors: Sequence[Sequence[int]], state: Path, directory: Path) -> None:
        self._phases: dict[str, tuple[str, float]] = {}  # of halves that are out, since when or last confirmed
        self._answered: set[str] = set()
        super().__init__(_places(processors, state), directory, body=_serve)

    def _lease(self, host: str, place: Section, directory: Path) -> Lease:
        self._phases.pop(host, None)  # a new process waits for nothing, whatever the one before it waited for
        return super()._lease(host, place, directory)

    def submit(self, order: Order, *, host: str) -> None:
        """See `Executor`."""
        self._phases[host] = "", time.monotonic()
        self._answered.discard(host)
        super().submit(order, host=host)

    def _arrived(self, lease: Lease, data: bytes) -> Outcome | None:
        arrived = _ARRIVING.validate_json(data)
        if isinstance(arrived, Outcome):
            return arrived
        phase = arrived.phase or self._phases[lease.host][0]
        self._phases[lease.host] = phase, time.monotonic()
        return None

    def ready(self) -> list[str]:
        """Halves that wait for an answer."""
        return [host for host, (phase, _) in self._phases.items() if phase == READY and host not in self._answered]

    def answer(self, host: str, answer: bytes) -> None:
        """Lets a half that is ready go, or stay."""
        self._answered.add(host)
        with contextlib.suppress(OSError):  # a process that has ended is found when it is waited for
            self._leases[host].connection.send_bytes(answer)

    def silent_s(self, host: str) -> float:
        """For how long a half that is not ready has said nothing; 0 while it prepares data."""
        phase, since_s = self._phases[host]
        return 0.0 if phase in (READY, PREPARING) else time.monotonic() - since_s

    def end(self, host: str) -> None:
        """Ends a half's process, which undoes what it changed; its block is lost."""
        process = self._leases[host].process
        process.terminate()
        children.end([process])


def name(half: int | None) -> str:
    """Of a half, as a host."""
    return f"duet-{half}"


def _places(processors: Sequence[Sequence[int]], state: Path) -> Mapping[str, Section]:
    every: dict[str, Section] = {}
    for half, own in zip(HALVES, processors, strict=True):
        through: dict[str, Any] = {
            "command": f"taskset -c {listed(own)}",
            "state_directory": str(state / name(half)),
        }
        every[name(half)] = Section({"through": through})
    return every


def _serve(host: str, directory: Path, connection: Connection) -> None:
    """A half's process; it names no host, as both halves are one."""
    del host
    serve(Station("", progress=lambda: Announcing(connection), begin=_bound), directory, connection)


def _bound(order: Order) -> None:
    """Takes the processors of the half that an order is for, so that watching a trial costs the other half nothing."""
    (place,) = {trial.place for arms in order.plan.resolved.values() for trial in arms.values()}
    command = place.parameters
    assert isinstance(command, dict)  # noqa: S101 - of `_places`
    os.sched_setaffinity(0, {int(word) for word in str(command["command"]).split()[-1].split(",")})
