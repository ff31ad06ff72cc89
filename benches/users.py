"""Memory that a virtual user of the load engine takes, against the no-operation server.

    .venv/bin/python benches/users.py [--users 100 1000 10000] [--seconds 1]

Prints the largest resident set of a drive for each number of users, and what each user adds to the one before: KiB.
Every user has a connection of its own; so many need a limit of open files that is higher (`ulimit -n`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fleet import request


def peak_kib(agent: Path, socket: Path, *, users: int, seconds: float) -> int:
    """Of a drive with so many users."""
    with TemporaryDirectory() as scratch:
        asked = request(socket, Path(scratch), client=0, clients=1, seconds=seconds)
        drive = asked["drive"]
        assert isinstance(drive, dict)
        del drive["fleet"]
        drive |= {"virtual_users": users, "ramp_up_s": 1.0}
        drive["arrivals"] = {"kind": "closed", "think_s": 0.1, "spacing": "constant"}
        process = subprocess.Popen([agent, "oltp-drive"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked).encode())
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"the drive of {users} users ended with {process.returncode}")
        return usage.ru_maxrss


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).with_name("fairtrial-agent"))
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before: tuple[int, int] | None = None
    with TemporaryDirectory() as scratch:
        socket = Path(scratch) / "socket"
        argv = [options.agent, "noop"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
            assert server.stdin is not None
            server.stdin.write(json.dumps({"socket": str(socket)}) + "\n")
            server.stdin.flush()
            while not socket.exists():
                time.sleep(0.01)
            for users in sorted(options.users):
                kib = peak_kib(options.agent, socket, users=users, seconds=options.seconds)
                each = f", {(kib - before[1]) / (users - before[0]):.1f} KiB for each more" if before else ""
                print(f"{users} users: {kib / 1024:.1f} MiB{each}", flush=True)
                before = users, kib
            server.stdin.close()


if __name__ == "__main__":
    main()
