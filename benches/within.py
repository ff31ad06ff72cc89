"""How often noise alone is called a drift or a change of level, and how often either is found; and the band's coverage.

Prints rates with Monte-Carlo standard errors. `--replicates` trials of each kind; seeds are fixed.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from fairtrial.analyse.inference import shift
from fairtrial.metrics.series import steadiness
from fairtrial.metrics.series.throughput import Throughput, Values

NOISES = ("independent", "AR 0.3", "AR 0.6", "AR 0.8", "slow 3 %", "slow 10 %")
LENGTHS = (30, 60, 120, 300, 1000)
CV = 0.05
CHANGE = 0.15
BLOCKS = (5, 7, 10, 20)
WARM_UP = 50


def noise(kind: str, n: int, random: np.random.Generator) -> Values:
    """Unit deviation but for bursts: three slow values, six deviations down, in 3 % or 10 % of the time."""
    word, _, figure = kind.partition(" ")
    values = random.normal(size=n + WARM_UP)
    if word == "AR":
        phi = float(figure)
        for at in range(1, n + WARM_UP):
            values[at] = phi * values[at - 1] + math.sqrt(1 - phi * phi) * values[at]
    values = values[WARM_UP:]
    if word == "slow":
        begins = random.random(n) < float(figure.removesuffix(" %")) / 300
        slow = begins | np.roll(begins, 1) | np.roll(begins, 2)
        values = values - 6 * slow
    return values


def verdict(values: Values) -> str:
    n = len(values)
    return steadiness.verify(Throughput(starts_s=np.arange(n) * 1.0, widths_s=np.ones(n), per_s=values)).verdict


def steady_states(replicates: int) -> None:
    print(f"verdicts, %, of {replicates} windows each (coefficient of variation {CV:.0%})")
    print(f"{'noise':12} {'n':>5} | {'false drift':>11} {'false level':>11} | drift of 15 % | first quarter 15 % lower")
    for kind in NOISES:
        for n in LENGTHS:
            random = np.random.default_rng(n)
            flat, sloped, stepped = [], [], []
            for _ in range(replicates):
                values = 1000 * (1 + CV * noise(kind, n, random))
                flat.append(verdict(values))
                sloped.append(verdict(values * (1 + CHANGE * np.linspace(-0.5, 0.5, n))))
                levels = values.copy()
                levels[: n // 4] *= 1 - CHANGE
                stepped.append(verdict(levels))
            shares = [100 * flat.count("drifting") / replicates, 100 * flat.count("unsteady") / replicates]
            shares += [100 - 100 * found.count("steady") / replicates for found in (sloped, stepped)]
            errors = [math.sqrt(share * (100 - share) / replicates) for share in shares]
            shown = [f"{share:5.1f} ± {error:.1f}" for share, error in zip(shares, errors, strict=True)]
            print(f"{kind:12} {n:>5} | {shown[0]:>11} {shown[1]:>11} | {shown[2]:>13} | {shown[3]}", flush=True)


def trial(random: np.random.Generator, edges: Values, *, level: float) -> tuple[Values, Values]:
    """5,000 latencies of one trial whose level, spread and tail are its own, in classes."""
    values = random.lognormal(level, 0.5 * math.exp(random.normal(0, 0.05)), 5000)
    values[random.random(5000) < 0.02 * math.exp(random.normal(0, 0.3))] *= 8
    counts = np.bincount(np.minimum(np.searchsorted(edges, values), len(edges) - 1), minlength=len(edges))
    return edges[counts > 0], counts[counts > 0]


def bands(replicates: int) -> None:
    print(f"\nsimultaneous 95 % band of the shift curve, equal arms, {replicates} pairs of arms each")
    edges = np.unique(np.round(np.geomspace(1e5, 1e8, 1500)).astype(np.int64))
    for n in BLOCKS:
        random = np.random.default_rng(n)
        held, critical = 0, []
        for seed in range(replicates):
            levels = math.log(2e6) + random.normal(0, 0.05, n)
            arms = [[trial(random, edges, level=each + random.normal(0, 0.03)) for each in levels] for _ in range(2)]
            how = shift.Resampling(paired=True, confidence=0.95, seed=seed, replicates=500)
            found = shift.curve(shift.observed(*arms), cell="", arms=("a", "b"), how=how)
            held += not found.excludes_one
            critical.append(found.critical or math.nan)
        share, width = held / replicates, np.mean(critical)
        error = math.sqrt(share * (1 - share) / replicates)
        print(f"{n:>3} blocks: holds {share:.1%} ± {error:.1%}, {width:.2f} standard errors wide", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    given = parser.parse_args()
    steady_states(given.replicates)
    bands(max(1, given.replicates // 4))
