"""One command against itself while it grows slower: how often do `fairtrial compare` and hyperfine find a difference?

The command reads a counter, raises it, and sleeps a little longer each time: a machine that heats up, a cache that
fills. Any difference found is false. hyperfine runs all of A before all of B and gives no test; what its users do with
its times is Welch's t (its own repository has a script for it). Both make the same number of runs; neither warms up.
Before that, both designs are simulated. Also printed: how long each takes to its answer, and what each says of two
commands that do differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import stats

ALPHA = 0.05
SIMULATED = 20_000
SCRIPT = """\
n=$(cat "$1")
echo $((n + 1)) >"$1"
sleep $(printf '0.%06d' $((($2 * 1000 + n * $3) % 1000000)))
"""


def command(directory: Path, *, milliseconds: int, growth_us: int) -> str:
    return shlex.join(
        ["sh", str(directory / "drift.sh"), str(directory / "counter"), str(milliseconds), str(growth_us)]
    )


def hyperfine(first: str, second: str, *, runs: int, directory: Path) -> tuple[float, float]:
    """Welch's p on its times, and how long it took."""
    (directory / "counter").write_text("0")
    target = directory / "times.json"
    argv = ["hyperfine", "-N", "--style", "none", "--runs", str(runs), "--export-json", str(target), first, second]
    started = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True)
    took = time.monotonic() - started
    one, other = (each["times"] for each in json.loads(target.read_text())["results"])
    return float(stats.ttest_ind(one, other, equal_var=False).pvalue), took


def compare(first: str, second: str, *, runs: int, seed: int, directory: Path) -> tuple[str, float, float]:
    """The verdict, its p, and how long it took."""
    (directory / "counter").write_text("0")
    target = directory / "results.json"
    argv = [sys.executable, "-c", "from fairtrial.cli import main; main()", "compare", first, second, "--stop", "fixed"]
    argv += ["--blocks", str(runs), "--runs", "1", "--warm-up", "0", "--seed", str(seed), "--export", str(target)]
    environment = {**os.environ, "FAIRTRIAL_STATE_DIRECTORY": str(directory / "state")}
    started = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True, env=environment)
    took = time.monotonic() - started
    (found,) = json.loads(target.read_text())["analysis"]["cells"][0]["comparisons"]["elapsed_s"]
    return found["verdict"], found["p"], took


def simulated(*, runs: int, growth: float, noise: float) -> None:
    """The same two designs on equal arms, without the wait: noise is normal, growth a share of the first run's time."""
    random = np.random.default_rng(1)
    logs = np.log1p(growth * np.arange(2 * runs)) + random.normal(0, noise, (SIMULATED, 2 * runs))
    in_turn = stats.ttest_ind(logs[:, :runs], logs[:, runs:], axis=1, equal_var=False).pvalue
    first, second = logs[:, ::2], logs[:, 1::2]
    signs = random.choice([-1.0, 1.0], (SIMULATED, runs))  # which arm of a block went first
    in_blocks = stats.ttest_1samp(signs * (second - first), 0, axis=1).pvalue
    print(
        f"simulated, {SIMULATED:,} times, noise {noise:.0%}, {growth:.2%} slower with every run: "
        f"one after the other with Welch {np.mean(in_turn < ALPHA):.1%} false, "
        f"randomised blocks, paired {np.mean(in_blocks < ALPHA):.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--runs", type=int, default=10, help="of each command")
    parser.add_argument("--milliseconds", type=int, default=20, help="the first run's sleep")
    parser.add_argument("--growth-us", type=int, default=100, help="how much longer each run sleeps")
    given = parser.parse_args()
    for noise in (0.01, 0.03, 0.1):
        simulated(runs=given.runs, growth=given.growth_us / 1000 / given.milliseconds, noise=noise)
    with tempfile.TemporaryDirectory(prefix="ft-drift-") as name:
        directory = Path(name)
        (directory / "drift.sh").write_text(SCRIPT)
        (directory / "state").mkdir()
        for title, growth, longer in (("A/A under drift", given.growth_us, 0), ("B a quarter longer, no drift", 0, 1)):
            first = command(directory, milliseconds=given.milliseconds, growth_us=growth)
            second = command(directory, milliseconds=given.milliseconds * (4 + longer) // 4, growth_us=growth)
            theirs = [hyperfine(first, second, runs=given.runs, directory=directory) for _ in range(given.repeats)]
            ours = [
                compare(first, second, runs=given.runs, seed=seed, directory=directory) for seed in range(given.repeats)
            ]
            print(f"{title}: {given.repeats} repeats of {given.runs} runs of each command")
            welch = sum(p < ALPHA for p, _ in theirs)
            print(
                f"  hyperfine, Welch on its times: {welch} differ, {sum(t for _, t in theirs) / len(theirs):.1f} s each"
            )
            claims = sum(verdict in ("faster", "slower") for verdict, _, _ in ours)
            print(
                f"  fairtrial compare: {claims} differ, {sum(t for *_, t in ours) / len(ours):.1f} s each", flush=True
            )
            print(f"    verdicts: {', '.join(verdict for verdict, _, _ in ours)}")
            print(
                f"    p: {', '.join(f'{p:.3f}' for _, p, _ in ours)}; hyperfine's: "
                f"{', '.join(f'{p:.2g}' for p, _ in theirs)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
