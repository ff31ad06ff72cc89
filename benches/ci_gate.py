"""How often the gate of packaging/ci is wrong: on a planted regression, and on none.

Makes a git repository of a small C program in a temporary directory. Its commit under test does the work of the one
before it (`none`), or `--effect` more of it (`planted`). Then the step of `packaging/ci/action.yml` that measures and
judges runs as a job would run it, with the default stopping rule of `fairtrial compare`, alternately for both. Printed
is what it said: `failed` where nothing was planted, and `passed` where something was, are wrong calls; `undecided` is
counted by itself. The intervals are exact (Clopper-Pearson, 95 %).

With `--metric cpu` the program prints its own processor time, which is judged in place of wall time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ruamel.yaml import YAML
from scipy import stats

ROOT = Path(__file__).parents[1]
WORDS = {0: "passed", 1: "failed", 5: "undecided"}
PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <time.h>
int main(void) {
    volatile uint64_t state = 88172645463325252u;
    for (uint64_t round = 0; round < %(rounds)du; round++) { state ^= state << 13; state ^= state >> 7; }
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    printf("cpu = %%.9f s\\n", (double)spent.tv_sec + 1e-9 * (double)spent.tv_nsec);  /* %(note)s */
}
"""
BUILD = "cc -O1 -o work work.c"
CPU = ["--metric", r"cpu\s=\s([0-9.]+)", "--unit", "s"]  # no spaces: options are words


def script() -> str:
    """The step of the action."""
    action = YAML(typ="safe").load((ROOT / "packaging/ci/action.yml").read_text(encoding="utf-8"))
    (step,) = (step["run"] for step in action["runs"]["steps"] if step.get("id") == "gate")
    return str(step)


def git(repository: Path, *words: str) -> None:
    subprocess.run(["git", "-C", repository, "-c", "user.name=b", "-c", "user.email=b@example.org", *words], check=True)


def rounds_of(seconds: float, directory: Path) -> int:
    """How many rounds take so long here, by the fastest of five tries."""
    rounds = 10_000_000
    (directory / "work.c").write_text(PROGRAM % {"rounds": rounds, "note": "tried"}, encoding="utf-8")
    subprocess.run(BUILD, shell=True, cwd=directory, check=True)
    took = [float(subprocess.check_output([directory / "work"]).split()[2]) for _ in range(5)]
    return round(rounds * seconds / min(took))


def repository(directory: Path, rounds: int, *, effect: float) -> Path:
    """Two commits, the second with more work."""
    directory.mkdir()
    git(directory, "init", "--quiet", "--initial-branch", "main")
    for number, count in enumerate((rounds, round(rounds * (1 + effect)))):
        (directory / "work.c").write_text(PROGRAM % {"rounds": count, "note": f"change {number}"}, encoding="utf-8")
        git(directory, "add", ".")
        git(directory, "commit", "--quiet", "--message", f"change {number}")
    return directory


def gated(project: Path, where: Path, options: list[str]) -> int:
    """The job's exit code."""
    where.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FAIRTRIAL_STATE_DIRECTORY": str(where / "state"),
        "FAIRTRIAL_CACHE_DIRECTORY": str(where.parent / "cache"),
        "GITHUB_OUTPUT": str(where / "output"),
        "GITHUB_STEP_SUMMARY": str(where / "summary"),
        "FAIRTRIAL_GATE_COMMAND": "./work",
        "FAIRTRIAL_GATE_STUDY": "",
        "FAIRTRIAL_GATE_BUILD": BUILD,
        "FAIRTRIAL_GATE_BASE": "HEAD^1",
        "FAIRTRIAL_GATE_HEAD": "HEAD",
        "FAIRTRIAL_GATE_OPTIONS": " ".join(options),
        "FAIRTRIAL_GATE_LEDGER": "fairtrial-accepted.yaml",
        "FAIRTRIAL_GATE_UNDECIDED": "fail",
    }
    done = subprocess.run(
        ["sh", "-c", script()], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in WORDS:
        sys.exit(f"the job ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    row = next(line for line in (project / "fairtrial-gate.md").read_text().splitlines() if "`head`" in line)
    print(row.strip("| "), flush=True)
    shutil.rmtree(project / "fairtrial-gate")
    return done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="jobs with the regression, and as many without")
    parser.add_argument("--effect", type=float, default=0.05, help="planted, as a share (default: 0.05)")
    parser.add_argument("--milliseconds", type=float, default=50, help="that the program takes (default: 50)")
    parser.add_argument("--metric", choices=["wall", "cpu"], default="wall", help="what is judged (default: wall)")
    parser.add_argument("--options", default="", help="further options of `fairtrial compare`")
    arguments = parser.parse_args()
    options = [*(CPU if arguments.metric == "cpu" else []), *arguments.options.split()]
    found = {"planted": Counter[str](), "none": Counter[str]()}
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ft-gate-") as name:
        directory = Path(name)
        rounds = rounds_of(arguments.milliseconds / 1000, directory)
        effects = {"planted": arguments.effect, "none": 0.0}
        projects = {kind: repository(directory / kind, rounds, effect=effect) for kind, effect in effects.items()}
        for number in range(arguments.runs):
            for kind, project in projects.items():
                print(f"{kind:8}", end="")
                found[kind][
                    WORDS[gated(project, directory / f"{kind}-{number}", [*options, "--seed", str(number)])]
                ] += 1
    print(
        f"\n{arguments.runs} jobs each, {arguments.metric} time, load {os.getloadavg()[2]:.1f} on {os.cpu_count()} "
        f"processors, {(time.monotonic() - began_s) / (2 * arguments.runs):.1f} s a job"
    )
    for kind, wrong in (("planted", "passed"), ("none", "failed")):
        low, high = stats.binomtest(found[kind][wrong], arguments.runs).proportion_ci(method="exact")
        shown = ", ".join(f"{found[kind][word]} {word}" for word in WORDS.values())
        print(
            f"{kind}: {shown}; wrong: {found[kind][wrong]} of {arguments.runs} ({100 * low:.0f} – {100 * high:.0f} %)"
        )


if __name__ == "__main__":
    main()
