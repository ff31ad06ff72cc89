"""How often every method claims what is not there, covers what is, and finds what it should: `--help`.

Prints a table in Markdown: rates in percent with their exact 95 % Monte-Carlo bounds. Quote it with its seed and runs.
Ends with 1 if a default path misses what is required of it.
"""

from __future__ import annotations

import argparse
import zlib
from typing import TYPE_CHECKING

import calibrated_covariates
import calibrated_hosts
import calibrated_interactions
import calibrated_own
import calibrated_paths
import calibrated_screening
import calibrated_stopping
import numpy as np
from calibrated_paths import COVERED, LIMIT_OF_BOUND, Figure, Rate, Setup
from simulated_noise import KINDS, OWN

if TYPE_CHECKING:
    from collections.abc import Sequence

PATHS = {
    **calibrated_paths.PATHS,
    **calibrated_stopping.PATHS,
    **calibrated_hosts.PATHS,
    **calibrated_covariates.PATHS,
    **calibrated_interactions.PATHS,
    **calibrated_screening.PATHS,
    **calibrated_own.PATHS,
}
BLOCKS = (3, 5, 6, 8, 10, 12, 20)
RUNS = 60_000  # a true rate of 5 % then has an upper bound above 5.5 % once in 8,000 rows
RUNS_AT_ONCE = 20_000  # 300 MiB
TITLES: dict[Figure, str] = {
    "false": "False claims, % of families",
    "covers": "Coverage of the 95 % interval, %",
    "power": "Power, % of runs",
    "blocks": "Mean number of blocks",
    "width": "Mean width of the interval, % of the plain one",
}


PLAIN, OVER_HOSTS, OWN_NOISE = "", ", several hosts", ", noise of one arm's own"
ADJUSTED, BETWEEN, SCREENED = ", covariates", ", interactions", ", screening"
SECTIONS = {of: list(KINDS) for of in (PLAIN, OVER_HOSTS, ADJUSTED, BETWEEN, SCREENED)} | {OWN_NOISE: list(OWN)}


def _section(rate: Rate) -> str:
    """The part of the page that a rate stands in: what its tables' titles end in."""
    if rate.noise in OWN:
        return OWN_NOISE
    if calibrated_covariates.NAME.search(rate.path):
        return ADJUSTED
    if calibrated_interactions.NAME.search(rate.path):
        return BETWEEN
    if calibrated_screening.NAME.search(rate.path):
        return SCREENED
    return OVER_HOSTS if calibrated_hosts.NAME.search(rate.path) else PLAIN


def simulate(path: str, noise: str, n: int, *, runs: int, seed: int) -> list[Rate]:
    """The rates of one path: the stream of random numbers depends on nothing else that is simulated."""
    random = np.random.default_rng([seed, zlib.crc32(f"{path} {noise} {n}".encode())])
    found: list[Rate] = []
    for start in range(0, runs, RUNS_AT_ONCE):
        setup = Setup(noise=noise, n=n, runs=min(RUNS_AT_ONCE, runs - start), random=random)
        batch = list(PATHS[path](setup))
        found = [one + other for one, other in zip(found, batch, strict=True)] if found else batch
    return found


def table(rates: Sequence[Rate], figure: Figure, kinds: Sequence[str]) -> list[str]:
    """One row per path and number of blocks, one column per noise of `kinds`."""
    rows: dict[tuple[str, int], dict[str, Rate]] = {}
    for rate in rates:
        if rate.figure == figure and rate.noise in kinds:
            rows.setdefault((rate.path, rate.n), {})[rate.noise] = rate
    lines = [f"| path | n | {' | '.join(kinds)} |", f"|---|--:|{'--:|' * len(kinds)}"]
    paths = list(dict.fromkeys(path for path, _ in rows))
    for (path, n), found in sorted(rows.items(), key=lambda row: (paths.index(row[0][0]), row[0][1])):
        lines.append(f"| {path} | {n} | {' | '.join(_cell(found.get(kind)) for kind in kinds)} |")
    return lines


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    scale = 1 if rate.figure == "blocks" else 100
    middle, low, high = (f"{value * scale:.1f}" for value in (rate.estimate, *rate.bounds))
    return f"**{middle}** ({low}–{high})" if rate.missed else f"{middle} ({low}–{high})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="simulated runs per path, noise and n")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--n", type=int, nargs="+", default=BLOCKS, help="blocks, or trials per arm; from 3")
    parser.add_argument("--noise", nargs="+", choices=(*KINDS, *OWN), default=[*KINDS, *OWN])
    parser.add_argument("--path", nargs="+", choices=PATHS, default=list(PATHS))
    asked = parser.parse_args()
    rates = [
        rate
        for path in asked.path
        for n in asked.n
        for noise in asked.noise
        if (noise in OWN) == (path in calibrated_own.PATHS)
        for rate in simulate(path, noise, n, runs=asked.runs, seed=asked.seed)
    ]
    print(f"{asked.runs:,} runs per row, seed {asked.seed}; in brackets the exact 95 % Monte-Carlo bounds.")
    for of, kinds in SECTIONS.items():
        here = [rate for rate in rates if _section(rate) == of]
        for figure, title in TITLES.items():
            if any(rate.figure == figure for rate in here):
                print(f"\n### {title}{of}\n")
                print("\n".join(table(here, figure, kinds)))
    return _verdict(rates)


def _verdict(rates: Sequence[Rate]) -> int:
    missed = [rate for rate in rates if rate.missed]
    asked = f"upper bound of false claims ≤ {LIMIT_OF_BOUND:.1%}, lower bound of coverage ≥ {COVERED:.0%}"
    checked = sum(rate.required for rate in rates)
    print(f"\n{checked - len(missed)} of {checked} figures of default paths are as required: {asked}.")
    for rate in missed:
        print(f"- missed: {rate.path}, {rate.noise}, n = {rate.n}: {rate.figure} {rate.estimate:.2%}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
