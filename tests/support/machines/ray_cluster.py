"""A Ray cluster on this machine: a head without trials, and nodes that each have a state directory of their own.

Run as a program it is the cluster: it does what standard input says (`add NAME`, `kill NAME`) and answers each line,
the first with the address. `RayCluster` is the test's side of it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

STORE_BYTES = 80 << 20
PATIENCE_S = 300.0  # for a node to be there: Ray's own half a minute is short on a busy machine


@dataclass
class RayCluster:
    """The cluster as a test sees it."""

    address: str
    directory: Path
    process: subprocess.Popen[str]

    @property
    def environment(self) -> dict[str, str]:
        """Of whoever may use it."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.directory / "token")}

    def add(self, name: str) -> None:
        """A node that takes a block at a time."""
        self._do(f"add {name}")

    def kill(self, name: str) -> None:
        """Ends a node's processes at once."""
        self._do(f"kill {name}")

    def _do(self, command: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.strip() == "done", answer
        return answer


@contextmanager
def ray_cluster(
    directory: Path, nodes: tuple[str, ...], *, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[RayCluster]:
    """A cluster with these nodes, whose state directories are below a directory; `environment`: of its processes."""
    token = directory / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32), encoding="ascii")
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_DEDUP_LOGS": "0"}
    command = [sys.executable, __file__, str(directory)]
    with (
        (directory / "ray.log").open("w") as log,
        subprocess.Popen(
            command,
            env={**os.environ, **own, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # who stops the tests for a while stops no node, and who lets them go on thaws none
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, (directory / "ray.log").read_text()
            cluster = RayCluster(address, directory, process)
            for name in nodes:
                cluster.add(name)
            yield cluster
        finally:
            process.stdin.close()  # it ends by that


def main() -> None:
    """The cluster, until standard input ends."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - loads slowly, and only here

    directory = Path(sys.argv[1])
    cluster = Cluster()
    head = cluster.add_node(wait=False, num_cpus=0, object_store_memory=STORE_BYTES)
    cluster._wait_for_node(head, PATIENCE_S)
    nodes = {}
    print(cluster.address, flush=True)  # noqa: T201 - the answer
    for line in sys.stdin:
        act, name = line.split()
        if act == "add":
            state = directory / name
            nodes[name] = cluster.add_node(
                wait=False,
                num_cpus=0,
                object_store_memory=STORE_BYTES,
                resources={"fairtrial": 1},
                env_vars={
                    "FAIRTRIAL_FARM_HOST": name,
                    "FAIRTRIAL_STATE_DIRECTORY": str(state),
                    "FAIRTRIAL_MACHINE_DIRECTORY": str(state),
                },
            )
            cluster._wait_for_node(nodes[name], PATIENCE_S)
        else:
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
        print("done", flush=True)  # noqa: T201 - the answer
    cluster.shutdown()


if __name__ == "__main__":
    main()
