"""What the lock library costs: every kind against the same program without it, round by round.

    .venv/bin/python benches/lock_overhead.py [--rounds 15] [--milliseconds 60]

Compiles `benches/floor/locks.c` and runs it uncontended (one thread, an empty critical section) and contended (two and
eight threads, ten writes inside and a hundred outside), alternating kinds in each round. Prints nanoseconds per
acquisition, of the median and the fastest run, and the ratio to the run without the library of the same round: median,
lowest and highest.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from fairtrial.locks import library

PROGRAM = Path(__file__).parent / "floor" / "locks.c"
KINDS = ("passthrough", "adaptive", "fast", "fast-local", "fast-constant", "ticket")
LOADS = {"one thread": (1, 0), "two threads": (2, 10), "eight threads": (8, 10)}
WITHOUT = "without"
COUNTED = "passthrough, counted"
GUESS = 2_000


def environment(arm: str, directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FAIRTRIAL_LOCK")}
    if arm == WITHOUT:
        return kept
    kind, _, counts = arm.partition(", ")
    more = {"FAIRTRIAL_LOCK_COUNT": str(directory / "counts")} if counts else {}
    return {**kept, "LD_PRELOAD": str(library()), "FAIRTRIAL_LOCK": kind, **more}


def measured_ns(program: Path, load: tuple[int, int], times: int, *, arm: str) -> float:
    threads, entries = load
    argv = [program, str(threads), str(times), str(entries)]
    done = subprocess.run(argv, env=environment(arm, program.parent), check=True, capture_output=True, text=True)
    for each in program.parent.glob("counts.*"):
        each.unlink()
    return float(done.stdout)


def compared(program: Path, load: tuple[int, int], *, rounds: int, milliseconds: float) -> dict[str, list[float]]:
    """Nanoseconds per acquisition by arm, in the order of the rounds."""
    arms = [WITHOUT, *KINDS, COUNTED]
    guessed = {arm: measured_ns(program, load, GUESS, arm=arm) for arm in arms}
    times = {arm: max(GUESS, int(milliseconds * 1e6 / guessed[arm] / load[0])) for arm in arms}
    found: dict[str, list[float]] = {arm: [] for arm in arms}
    for _ in range(rounds):
        for arm in random.sample(arms, len(arms)):
            found[arm].append(measured_ns(program, load, times[arm], arm=arm))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--milliseconds", type=float, default=60.0, help="of one run, about")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "locks"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, PROGRAM], check=True)
        for name, load in LOADS.items():
            found = compared(program, load, rounds=options.rounds, milliseconds=options.milliseconds)
            print(f"\n{name}: ns per acquisition, of the median and the fastest run, and against none")
            for arm, each in found.items():
                ratios = [one / other for one, other in zip(each, found[WITHOUT], strict=True)]
                row = f"{median(ratios):5.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
                print(f"  {arm:22} {median(each):9.1f} {min(each):9.1f}  {row}")


if __name__ == "__main__":
    main()
