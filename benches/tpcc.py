"""TPC-C by the load engine beside the physical floor and peers, alternating in one run, against a private MariaDB.

    .venv/bin/python benches/tpcc.py [--warehouses 10] [--rounds 3] [--seconds 5] [--users 4 64] [--go-tpc PATH] …

Prints what loading costs (wall seconds, client CPU per warehouse), then client CPU per transaction and throughput,
statement by statement and by stored procedures. The floor answers for statements only: it says again what the engine
has said with as many users (`replay.py`). A peer (`tpcc_peers.py`) runs if its path is given; two of them speak TCP
only, so with them the engine runs over TCP too. HammerDB drives for a minute at least.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import peer_site
import tpcc_peers
from load import Bench, drive_parameters, timed
from peer_site import Site
from private_mariadb import free_port, private_mariadb, sql
from ratios import Run, of_engine, orders, paired
from replay import Replay
from tpcc_peers import Peer

ENGINE, REPLAYED = "bench_tpcc", "bench_floor"
LOADERS = 2
SEED = 1


@dataclass(frozen=True)
class Scene:
    """What every row is given."""

    bench: Bench
    warehouses: int
    peers: list[Peer]
    port: int

    @property
    def site(self) -> Site:
        return Site(
            socket=self.bench.socket,
            port=self.port,
            directory=self.bench.directory,
            warehouses=self.warehouses,
            seconds=self.bench.seconds,
        )


@dataclass(frozen=True)
class Both:
    """One drive, counted in transactions and in statements."""

    transactions: Run
    statements: Run


def load_engine(scene: Scene, database: str = ENGINE) -> tuple[float, float]:
    asked = {
        "endpoint": scene.bench.endpoint(database),
        "warehouses": scene.warehouses,
        "seed": SEED,
        "threads": LOADERS,
    }
    began = time.monotonic()
    _, cpu_s = timed([str(scene.bench.agent), "tpcc-load"], given=json.dumps(asked))
    return time.monotonic() - began, cpu_s


def load_peer(scene: Scene, peer: Peer) -> tuple[float, float]:
    began = time.monotonic()
    cpu_s = peer.load(scene.site, LOADERS)
    return time.monotonic() - began, cpu_s


def drive_engine(
    scene: Scene, users: int, *, procedures: bool, database: str = ENGINE, endpoint: dict[str, object] | None = None
) -> Both:
    asked = {
        "drive": drive_parameters(scene.bench, database, users) | ({"endpoint": endpoint} if endpoint else {}),
        "warehouses": scene.warehouses,
        "load_seed": SEED,
        "think_time_scale": 0.0,
        "procedures": procedures,
        "all_warehouses": True,
    }
    _, cpu_s = timed([str(scene.bench.agent), "tpcc-drive"], given=json.dumps(asked))
    result = json.loads((scene.bench.directory / "result.json").read_text())
    return Both(
        transactions=of_engine(result, cpu_s, unit="transactions"), statements=of_engine(result, cpu_s, unit="queries")
    )


def drive_peer(scene: Scene, peer: Peer, *, users: int, into: list[Run]) -> None:
    into.append(tpcc_peers.driven(peer, scene.site, users))


def said(name: str, runs: list[Run], unit: str) -> None:
    cpu, rate = sorted(run.cpu_per_unit_us for run in runs), sorted(run.per_s for run in runs)
    print(
        f"  {name:22} {median(cpu):8.2f} us/{unit} ({cpu[0]:.2f}-{cpu[-1]:.2f})  {median(rate):8.0f}/s"
        f" ({rate[0]:.0f}-{rate[-1]:.0f})"
    )


def compare(scene: Scene, users: int, rounds: int) -> None:
    replay = Replay(scene.bench, REPLAYED)
    kept = replay.record(
        users,
        lambda relayed: drive_engine(replace(scene, bench=relayed), users, procedures=False, database=REPLAYED),
    )
    floor: list[Run] = []
    peers: dict[str, list[Run]] = {peer.name: [] for peer in scene.peers}
    plain: list[Both] = []
    called: list[Both] = []
    remote: list[Both] = []
    over_tcp = peer_site.endpoint(scene.site, ENGINE)
    turns: dict[str, Callable[[], None]] = {
        "floor": lambda: floor.append(replay.run(kept)),
        "statements": lambda: plain.append(drive_engine(scene, users, procedures=False)),
        "procedures": lambda: called.append(drive_engine(scene, users, procedures=True)),
    }
    turns |= {peer.name: partial(drive_peer, scene, peer, users=users, into=peers[peer.name]) for peer in scene.peers}
    if any(peer.tcp for peer in scene.peers):
        turns["TCP"] = lambda: remote.append(drive_engine(scene, users, procedures=False, endpoint=over_tcp))
    for order in orders(list(turns), rounds):
        for name in order:
            turns[name]()
    said("floor", floor, "statement")
    said("engine", [run.statements for run in plain], "statement")
    said("engine", [run.transactions for run in plain], "transaction")
    said("engine, procedures", [run.transactions for run in called], "transaction")
    per_statement = [run.statements.cpu_per_unit_us for run in plain]
    print(f"  engine / floor, per statement: {paired(per_statement, [run.cpu_per_unit_us for run in floor])}")
    if remote:
        said("engine, TCP", [run.transactions for run in remote], "transaction")
    for peer in scene.peers:
        said(peer.name, peers[peer.name], "transaction")
        ours = called if peer.procedures else remote if peer.tcp else plain
        ratio = paired(
            [run.transactions.cpu_per_unit_us for run in ours], [run.cpu_per_unit_us for run in peers[peer.name]]
        )
        how = "procedures" if peer.procedures else "TCP" if peer.tcp else "socket"
        print(f"  engine, {how} / {peer.name}, per transaction: {ratio}")


def loads(scene: Scene) -> None:
    turns: dict[str, Callable[[], tuple[float, float]]] = {"engine": partial(load_engine, scene)}
    turns |= {peer.name: partial(load_peer, scene, peer) for peer in scene.peers}
    for name, load in turns.items():
        wall_s, cpu_s = load()
        print(f"  {name:22} {wall_s:8.2f} s, {cpu_s / scene.warehouses:.3f} s of client CPU per warehouse", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouses", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--users", type=int, nargs="*", default=[4, 64])
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).parent / "fairtrial-agent")
    tpcc_peers.add_options(parser)
    options = parser.parse_args()
    peers, port = tpcc_peers.given(options), free_port()
    with private_mariadb(port) as socket, TemporaryDirectory(prefix="bench-") as name:
        bench = Bench(socket=socket, directory=Path(name), seconds=options.seconds, agent=options.agent)
        scene = Scene(bench=bench, warehouses=options.warehouses, peers=peers, port=port)
        Replay(bench, REPLAYED).build()
        for database in (ENGINE, REPLAYED):
            sql(socket, f"CREATE DATABASE {database}")
        peer_site.admit(socket)
        print(f"loading {scene.warehouses} warehouses, {LOADERS} connections", flush=True)
        loads(scene)
        load_engine(scene, REPLAYED)
        for users in options.users:
            print(f"TPC-C, {users} users, {options.rounds} rounds of {options.seconds} s", flush=True)
            compare(scene, users, options.rounds)


if __name__ == "__main__":
    main()
