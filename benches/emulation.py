"""How far identical trials in an emulated guest differ, with its clock free and by counted instructions.

    .venv/bin/python benches/emulation.py [--runs 4] [--shift 3]

Each run boots a fresh guest for either of two arms, of 256 and 320 MiB of memory, and reads the same skewed blocks of
the same files with the same seed. Prints, for the free clock and for `icount`, mean and spread (largest minus smallest
over the mean) of counts and of guest time, and how often the larger guest misses less, which it must.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.command_line import Desk, desk

from fairtrial import record
from fairtrial.record.models import TrialRecord

FIGURES = ("miss_ratio", "refaults_per_access", "pages_reclaimed_per_access", "guest_s")
STUDY = """\
study: emulation
place: {{vm: {{kernel: {kernel}, cpus: 1, disk: 1GiB, accelerator: tcg{clock}}}}}
system: {{files: {{}}}}
workload: {{file_access: {{size: 384MiB, distribution: 'zipf:0.8', accesses: 60000, warm_up_accesses: 120000}}}}
factors:
  memory:
    less: {{place: {{vm: {{memory: 256MiB}}}}}}
    more: {{place: {{vm: {{memory: 320MiB}}}}}}
arm: memory
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: miss_ratio}}
"""


def once(here: Desk, *, kernel: str, clock: str) -> dict[str, TrialRecord]:
    """The two trials of one run, by arm."""
    here.fairtrial("run", here.study(STUDY.format(kernel=kernel, clock=clock)))
    found = record.read(here.runs[-1])
    return {trial.trial.arm: trial for trial in found.trials if trial.valid}


def figure(trial: TrialRecord, name: str) -> float:
    if name != "guest_s":
        return trial.scalars[name]
    assert trial.window is not None
    return (trial.window.end_ns - trial.window.start_ns) / 1e9


def printed(clock: str, runs: list[dict[str, TrialRecord]]) -> None:
    for arm in ("less", "more"):
        for name in FIGURES:
            values = [figure(run[arm], name) for run in runs]
            mean = fmean(values)
            spread = (max(values) - min(values)) / mean if mean else 0.0
            print(f"| {clock} | {arm} | {name} | {mean:.5g} | {spread:.2%} |")
    right = sum(figure(run["more"], "miss_ratio") < figure(run["less"], "miss_ratio") for run in runs)
    print(f"| {clock} | | more memory misses less | {right} of {len(runs)} | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--shift", type=int, default=3, help="guest time per instruction, as a power of two of ns")
    parser.add_argument("--kernel", default="debian-6.1")
    options = parser.parse_args()
    print("| clock | memory | figure | mean | spread |\n|---|---|---|--:|--:|")
    for clock, words in (("free", ""), (f"icount {options.shift}", f", icount: {options.shift}")):
        with desk() as here:
            printed(clock, [once(here, kernel=options.kernel, clock=words) for _ in range(options.runs)])


if __name__ == "__main__":
    main()
