"""The load engine beside pgbench on a private PostgreSQL: select-only and TPC-B-like, alternating in one run.

    .venv/bin/python benches/pgbench.py [--rounds 5] [--seconds 5] [--users 16] [--scale 16]

Both clients prepare their statements and use one thread. The engine runs them as a `script` workload. Per client: user
+ system time of its process per transaction and throughput, median with smallest and largest; then the engine's ratio
to pgbench, paired by round. The server's count of commits must agree with what each client says it did.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from load import COUNTS_AGREE, timed
from private_postgres import DATABASE, USER, found, private_postgres, sql
from ratios import Run, of_engine, orders, paired

# pgbench initialises so many rows per unit of scale (its documentation, "-s").
ACCOUNTS, TELLERS = 100_000, 10


@dataclass(frozen=True)
class Bench:
    """What both clients are given."""

    server: Path
    directory: Path
    seconds: float
    scale: int
    agent: Path


def uniform(name: str, low: int, high: int) -> dict[str, object]:
    return {"name": name, "draw": {"kind": "integer", "low": low, "high": high, "distribution": {"kind": "uniform"}}}


def statement(sql: str, *values: str, rows: int = 1) -> dict[str, object]:
    return {"sql": sql, "values": list(values), "rows": rows}


def transaction(bench: Bench, script: str) -> dict[str, object]:
    """`ScriptTransaction` of crates/protocol."""
    account = uniform("aid", 1, ACCOUNTS * bench.scale)
    read = statement("SELECT abalance FROM pgbench_accounts WHERE aid = ?", "aid")
    given = {"name": script.replace("-", "_"), "weight": 1.0, "rollback_share": 0.0}
    if script == "select-only":
        return {**given, "scope": "none", "parameters": [account], "statements": [read]}
    drawn = [
        account,
        uniform("bid", 1, bench.scale),
        uniform("tid", 1, TELLERS * bench.scale),
        uniform("delta", -5000, 5000),
    ]
    statements = [
        statement("UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?", "delta", "aid"),
        read,
        statement("UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?", "delta", "tid"),
        statement("UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?", "delta", "bid"),
        statement(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)",
            *("tid", "bid", "aid", "delta"),
        ),
    ]
    return {**given, "scope": "read_write", "parameters": drawn, "statements": statements}


def run_engine(bench: Bench, script: str, users: int) -> Run:
    asked = {
        "drive": {
            "endpoint": {
                "kind": "postgres",
                "socket_directory": str(bench.server),
                "user": USER,
                "password": "",
                "database": DATABASE,
            },
            "virtual_users": users,
            "seed": 1,
            "ramp_up_s": 0.0,
            "duration_s": bench.seconds,
            "arrivals": {"kind": "closed", "think_s": 0.0, "spacing": "constant"},
            "retries": 10,
            "interval_ms": 1000,
            "output_directory": str(bench.directory),
        },
        "transactions": [transaction(bench, script)],
    }
    _, cpu_s = timed([str(bench.agent), "script-drive"], given=json.dumps(asked))
    return of_engine(json.loads((bench.directory / "result.json").read_text()), cpu_s, unit="transactions")


def pgbench(bench: Bench, *rest: str) -> list[str]:
    program = found("pgbench") or "pgbench"
    return [program, f"--host={bench.server}", f"--username={USER}", *rest, DATABASE]


def run_pgbench(bench: Bench, script: str, users: int) -> Run:
    options = [f"--client={users}", "--jobs=1", "--protocol=prepared", "--no-vacuum", f"--time={bench.seconds:.0f}"]
    output, cpu_s = timed(pgbench(bench, f"--builtin={script}", *options))
    done, per_s = re.search(r"actually processed: (\d+)", output), re.search(r"tps = ([\d.]+)", output)
    assert done
    assert per_s
    return Run(units=int(done[1]), wall_s=int(done[1]) / float(per_s[1]), cpu_s=cpu_s)


def commits(bench: Bench) -> int:
    """Transactions that the server has committed in the database; sessions report when they end."""
    return int(sql(bench.server, f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{DATABASE}'"))


def verified(bench: Bench, name: str, client: Callable[[], Run]) -> Run:
    before = commits(bench)
    run = client()
    served = commits(bench) - before
    if abs(served / run.units - 1) > COUNTS_AGREE:
        print(f"  WARNING: {name} says {run.units} transactions, the server {served}")
    return run


def compare(bench: Bench, script: str, *, users: int, rounds: int) -> None:
    clients: dict[str, Callable[[], Run]] = {
        "engine": lambda: run_engine(bench, script, users),
        "pgbench": lambda: run_pgbench(bench, script, users),
    }
    runs: dict[str, list[Run]] = {name: [] for name in clients}
    for order in orders(list(clients), rounds):
        for name in order:
            runs[name].append(verified(bench, name, clients[name]))
    print(f"  load average {os.getloadavg()[0]:.1f} (the clients and the server themselves included)")
    for name, its in runs.items():
        cpu, rate = sorted(run.cpu_per_unit_us for run in its), sorted(run.per_s for run in its)
        print(
            f"  {name:10} {median(cpu):8.2f} us/transaction ({cpu[0]:.2f}-{cpu[-1]:.2f})"
            f"  {median(rate):8.0f}/s ({rate[0]:.0f}-{rate[-1]:.0f})"
        )
    ours, theirs = runs["engine"], runs["pgbench"]
    cost = paired([run.cpu_per_unit_us for run in ours], [run.cpu_per_unit_us for run in theirs])
    rate_ratio = paired([run.per_s for run in ours], [run.per_s for run in theirs])
    print(f"  engine / pgbench: client CPU {cost}, throughput {rate_ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--users", type=int, nargs="+", default=[16])
    parser.add_argument("--scale", type=int, default=16)
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).parent / "fairtrial-agent")
    options = parser.parse_args()
    if not found("pgbench"):
        parser.error("pgbench is needed: apt install postgresql-contrib, or postgresql-15 on Debian 12")
    with private_postgres() as server, TemporaryDirectory(prefix="bench-") as name:
        bench = Bench(server, Path(name), options.seconds, options.scale, options.agent)
        timed(pgbench(bench, "--initialize", "--quiet", f"--scale={bench.scale}"))
        for script in ("select-only", "tpcb-like"):
            for users in options.users:
                print(f"{script}, {users} users, {options.rounds} rounds of {options.seconds} s", flush=True)
                compare(bench, script, users=users, rounds=options.rounds)


if __name__ == "__main__":
    main()
