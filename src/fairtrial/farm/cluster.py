"""A farm on a Ray cluster, as a run's controller sees it. Ray itself is in a process of its own.

Ray's core ends the process that it is in when its head is gone for long, so it shares none with the record.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.farm import children
from fairtrial.farm.calls import RESOURCE, Bar, Done, Nodes, Submit, Unreachable
from fairtrial.farm.executor import Returned
from fairtrial.farm.orders import Order, Outcome

NODES_S: Final = 60.0  # until a cluster must have a node for us: nodes and heads are restarted
PROBE_S: Final = 60.0
NODES: Final = f"start nodes with: ray start --address=HEAD --resources='{{\"{RESOURCE}\": 1}}'"
# Asks for the cluster's nodes as somebody without its token would.
UNASKED: Final = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"


class Cluster:
    """Nodes of a Ray cluster that offer `fairtrial`; see `Executor`.

    Args:
        address: of the cluster, as `ray.init` takes it.
        directory: for what comes back, on the record's file system.
    """

    kinds: Sequence[str] = ("local", "vm", "container")
    has_places = False

    def __init__(self, address: str, directory: Path) -> None:
        self._address, self._directory = address, directory
        self._out: dict[int, Order] = {}
        self._lost: list[Returned] = []
        self._barred: set[str] = set()
        self._number = 0
        self._slots = 0
        self._why = ""
        self._seen_s = time.monotonic()
        self._connect()

    def _connect(self) -> None:
        from fairtrial.farm import driver  # noqa: PLC0415 - imports what is used only here

        self._slots = 0
        self._process, self._connection = children.child(
            driver.drive, self._address, self._directory, name="fairtrial ray"
        )
        for host in self._barred:
            self._connection.send(Bar(host))

    def idle(self) -> Sequence[str]:
        """See `Executor`."""
        if self._slots:
            self._seen_s = time.monotonic()
        elif not self._out and time.monotonic() - self._seen_s > NODES_S:
            raise PlaceError(f"the cluster at {self._address} has no node that takes a block{self._why}", hint=NODES)
        return [""] * (self._slots - len(self._out))

    def submit(self, order: Order, *, host: str) -> None:
        """See `Executor`. Ray chooses the host."""
        del host
        self._number += 1
        self._out[self._number] = order
        self._send(Submit(self._number, order.model_dump_json().encode()))

    def bar(self, host: str) -> None:
        """See `Executor`."""
        self._barred.add(host)
        self._send(Bar(host))

    def _send(self, message: Submit | Bar) -> None:
        try:
            self._connection.send(message)
        except OSError:
            self._again()

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        """See `Executor`."""
        if self._slots:  # nobody asks for idle hosts while nothing is owed
            self._seen_s = time.monotonic()
        found, self._lost = self._lost, []
        if found or not self._connection.poll(timeout_s):
            return found
        try:
            while self._connection.poll():
                self._hear(self._connection.recv(), found)
        except (EOFError, OSError):
            self._again()
        return found

    def _hear(self, message: Nodes | Unreachable | Done, found: list[Returned]) -> None:
        if isinstance(message, Nodes):
            self._slots, self._why = message.slots, message.why and f": {message.why}"
            return
        if isinstance(message, Unreachable):
            self._why = f": {message.why}"
            return
        order = self._out.pop(message.number)
        if message.lost:
            found.append(Returned(order, message.host, lost=message.lost))
        else:
            outcome = Outcome.model_validate_json(message.outcome)
            found.append(Returned(order, outcome.host, outcome, Path(message.directory)))

    def _again(self) -> None:
        """The driver has ended, which takes its blocks with it."""
        why = f"the cluster was lost ({children.how(self._process)})"
        self._lost += [Returned(order, "", lost=why) for order in self._out.values()]
        self._out.clear()
        self._connect()

    def close(self) -> Sequence[str]:
        """See `Executor`."""
        self._connection.close()  # the driver ends by it, once nodes have undone what they changed
        if not self._slots:
            self._process.kill()  # it tries to reach the cluster, and nothing is out
        return children.end([self._process])


def require_token(address: str) -> None:
    """Whoever reaches a cluster that asks for no token runs code on its nodes: such a one is refused.

    Raises:
        PlaceError: with what to do.
    """
    hint = "set RAY_AUTH_MODE=token for the cluster and here (`ray get-auth-token --generate`), or --insecure-farm"
    if os.environ.get("RAY_AUTH_MODE", "token") != "token":
        raise PlaceError("Ray's token authentication is off here", hint=hint)
    if os.environ.get("RAY_AUTH_TOKEN"):
        raise PlaceError(
            "RAY_AUTH_TOKEN hands the token to every program that a trial starts", hint="keep it in a file"
        )
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    try:
        seen = path.stat()
    except OSError as error:
        raise PlaceError(f"the token's file {path} cannot be read: {error.strerror}", hint=hint) from error
    if seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        raise PlaceError(f"others may read the token's file {path}", hint=f"chmod 600 {path}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_TOKEN")}
    try:
        probe = subprocess.run(
            [sys.executable, "-P", "-c", UNASKED, address],
            env={**environment, "RAY_AUTH_MODE": "disabled", "RAY_NUM_REDIS_GET_RETRIES": "1"},  # refused, it tries on
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return  # it was not let in
    if probe.returncode == 0:
        raise PlaceError(f"the cluster at {address} asks nobody for a token", hint=hint)
