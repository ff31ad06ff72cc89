"""How long `fairtrial analyse` takes, and how much memory, on 100,000 trials in 1,000 cells: paired and not.

Its own processor time and largest resident set are the kernel's figures (wait4). Wall time is as good as the machine
is idle.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PROGRAM = [sys.executable, "-c", "from fairtrial.cli import main; main()", "analyse"]
SPREAD = 0.03  # of a trial around its arm's mean, as benchmarks of databases have it
EFFECTS = (0.0, 0.01, 0.03)  # of the cells in turn


def write(path: Path, *, cells: int, blocks: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["memory", "users", "kernel", "block", "tpm"])
        for block in range(blocks):
            for cell in range(cells):
                for arm in ("old", "new"):
                    effect = EFFECTS[cell % len(EFFECTS)] * (arm == "new")
                    value = 1000 * np.exp(random.normal(effect, SPREAD))
                    table.writerow([f"m{cell // 20}", f"u{cell % 20}", arm, block, f"{value:.4f}"])


def measure(arguments: list[str]) -> tuple[float, float, float]:
    """Wall time and processor time in seconds, and the largest resident set in MiB."""
    started = time.monotonic()
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"analyse ended with {process.returncode}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "trials.csv"
        write(path, cells=given.cells, blocks=given.blocks, seed=given.seed)
        print(f"{2 * given.cells * given.blocks:,} trials in {given.cells:,} cells, {path.stat().st_size >> 10:,} KiB")
        asked = [str(path), "--value", "tpm", "--arm", "kernel", "--baseline", "old", "--by", "memory,users"]
        for title, more in (
            ("paired", ["--block", "block"]),
            ("unpaired", []),
            ("paired, as JSON", ["--block", "block", "--json"]),
        ):
            wall, processor, resident = measure([*asked, *more])
            print(f"{title:16} {wall:6.1f} s wall  {processor:5.1f} s processor  {resident:6.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
