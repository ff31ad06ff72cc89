"""A handful of hosts that places reach: one process on this machine for each, which opens the place block by block.

Nothing is installed on the hosts. A process that is killed takes its streams with it, and agents undo when theirs end;
so do the processes when this one is killed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.farm import children
from fairtrial.farm.executor import Returned
from fairtrial.farm.orders import Order, Outcome
from fairtrial.farm.station import Station, fresh, trials_below
from fairtrial.places import place_of
from fairtrial.study.resolved import Section

Body = Callable[[str, Path, Connection], None]
NEEDS: Final = "see the notes above, mend the hosts, and resume the run"


@dataclass
class Lease:
    """A host with the process that opens it.

    Attributes:
        place: of the host.
        directory: for its block, on this machine.
        order: that is out; None while it is idle.
        idle_since: the longest idle one is next.
    """

    host: str
    place: Section
    directory: Path
    process: BaseProcess
    connection: Connection
    order: Order | None = None
    idle_since: float = field(default_factory=time.monotonic)


class Leases:
    """Hosts of a file, each with a process of this machine; see `Executor`.

    Args:
        hosts: places by name.
        directory: for what comes back, on the record's file system.
        body: of a host's process: its name, its directory, its connection.
    """

    kinds: Sequence[str] = ("local",)
    has_places = True

    def __init__(self, hosts: Mapping[str, Section], directory: Path, *, body: Body | None = None) -> None:
        self._barred: set[str] = set()
        self._body = body or _serve
        self._leases = {name: self._lease(name, place, directory / name) for name, place in hosts.items()}

    def _lease(self, host: str, place: Section, directory: Path) -> Lease:
        process, connection = children.child(self._body, host, directory, name=f"fairtrial {host}")
        return Lease(host, place, directory, process, connection)

    def idle(self) -> Sequence[str]:
        """See `Executor`."""
        left = [lease for lease in self._leases.values() if lease.host not in self._barred]
        if not left:
            raise PlaceError("no host is left that takes a block", hint=NEEDS)
        idle = [lease for lease in left if lease.order is None]
        return [lease.host for lease in sorted(idle, key=lambda lease: lease.idle_since)]

    def submit(self, order: Order, *, host: str) -> None:
        """See `Executor`."""
        lease = self._leases[host]
        lease.order = order
        with contextlib.suppress(OSError):  # a process that has ended is found when it is waited for
            lease.connection.send_bytes(order.at(lease.place).model_dump_json().encode())

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        """See `Executor`."""
        out = {lease.connection: lease for lease in self._leases.values() if lease.order is not None}
        if not out:
            time.sleep(timeout_s)  # while paused
        ready = set(wait(list(out), timeout=timeout_s))
        received = [self._received(lease) for connection, lease in out.items() if connection in ready]
        return [each for each in received if each is not None]

    def _received(self, lease: Lease) -> Returned | None:
        """What came of a block; None while it is out."""
        assert lease.order is not None  # noqa: S101 - it was out
        order = lease.order
        try:
            outcome = self._arrived(lease, lease.connection.recv_bytes())
        except (EOFError, OSError):
            why = f"its process ended ({children.how(lease.process)})"
            self._leases[lease.host] = self._lease(lease.host, lease.place, lease.directory)
            return Returned(order, lease.host, lost=why)
        if outcome is None:
            return None
        lease.order, lease.idle_since = None, time.monotonic()
        return Returned(order, lease.host, outcome, trials_below(lease.directory, order.run))

    def _arrived(self, _lease: Lease, data: bytes) -> Outcome | None:
        """A message of a host's process, if it says what came of the block."""
        return Outcome.model_validate_json(data)

    def bar(self, host: str) -> None:
        """See `Executor`."""
        self._barred.add(host)

    def close(self) -> Sequence[str]:
        """See `Executor`. A host that boots gets the time to boot its default kernel again."""
        for lease in self._leases.values():
            lease.connection.close()  # an idle process ends by it
            if lease.order is not None:
                lease.process.terminate()
        leaving_s = max(place_of(lease.place).leaving_s() for lease in self._leases.values())
        return children.end((lease.process for lease in self._leases.values()), longer_s=leaving_s)


def _serve(host: str, directory: Path, connection: Connection) -> None:
    serve(Station(host), directory, connection)


def serve(station: Station, directory: Path, connection: Connection) -> None:
    """A host's process: block after block until the controller closes the connection, or is gone.

    Args:
        station: that runs them.
        directory: for what comes of a block.
        connection: to the controller.
    """
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            order = Order.model_validate_json(connection.recv_bytes())
            outcome = station.serve(order, fresh(directory))
            connection.send_bytes(outcome.model_dump_json().encode())
