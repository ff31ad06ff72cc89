"""Several clients against the no-operation server: whether their throughput adds up.

    .venv/bin/python benches/fleet.py [--rounds 5] [--seconds 2] [--share 0.05] [--clients 1 2 4]

Every client is a load generator of its own, bound to one processor and to a share of it (control group's CPU quota), as
if it were a small host; the server has the other processor. All clients of a run begin at one agreed instant. Counts of
clients alternate within a round. Prints transactions per second per number of clients, and the ratio of each to as many
times one client's, paired by round: median with smallest and largest. Must run as root, on two processors or more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from load import MIX

PERIOD_US = 40_000  # a kernel gives no less than a millisecond of a period
USERS = 64  # of each client: enough that it waits for its share and not for answers
LEAD_NS = 300_000_000
HIERARCHIES = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))


@contextlib.contextmanager
def quota(name: str, share: float) -> Iterator[Path]:
    """A control group with a share of one processor, of either version; gives its file of processes."""
    quota_us = int(PERIOD_US * share)
    group = next(each for each in HIERARCHIES if (each / "cgroup.procs").exists()) / name
    group.mkdir()
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            (group / "cpu.weight").write_text("10000")  # whatever else runs here waits
        else:
            (group / "cpu.shares").write_text("262144")
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def request(socket: Path, directory: Path, *, client: int, clients: int, seconds: float) -> dict[str, object]:
    """`OltpDrive` of crates/protocol: prepared selects of one row, as fast as they are answered."""
    first = client * USERS
    return {
        "drive": {
            "endpoint": {"kind": "mysql", "socket": str(socket), "user": "root", "database": "none"},
            "virtual_users": USERS,
            "seed": 1,
            "ramp_up_s": 0.3,
            "duration_s": seconds,
            "arrivals": {"kind": "closed", "think_s": 0.0, "spacing": "constant"},
            "retries": 0,
            "interval_ms": 1000,
            "output_directory": str(directory),
            "fleet": {
                "client": client,
                "clients": clients,
                "users": clients * USERS,
                "user_numbers": list(range(first, first + USERS)),
                "start_path": str(directory / "start"),
            },
        },
        "profile": "point_select",
        "tables": 1,
        "table_size": 1,
        "distribution": {"kind": "uniform"},
        "protocol": "prepared",
        "skip_transactions": True,
        "pipelining": False,
        "mix": {**MIX, "point_selects": 1},
    }


def together(agent: Path, socket: Path, *, clients: int, seconds: float, share: float) -> float:
    """Transactions per second of so many clients."""
    with TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        running = []
        for client in range(clients):
            directory = Path(scratch) / str(client)
            directory.mkdir()
            group = stack.enter_context(quota(f"fairtrial-fleet-{os.getpid()}-{client}", share))
            process = subprocess.Popen(
                ["taskset", "--cpu-list", "1", str(agent), "oltp-drive"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            group.write_text(str(process.pid))
            assert process.stdin
            process.stdin.write(json.dumps(request(socket, directory, client=client, clients=clients, seconds=seconds)))
            process.stdin.close()
            running.append((process, directory))
        for process, _ in running:
            assert process.stdout
            if '"ready"' not in (said := process.stdout.readline()):
                raise SystemExit(f"a client did not get ready: {said}")
        start_ns = time.monotonic_ns() + LEAD_NS
        for _, directory in running:
            (directory / "told").write_text(f"{start_ns}\n")
            (directory / "told").rename(directory / "start")
        done = 0
        for process, directory in running:
            assert process.stdout
            process.stdout.read()
            process.stdout.close()
            if process.wait() != 0:
                raise SystemExit(f"a client ended with {process.returncode}")
            result = json.loads((directory / "result.json").read_bytes())
            done += sum(outcome["committed"] for outcome in result["transactions"].values())
        return done / seconds


def said(values: list[float], form: str) -> str:
    """Median with smallest and largest."""
    return f"{median(values):{form}} ({min(values):{form}} - {max(values):{form}})"


def main() -> None:
    """Alternates, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--share", type=float, default=0.05, help="Share of one processor that each client may use.")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).with_name("fairtrial-agent"))
    options = parser.parse_args()
    counts: list[int] = options.clients
    rates: dict[int, list[float]] = {count: [] for count in counts}
    with TemporaryDirectory() as scratch:
        socket = Path(scratch) / "socket"
        argv = ["taskset", "--cpu-list", "0", str(options.agent), "noop"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
            assert server.stdin
            server.stdin.write(json.dumps({"socket": str(socket)}) + "\n")
            server.stdin.flush()
            while not socket.exists():
                time.sleep(0.01)
            for number in range(options.rounds):
                for count in counts if number % 2 == 0 else reversed(counts):
                    rate = together(options.agent, socket, clients=count, seconds=options.seconds, share=options.share)
                    rates[count].append(rate)
            server.stdin.close()
    for count in counts:
        ratios = [rate / count / one for rate, one in zip(rates[count], rates[counts[0]], strict=True)]
        print(f"{count} clients: {said(rates[count], ',.0f')} transactions/s, of one client's: {said(ratios, '.3f')}")


if __name__ == "__main__":
    main()
