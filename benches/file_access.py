"""`file_access` of the agent beside fio: one uniform read of a file after the other, alternating in one run.

    .venv/bin/python benches/file_access.py [--rounds 5] [--accesses 200000] [--size-mib 64] [--agent PATH]

Both read 4 KiB blocks of one prepared file by `pread`, by a mapping and by io_uring with 8 under way: cached, and
bypassing the page cache with a tenth of the accesses. Per client: user + system time of its process per access, less
what it takes for one access alone (its start and end), and accesses per second of its own window, median with smallest
and largest; then the agent's ratio to fio, paired by round. The agent checks each block; fio does not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from ratios import Run, orders, paired

BLOCK_BYTES = 4096
DEPTH = 8
STARTS = 5  # processes of one access, of which the median is a client's start and end
DIRECT_SHARE = 10  # a device is so much slower than memory
SHAPES = (("pread", False), ("mmap", False), ("io_uring", False), ("pread", True), ("io_uring", True))
FIO_ENGINES = {"pread": "psync", "mmap": "mmap", "io_uring": "io_uring"}


@dataclass(frozen=True)
class Bench:
    """What both clients are given."""

    directory: Path
    bytes: int
    accesses: int
    agent: Path


def timed(argv: list[str], document: str = "") -> float:
    """Runs a program to its end; returns its user + system time, seconds, children included."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    process.stdin.write(document)
    process.stdin.close()
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{argv[0]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def of_agent(bench: Bench, *, engine: str, direct: bool, seed: int) -> Run:
    asked = {
        "directory": str(bench.directory),
        "jobs": 1,
        "bytes": bench.bytes,
        "block_bytes": BLOCK_BYTES,
        "engine": engine,
        "direct": direct,
        "depth": DEPTH if engine == "io_uring" else 1,
        "distribution": {"kind": "random"},
        "write_share": 0.0,
        "accesses": bench.accesses,
        "warm_up_accesses": 0,
        "seed": seed,
        "interval_ms": 1000,
        "output_directory": str(bench.directory),
    }
    cpu_s = timed([str(bench.agent), "file-drive"], json.dumps(asked))
    result = json.loads((bench.directory / "result.json").read_text(encoding="utf-8"))
    window = result["window"]
    return Run(
        units=result["transactions"]["read"]["committed"],
        wall_s=(window["end_ns"] - window["start_ns"]) / 1e9,
        cpu_s=cpu_s,
    )


def of_fio(bench: Bench, *, engine: str, direct: bool, seed: int) -> Run:
    output = bench.directory / "fio.json"
    options = {
        "name": "job",
        "directory": bench.directory,
        "filename": "job.0",
        "size": bench.bytes,
        "bs": BLOCK_BYTES,
        "rw": "randread",
        "norandommap": 1,
        "randseed": seed,
        "ioengine": FIO_ENGINES[engine],
        "iodepth": DEPTH if engine == "io_uring" else 1,
        "direct": int(direct),
        "invalidate": 0,
        "number_ios": bench.accesses,
        "io_size": "1000t",
        "output-format": "json+",
        "output": output,
    }
    cpu_s = timed(["fio", *(f"--{name}={value}" for name, value in options.items())])
    (job,) = json.loads(output.read_text(encoding="utf-8"))["jobs"]
    units = job["read"]["total_ios"]
    return Run(units=units, wall_s=units / job["read"]["iops"], cpu_s=cpu_s)


Client = Callable[..., Run]


def start_s(client: Client, bench: Bench) -> float:
    """What a client's process costs beside its accesses, seconds of user + system time."""
    alone = replace(bench, accesses=1)
    return median(client(alone, seed=seed).cpu_s for seed in range(1, STARTS + 1))


def compare(bench: Bench, engine: str, *, direct: bool, rounds: int) -> None:
    clients: dict[str, Client] = {
        "agent": partial(of_agent, engine=engine, direct=direct),
        "fio": partial(of_fio, engine=engine, direct=direct),
    }
    starts = {name: start_s(client, bench) for name, client in clients.items()}
    runs: dict[str, list[Run]] = {name: [] for name in clients}
    for seed, order in enumerate(orders(list(clients), rounds), start=1):
        for name in order:
            run = clients[name](bench, seed=seed)
            runs[name].append(replace(run, cpu_s=run.cpu_s - starts[name]))
    print(f"{engine}, {'direct' if direct else 'cached'}, {bench.accesses:,} accesses, {rounds} rounds")
    for name, each in runs.items():
        cpu = sorted(run.cpu_per_unit_us for run in each)
        per_s = sorted(run.per_s for run in each)
        print(
            f"  {name:6} {median(cpu):7.2f} µs of CPU per access ({cpu[0]:.2f}-{cpu[-1]:.2f})"
            f"   {median(per_s):10,.0f} accesses/s ({per_s[0]:,.0f}-{per_s[-1]:,.0f})"
            f"   {starts[name] * 1e3:.0f} ms to start and end"
        )
    ours, theirs = ([run.cpu_per_unit_us for run in runs[name]] for name in clients)
    print(f"  agent's CPU to fio's: {paired(ours, theirs)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--accesses", type=int, default=200_000)
    parser.add_argument("--size-mib", type=int, default=64)
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).parent / "fairtrial-agent")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as name:
        size = options.size_mib << 20
        bench = Bench(Path(name), size, options.accesses, options.agent)
        loading = {"directory": name, "files": 1, "bytes": size, "seed": 1}
        timed([str(bench.agent), "file-load"], json.dumps(loading))
        for engine, direct in SHAPES:
            accesses = options.accesses // DIRECT_SHARE if direct else options.accesses
            compare(replace(bench, accesses=accesses), engine, direct=direct, rounds=options.rounds)


if __name__ == "__main__":
    main()
