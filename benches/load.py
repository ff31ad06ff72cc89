"""The load engine beside the physical floor and its peers, alternating in one run, against private servers.

    .venv/bin/python benches/load.py [--rounds 5] [--seconds 3] [--rows point_select read_write] [--users 1 16 64]

Per client: user + system time of its process per unit of work and throughput, median with smallest and largest; then
the engine's ratio to each other client, paired by round. Peers that are not installed are skipped, and it says so.
`--agent` names the engine's binary (a release build; default: beside this Python), `--beside` another build of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from private_mariadb import DATABASE, private_mariadb, questions
from ratios import Run, of_engine, of_floor, of_sysbench, orders, paired

TABLE_SIZE = 100_000
# A client's count may miss what it did before and after its own window (log in, settings, the last statement per user).
COUNTS_AGREE = 0.02
FLOOR = Path(__file__).parent / "floor" / "floor.c"
UNITS = {"point_select": "queries", "read_write": "queries"}
# sysbench's defaults (oltp_common.lua, sysbench --help): both clients do the same work.
MIX = {
    "point_selects": 10,
    "simple_ranges": 1,
    "sum_ranges": 1,
    "order_ranges": 1,
    "distinct_ranges": 1,
    "range_size": 100,
    "index_updates": 1,
    "non_index_updates": 1,
    "delete_inserts": 1,
    "random_points": 10,
    "random_ranges": 10,
    "random_range_delta": 5,
}

Client = Callable[[], Run]


@dataclass(frozen=True)
class Bench:
    """What every client is given."""

    socket: Path
    directory: Path
    seconds: float
    agent: Path
    beside: Path | None = None

    def endpoint(self, database: str) -> dict[str, object]:
        """`Endpoint` of crates/protocol."""
        return {"kind": "mysql", "socket": str(self.socket), "user": "root", "database": database}


def timed(command: list[str], *, given: str = "", directory: Path | None = None) -> tuple[str, float]:
    """Runs a client; gives what it printed and its user + system seconds, its children's excluded."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(given)
        process.stdin.close()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{command[0]} ended with {process.returncode}: {output[-2000:]}"
        raise SystemExit(message)
    return output, usage.ru_utime + usage.ru_stime


def sysbench(bench: Bench, profile: str, users: int, *extra: str) -> list[str]:
    connection = [f"--mysql-socket={bench.socket}", "--mysql-user=root", f"--mysql-db={DATABASE}"]
    size = ["--tables=1", f"--table-size={TABLE_SIZE}", "--rand-type=uniform", "--db-ps-mode=auto"]
    # 1.0.20 seeds by the clock only if told so; its errors must not end a run that the engine would go on with.
    return ["sysbench", f"oltp_{profile}", *connection, *size, f"--threads={users}", *extra]


def run_sysbench(bench: Bench, profile: str, users: int) -> Run:
    output, cpu_s = timed([*sysbench(bench, profile, users, f"--time={bench.seconds:.0f}"), "run"])
    return of_sysbench(output, cpu_s, unit=UNITS[profile])


def run_floor(bench: Bench, users: int, how: str) -> Run:
    program, size = str(bench.directory / "floor"), str(TABLE_SIZE)
    arguments = [str(bench.socket), "root", DATABASE, str(users), str(bench.seconds), size, how]
    return of_floor(*timed([program, *arguments]))


def drive_parameters(bench: Bench, database: str, users: int) -> dict[str, object]:
    """`Drive` of crates/protocol."""
    return {
        "endpoint": bench.endpoint(database),
        "virtual_users": users,
        "seed": 1,
        "ramp_up_s": 0.0,
        "duration_s": bench.seconds,
        "arrivals": {"kind": "closed", "think_s": 0.0, "spacing": "constant"},
        "retries": 10,
        "interval_ms": 1000,
        "output_directory": str(bench.directory),
    }


def drive_document(bench: Bench, profile: str, users: int) -> dict[str, object]:
    """`OltpDrive` of crates/protocol."""
    return {
        "drive": drive_parameters(bench, DATABASE, users),
        "profile": profile,
        "tables": 1,
        "table_size": TABLE_SIZE,
        "distribution": {"kind": "uniform"},
        "protocol": "prepared",
        "skip_transactions": False,
        "mix": MIX,
    }


def run_engine(bench: Bench, profile: str, users: int) -> Run:
    _, cpu_s = timed([str(bench.agent), "oltp-drive"], given=json.dumps(drive_document(bench, profile, users)))
    return of_engine(json.loads((bench.directory / "result.json").read_text()), cpu_s, unit=UNITS[profile])


def clients(bench: Bench, profile: str, users: int) -> dict[str, Client]:
    them: dict[str, Client] = {}
    if profile == "point_select":
        them["floor"] = lambda: run_floor(bench, users, "epoll")
        them["floor, io_uring"] = lambda: run_floor(bench, users, "uring")
    if bench.agent.is_file():
        them["engine"] = lambda: run_engine(bench, profile, users)
    if beside := bench.beside:
        them["other build"] = lambda: run_engine(replace(bench, agent=beside), profile, users)
    them["sysbench"] = lambda: run_sysbench(bench, profile, users)
    return them


def verified(bench: Bench, name: str, client: Client) -> Run:
    """Runs a client whose statements the server counts too: a client that overstates its work looks cheap."""
    before = questions(bench.socket)
    run = client()
    served = questions(bench.socket) - before
    if abs(served / run.units - 1) > COUNTS_AGREE:
        print(f"  WARNING: {name} says {run.units} statements, the server {served}")
    return run


def compare(bench: Bench, them: dict[str, Client], *, rounds: int) -> None:
    runs: dict[str, list[Run]] = {name: [] for name in them}
    for order in orders(list(them), rounds):
        for name in order:
            runs[name].append(verified(bench, name, them[name]))
    print(f"  load average {os.getloadavg()[0]:.1f} (the clients and the server themselves included)")
    for name, its in runs.items():
        cpu, rate = sorted(run.cpu_per_unit_us for run in its), sorted(run.per_s for run in its)
        print(
            f"  {name:16} {median(cpu):7.2f} us/unit ({cpu[0]:.2f}-{cpu[-1]:.2f})"
            f"  {median(rate):9.0f}/s ({rate[0]:.0f}-{rate[-1]:.0f})"
        )
    if engine := runs.pop("engine", None):
        for name, its in runs.items():
            cost = paired([run.cpu_per_unit_us for run in engine], [run.cpu_per_unit_us for run in its])
            rate_ratio = paired([run.per_s for run in engine], [run.per_s for run in its])
            print(f"  engine / {name}: client CPU {cost}, throughput {rate_ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rows", nargs="+", choices=list(UNITS), default=list(UNITS))
    parser.add_argument("--users", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).parent / "fairtrial-agent")
    parser.add_argument("--beside", type=Path, help="Another build of the engine, to compare with.")
    options = parser.parse_args()
    if not shutil.which("sysbench"):
        parser.error("sysbench fills the tables: install it (apt install sysbench)")
    if not options.agent.is_file():
        print(f"engine skipped: no {options.agent}")
    with private_mariadb() as socket, TemporaryDirectory(prefix="bench-") as name:
        bench = Bench(socket, Path(name), options.seconds, options.agent, options.beside)
        subprocess.run(["cc", "-O2", "-o", str(bench.directory / "floor"), str(FLOOR)], check=True)
        timed([*sysbench(bench, "point_select", 2), "prepare"])
        for profile in options.rows:
            for users in options.users:
                print(f"{profile}, {users} users, {options.rounds} rounds of {options.seconds} s", flush=True)
                compare(bench, clients(bench, profile, users), rounds=options.rounds)


if __name__ == "__main__":
    main()
