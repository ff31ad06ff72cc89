"""How often a split-plot claims a difference that is not there, with the boot as the unit and with the trial as one.

    .venv/bin/python benches/calibrated_boots.py [--runs 10000] [--seed 20261126]

Arms do not differ. Logarithms scatter between boots and within them; each arm boots once in a round, and each boot has
several trials. Printed are false claims at 5 %: of fairtrial's own test over boots, whose values are the means of their
trials, and of the same test if every trial were a block, which is what `reboot: between_blocks` must not be read as.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference import confirming, t_tests

ALPHA = 0.05
WITHIN = 0.01  # between trials of a boot, on the logarithm
BOOTS = (6, 10, 20)
PER_BOOT = (1, 3, 10)
RATIOS = (0.0, 0.3, 1.0, 3.0)  # of the scatter between boots to that


def claims(baseline: NDArray[np.float64], arm: NDArray[np.float64]) -> float:
    """Share of runs, shape (runs, units), that claim a difference."""
    logs = arm - baseline
    p = confirming.paired(t_tests.paired_many(baseline, arm).p, logs, level=ALPHA, alpha=ALPHA)
    return float((p < ALPHA).mean())


def simulated(
    random: np.random.Generator, *, boots: int, per_boot: int, between: float, runs: int
) -> tuple[float, float]:
    """Shares of false claims: by boot, and by trial."""
    arms = [
        7
        + between * random.standard_normal((runs, boots, 1))
        + WITHIN * random.standard_normal((runs, boots, per_boot))
        for _ in range(2)
    ]
    means = [np.log(np.exp(arm).mean(axis=2)) for arm in arms]
    trials = [arm.reshape(runs, boots * per_boot) for arm in arms]
    return claims(*means), claims(*trials)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20261126)
    options = parser.parse_args(arguments)
    random = np.random.default_rng(options.seed)
    print("| boots of an arm | trials of each | scatter of boots / of trials | by boot, % | by trial, % |")
    print("|--:|--:|--:|--:|--:|")
    for boots in BOOTS:
        for per_boot in PER_BOOT:
            for ratio in RATIOS:
                if per_boot == 1 and ratio not in (0.0, 1.0):
                    continue
                found = simulated(random, boots=boots, per_boot=per_boot, between=ratio * WITHIN, runs=options.runs)
                by_boot, by_trial = (f"{100 * each:.1f}" for each in found)
                print(f"| {boots} | {per_boot} | {ratio:g} | {by_boot} | {by_trial} |", flush=True)


if __name__ == "__main__":
    main()
