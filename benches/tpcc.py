"""TPC-C by the load engine beside the physical floor and a peer, alternating in one run, against a private MariaDB.

    .venv/bin/python benches/tpcc.py [--warehouses 10] [--rounds 3] [--seconds 5] [--users 4 64] [--sysbench-tpcc DIR]

Prints what loading costs (wall seconds, client CPU per warehouse), then client CPU per transaction and throughput,
statement by statement and by stored procedures. The floor answers for statements only: it says again what the engine
has said with as many users (`replay.py`). `--sysbench-tpcc`
names a checkout of Percona-Lab/sysbench-tpcc; without it that peer is skipped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from load import Bench, drive_parameters, timed
from private_mariadb import private_mariadb, sql
from ratios import Run, of_engine, of_sysbench, orders, paired
from replay import Replay

ENGINE, PEER, REPLAYED = "bench_tpcc", "bench_peer", "bench_floor"
LOADERS = 2
SEED = 1


@dataclass(frozen=True)
class Scene:
    """What every row is given."""

    bench: Bench
    warehouses: int
    peer: Path | None


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
    _, cpu_s = timed([str(scene.bench.agent), "load"], given=json.dumps(asked))
    return time.monotonic() - began, cpu_s


def load_peer(scene: Scene) -> tuple[float, float]:
    began = time.monotonic()
    _, cpu_s = timed(peer(scene, LOADERS, "prepare"), directory=scene.peer)
    return time.monotonic() - began, cpu_s


def peer(scene: Scene, users: int, *rest: str) -> list[str]:
    scale = ["--tables=1", f"--scale={scene.warehouses}", "--db-driver=mysql", f"--threads={users}"]
    connection = [f"--mysql-socket={scene.bench.socket}", "--mysql-user=root", f"--mysql-db={PEER}"]
    return ["sysbench", "tpcc.lua", *connection, *scale, *rest]


def drive_engine(scene: Scene, users: int, *, procedures: bool, database: str = ENGINE) -> Both:
    asked = {
        "drive": drive_parameters(scene.bench, database, users),
        "warehouses": scene.warehouses,
        "load_seed": SEED,
        "think_time_scale": 0.0,
        "procedures": procedures,
        "all_warehouses": True,
    }
    _, cpu_s = timed([str(scene.bench.agent), "drive"], given=json.dumps(asked))
    result = json.loads((scene.bench.directory / "result.json").read_text())
    return Both(
        transactions=of_engine(result, cpu_s, unit="transactions"), statements=of_engine(result, cpu_s, unit="queries")
    )


def drive_peer(scene: Scene, users: int) -> Run:
    output, cpu_s = timed(peer(scene, users, f"--time={scene.bench.seconds:.0f}", "run"), directory=scene.peer)
    return of_sysbench(output, cpu_s, unit="transactions")


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
    peers: list[Run] = []
    plain: list[Both] = []
    called: list[Both] = []
    turns = {
        "floor": lambda: floor.append(replay.run(kept)),
        "statements": lambda: plain.append(drive_engine(scene, users, procedures=False)),
        "procedures": lambda: called.append(drive_engine(scene, users, procedures=True)),
    }
    if scene.peer:
        turns["peer"] = lambda: peers.append(drive_peer(scene, users))
    for order in orders(list(turns), rounds):
        for name in order:
            turns[name]()
    said("floor", floor, "statement")
    said("engine", [run.statements for run in plain], "statement")
    said("engine", [run.transactions for run in plain], "transaction")
    said("engine, procedures", [run.transactions for run in called], "transaction")
    per_statement = [run.statements.cpu_per_unit_us for run in plain]
    print(f"  engine / floor, per statement: {paired(per_statement, [run.cpu_per_unit_us for run in floor])}")
    if scene.peer:
        said("sysbench-tpcc", peers, "transaction")
        theirs = [run.cpu_per_unit_us for run in peers]
        for name, runs in {"engine": plain, "engine, procedures": called}.items():
            ours = [run.transactions.cpu_per_unit_us for run in runs]
            print(f"  {name} / sysbench-tpcc, per transaction: {paired(ours, theirs)}")


def loads(scene: Scene) -> None:
    for name, load in {"engine": load_engine, **({"sysbench-tpcc": load_peer} if scene.peer else {})}.items():
        wall_s, cpu_s = load(scene)
        print(f"  {name:22} {wall_s:8.2f} s, {cpu_s / scene.warehouses:.3f} s of client CPU per warehouse", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouses", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--users", type=int, nargs="*", default=[4, 64])
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).parent / "fairtrial-agent")
    parser.add_argument("--sysbench-tpcc", type=Path)
    options = parser.parse_args()
    if not options.sysbench_tpcc:
        print("sysbench-tpcc skipped: --sysbench-tpcc names no checkout of it")
    with private_mariadb() as socket, TemporaryDirectory(prefix="bench-") as name:
        bench = Bench(socket=socket, directory=Path(name), seconds=options.seconds, agent=options.agent)
        scene = Scene(bench=bench, warehouses=options.warehouses, peer=options.sysbench_tpcc)
        Replay(bench, REPLAYED).build()
        for database in (ENGINE, PEER, REPLAYED):
            sql(socket, f"CREATE DATABASE {database}")
        print(f"loading {scene.warehouses} warehouses, {LOADERS} connections", flush=True)
        loads(scene)
        load_engine(scene, REPLAYED)
        for users in options.users:
            print(f"TPC-C, {users} users, {options.rounds} rounds of {options.seconds} s", flush=True)
            compare(scene, users, options.rounds)


if __name__ == "__main__":
    main()
