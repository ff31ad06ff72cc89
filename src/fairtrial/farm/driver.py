"""The process that talks to Ray for a controller: hands blocks to nodes, unpacks what comes back. And a node's side."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import shutil
import socket
import tarfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import ray

from fairtrial import __version__
from fairtrial.errors import FairtrialError
from fairtrial.farm.calls import RESOURCE, Bar, Done, Nodes, Submit, Unreachable
from fairtrial.farm.company import Company
from fairtrial.farm.orders import Failure, Order, Outcome
from fairtrial.farm.station import Station, fresh, trials_below
from fairtrial.unpacking import Tarball, Unpacking

POLL_S: Final = 0.1
NODES_S: Final = 1.0
BEGUN_S: Final = 120.0  # until a node that is free has begun a block: twice what Ray lets its worker take to start
UNDONE_S: Final = 50.0  # for nodes to undo what they have changed, once they are told to end
HOST: Final = "FAIRTRIAL_FARM_HOST"  # a node's name where it is not its machine's
STATE: Final = "FAIRTRIAL_STATE_DIRECTORY"
NODE_ID: Final = "ray.io/node-id"


def drive(address: str, directory: Path, connection: Connection) -> None:
    """Serves a controller until it closes the connection, or is gone."""
    with Path(os.devnull).open("wb") as nowhere:  # what Ray's core writes past Python's streams helps nobody
        os.dup2(nowhere.fileno(), 2)
    try:
        ray.init(address=address, namespace="fairtrial", log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError) as error:
        connection.send(Unreachable(str(error).strip().splitlines()[0]))
        return
    driver = _Driver(directory, connection)
    try:
        with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
            driver.serve()
    finally:
        driver.end()


class _Driver:
    def __init__(self, directory: Path, connection: Connection) -> None:
        self._directory, self._connection = directory, connection
        self._out: dict[Any, int] = {}  # generators of blocks' tasks → their numbers
        self._at: dict[Any, str] = {}  # of those that have begun, Ray's id of the node
        self._waiting_s: dict[Any, float] = {}  # of those that have not, though a node is free, since when
        self._nodes: dict[str, str] = {}  # Ray's id of a node → its host
        self._barred: set[str] = set()
        self._looked_s = 0.0
        self._unfit: set[str] = set()  # Ray's ids of nodes that would run several blocks at a time
        self._said = Nodes(-1)
        # One for all blocks: the cluster keeps each that is made for as long as this process lives.
        self._serve = ray.remote(num_cpus=0, resources={RESOURCE: 1}, max_retries=0, num_returns="streaming")(
            serve_here
        )

    def serve(self) -> None:
        while True:
            self._look()
            while self._connection.poll(0 if self._out else POLL_S):
                self._obey(self._connection.recv())
            if self._out:
                for done in self._heard(POLL_S):
                    self._connection.send(done)

    def _heard(self, timeout_s: float) -> Iterator[Done]:
        """What came back or was lost, of blocks that said something within a time."""
        said, _ = ray.wait(list(self._out), num_returns=1, timeout=timeout_s)
        for each in said:
            if (done := self._fetched(each)) is not None:
                yield done

    def _look(self) -> None:
        if time.monotonic() - self._looked_s < NODES_S:
            return
        self._looked_s = time.monotonic()
        alive = {node["NodeID"]: node for node in _nodes() if node["Alive"]}
        # A node that froze, or whose network was cut, ends no connection: Ray would wait for its task for ever.
        for each in [each for each, node in self._at.items() if node not in alive]:
            self._connection.send(self._lost(each, "Ray heard nothing of its node any more"))
        offers = {name: node["Resources"].get(RESOURCE, 0) for name, node in alive.items()}
        self._unfit = {name for name, offer in offers.items() if offer > 1}
        offered = {name for name, offer in offers.items() if offer == 1 and self._nodes.get(name) not in self._barred}
        why = "; ".join(
            f"node {alive[name].get('NodeManagerHostname', name)} offers {offers[name]:g} `{RESOURCE}`, expected 1"
            for name in sorted(self._unfit)
        )
        if (said := Nodes(len(offered), why)) != self._said:
            self._said = said
            self._connection.send(said)
        self._give_up(len(offered) - sum(node in offered for node in self._at.values()))

    def _give_up(self, free: int) -> None:
        """Takes blocks for lost that no free node begins: theirs froze before it had said that it has them."""
        waiting = [each for each in self._out if each not in self._at] if free > 0 else []
        self._waiting_s = {each: self._waiting_s.get(each, self._looked_s) for each in waiting}
        for each, since_s in self._waiting_s.items():
            if self._looked_s - since_s > BEGUN_S:
                ray.cancel(each)
                self._connection.send(self._lost(each, "no node began it, though some were free"))

    def _obey(self, message: Submit | Bar) -> None:
        if isinstance(message, Bar):
            self._barred.add(message.host)
            self._looked_s = 0.0
            return
        barred = [*self._unfit, *(node for node, host in self._nodes.items() if host in self._barred)]
        elsewhere = {"label_selector": {NODE_ID: f"!in({','.join(barred)})"}} if barred else {}
        self._out[self._serve.options(**elsewhere).remote(message.order)] = message.number

    def _forgotten(self, block: Any) -> int:
        """The number of a block that is out no longer."""
        self._at.pop(block, None)
        return self._out.pop(block, 0)

    def _fetched(self, block: Any) -> Done | None:
        """What came of a block; None if it has only begun."""
        number = self._out[block]
        try:
            said = ray.get(next(block))
            if isinstance(said, str):
                self._at[block] = said
                return None
            node, outcome, files = said
            self._nodes[node] = Outcome.model_validate_json(outcome).host
            done = Done(number, outcome, str(unpacked(files, self._directory / str(number))))
        except (ray.exceptions.RayError, StopIteration, FairtrialError, ValueError) as error:  # one block's
            return self._lost(block, (str(error).strip() or "its task ended").splitlines()[0])
        self._forgotten(block)
        return done

    def _lost(self, block: Any, why: str) -> Done:
        """A block that is out no longer, and its host, if that brought another one back before."""
        host = self._nodes.get(self._at.get(block, ""), "")
        return Done(self._forgotten(block), lost=why, host=host)

    def end(self) -> None:
        """Interrupts what runs, so that nodes undo it."""
        for block in self._out:
            ray.cancel(block)
        deadline = time.monotonic() + UNDONE_S
        while self._out and (left_s := deadline - time.monotonic()) > 0:
            for _ in self._heard(left_s):
                pass
        ray.shutdown()


def _nodes() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ray.nodes()
    return found


@functools.cache
def _station() -> Station:
    return Station(os.environ.get(HOST) or socket.gethostname())


def _own_directory(host: str) -> Path:
    """On a node: below the state directory of its agents, which may be in a shared home, and of one block at a time."""
    state = os.environ.get(STATE) or ("/var/lib/fairtrial" if os.geteuid() == 0 else "~/.local/state/fairtrial")
    return fresh(Path(state).expanduser() / "farm" / host.replace("/", "_"))


def serve_here(order_json: bytes) -> Iterator[str | tuple[str, bytes, bytes]]:
    """On a node: runs a block. Ray's id of the node; then that, the outcome as JSON, and the trials as a tarball."""
    node = ray.get_runtime_context().get_node_id()
    yield node
    station = _station()
    order = Order.model_validate_json(order_json)
    if order.plan.fairtrial_version != __version__:
        why = f"it has fairtrial {__version__}, and the run is of {order.plan.fairtrial_version}"
        failure = Failure(message=why, hint="install the same version on every node")
        outcome = Outcome(host=station.host, failure=failure, begun=False)
        yield node, outcome.model_dump_json().encode(), _packed(Path(os.devnull))
        return
    directory = _own_directory(station.host)
    company = Company()
    try:
        outcome = station.serve(order, directory)
        outcome = outcome.model_copy(update={"processor_s": company.used_s(), "elapsed_s": company.elapsed_s()})
        yield node, outcome.model_dump_json().encode(), _packed(trials_below(directory, order.run))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def unpacked(files: bytes, directory: Path) -> Path:
    """What a node packed, below a directory of its own.

    Raises:
        PlaceError: it is cut or damaged, or leads out.
    """
    unpacking = Unpacking(fresh(directory) / "block.tar", directory)
    with unpacking.explained(unpacking.archive), Tarball.open(fileobj=io.BytesIO(files)) as tar:
        unpacking.tar(tar)
    return directory


def _packed(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            tar.add(path, arcname=path.name)
    return buffer.getvalue()
