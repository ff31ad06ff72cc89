"""Attacks on what fairtrial claims, drawn from a seed: noises, properties, R beside, imports made hostile: `--help`.

Prints one line per attack, with what was tried and what should not be; ends with 1 if there is anything of the kind.
"""

from __future__ import annotations

import argparse
import zlib
from typing import TYPE_CHECKING

import calibrated_own
import numpy as np
from attack_imports import imports
from attack_tables import Attacked, beside_r, properties
from calibrated_paths import COVERED, LIMIT_OF_BOUND, Rate
from calibration import simulate
from scipy import stats
from simulated_noise import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCKS = (6, 10)
SHARED = ("autocorrelated", "drift")  # noise whose neighbours are alike; the other kinds have tests of their own
PATHS_OF_SHARED = ("paired", "welch", "equivalence", "cells", "arms", "screening", "guardrail")
# So rare a count must be if a rate is what it has to be: with rates of 5 %, where 5.5 % is allowed, rarer still.
CHANCE = 1e-4
SIMULATED = 3  # runs of noise for each attack: thousands take as long as a table


def missed(rate: Rate) -> bool:
    """Whether chance does not explain that a default path claims more often, or covers less often, than it may."""
    if not rate.required:
        return False
    count = round(rate.total)
    if rate.figure == "false":
        return bool(stats.binom.sf(count - 1, rate.runs, LIMIT_OF_BOUND) < CHANCE)
    return bool(stats.binom.cdf(count, rate.runs, COVERED) < CHANCE)


def noises(random: np.random.Generator, runs: int) -> Iterator[Attacked]:
    """The paths from trials to a claim, under noise that one arm has alone and noise whose neighbours are alike."""
    seed = int(random.integers(2**31))
    paths = [(path, noise) for noise in OWN for path in calibrated_own.PATHS]
    for path, noise in [*paths, *((path, noise) for noise in SHARED for path in PATHS_OF_SHARED)]:
        rates = [rate for n in BLOCKS for rate in simulate(path, noise, n, runs=SIMULATED * runs, seed=seed)]
        told = [
            f"{rate.path}, n = {rate.n}: {rate.figure} {rate.estimate:.1%} of {rate.runs}"
            for rate in rates
            if missed(rate)
        ]
        yield Attacked(f"noises: {noise}, {path}", sum(rate.required for rate in rates), tuple(told))


PARTS: dict[str, Callable[[np.random.Generator, int], Iterator[Attacked]]] = {
    "noises": noises,
    "properties": properties,
    "r": beside_r,
    "imports": imports,
}


def attack(part: str, *, seed: int, runs: int) -> Iterator[Attacked]:
    """One part: its random numbers depend on no other part."""
    return PARTS[part](np.random.default_rng([seed, zlib.crc32(part.encode())]), runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument(
        "--runs", type=int, default=200, help=f"tables per part, and {SIMULATED} times as many of noise"
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    asked = parser.parse_args()
    violations = 0
    for part in asked.part:
        for each in attack(part, seed=asked.seed, runs=asked.runs):
            print(each, flush=True)
            violations += len(each.violations)
    return 1 if violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
