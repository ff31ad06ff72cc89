"""How long a fresh clone takes to pass, part by part, and whether it passes every time.

    .venv/bin/python benches/suite.py [--runs 3] [--companion 0] [--commit HEAD] [--parts setup test]

Clones the commit, runs the parts in order as `make PART`, prints each part's wall seconds as it ends, and removes the
clone. After the last run it prints least, median and most of each part and of the whole, over the runs that passed.
The last `--companion` of the runs have benches/companion.py beside them, seeded by their number, and are summed up by
themselves. A part that fails ends its run; its output is kept in `--logs`, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
COMPANION = ROOT / "benches" / "companion.py"
PARTS = ("setup", "lint", "test")
TESTED = ("setup", "test")  # what `make test` does in a fresh clone


@dataclass
class Run:
    """One fresh clone.

    Attributes:
        seconds: wall time of each part that passed.
        failed: the part that did not, or nothing.
    """

    accompanied: bool
    seconds: dict[str, float] = field(default_factory=dict)
    failed: str = ""


def ran(number: int, parts: Sequence[str], *, commit: str, accompanied: bool, logs: Path) -> Run:
    """Clones, runs the parts until one fails, removes the clone."""
    run = Run(accompanied)
    beside = [sys.executable, str(COMPANION), "--seed", str(number), "--"] if accompanied else []
    # As .ci/run does: a skipped test that lacks a package is a failure, and nothing is compiled twice in a clone.
    environment = {**os.environ, "CI": "true", "CARGO_INCREMENTAL": "0"}
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        Path(directory).chmod(0o755)  # tests run as another user, too
        clone = Path(directory) / "fairtrial"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", "--detach", commit], check=True)
        for part in parts:
            began_s = time.monotonic()
            with (logs / f"{number}-{part}.txt").open("wb") as output:
                done = subprocess.run(
                    [*beside, "make", "--keep-going", part],
                    cwd=clone,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            if done.returncode != 0:
                run.failed = part
                break
            run.seconds[part] = time.monotonic() - began_s
            print(f"run {number}{' (companion)' if accompanied else ''}: {part} {run.seconds[part]:.0f} s", flush=True)
    return run


def table(runs: Sequence[Run]) -> list[str]:
    """Least, median and most seconds of each part, and of sums of parts, over the runs that passed."""
    passed = [run.seconds for run in runs if not run.failed]
    if not passed:
        return ["no run passed"]
    rows: dict[str, list[float]] = {part: [seconds[part] for seconds in passed] for part in passed[0]}
    for name, parts in (("make test", TESTED), (".ci/run", PARTS)):
        if set(parts) <= set(rows):
            rows[name] = [_sum(seconds, parts) for seconds in passed]
    lines = [f"{'seconds':12} {'least':>7} {'median':>7} {'most':>7}"]
    return [*lines, *(f"{name:12} {min(row):7.0f} {median(row):7.0f} {max(row):7.0f}" for name, row in rows.items())]


def _sum(seconds: Mapping[str, float], parts: Sequence[str]) -> float:
    return sum(seconds[part] for part in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="number of fresh clones (default: 3)")
    parser.add_argument("--companion", type=int, default=0, help="how many of them, the last, run beside a companion")
    parser.add_argument("--commit", default="HEAD", help="commit to clone (default: HEAD)")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), help="targets of make, in order")
    parser.add_argument("--logs", type=Path, help="directory of all output (default: a temporary one, which is kept)")
    asked = parser.parse_args()
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", asked.commit], check=True, capture_output=True, text=True
    ).stdout.strip()
    logs = asked.logs or Path(tempfile.mkdtemp(prefix="suite-logs-"))
    logs.mkdir(parents=True, exist_ok=True)
    print(f"commit {commit}; output in {logs}", flush=True)
    runs: list[Run] = []
    for number in range(1, asked.runs + 1):
        accompanied = number > asked.runs - asked.companion
        runs.append(ran(number, asked.parts, commit=commit, accompanied=accompanied, logs=logs))
        if runs[-1].failed:
            print(f"run {number}: {runs[-1].failed} FAILED: see {logs}/{number}-{runs[-1].failed}.txt", flush=True)
    for accompanied in (False, True):
        if chosen := [run for run in runs if run.accompanied == accompanied]:
            passed = sum(not run.failed for run in chosen)
            print(f"\n{passed} of {len(chosen)} runs passed{' beside a companion' if accompanied else ''}")
            print("\n".join(table(chosen)))
    return int(any(run.failed for run in runs))


if __name__ == "__main__":
    sys.exit(main())
