"""How often every method claims what is not there, covers what is, and finds what it should: `--help`.

Prints one table in Markdown: for each part the worst rate of its default paths, with its exact 95 % Monte-Carlo bounds.
`--tables` prints every rate below it. Figures follow from `--seed` and `--runs`. Ends with 1 if a default path misses
what is required of it.
"""

from __future__ import annotations

import argparse
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import calibrated_bisection
import calibrated_boots
import calibrated_covariates
import calibrated_curves
import calibrated_hosts
import calibrated_interactions
import calibrated_own
import calibrated_paths
import calibrated_screening
import calibrated_stopping
import calibrated_tuning
import numpy as np
from calibrated_paths import ALPHA, Figure, Rate, Setup
from simulated_noise import KINDS, OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PAGE: Final = Path(__file__).parents[1] / "docs" / "explanation" / "calibration.md"
MARKS: Final = ("<!-- the table of benches/calibration.py -->\n\n", "<!-- its end -->\n")
SEED: Final = 20261121
RUNS: Final = 60_000  # a true rate of 5 % then has an upper bound above 5.5 % once in 8,000 rows
RUNS_AT_ONCE: Final = 20_000  # 300 MiB
QUICK: Final = 1_000
TITLES: Final[Mapping[Figure, str]] = {
    "false": "False claims, % of families",
    "covers": "Coverage of the 95 % interval, %",
    "power": "Power, % of runs",
    "blocks": "Mean number of blocks",
    "width": "Mean width of the interval, % of the plain one",
    "promised": "Mean gain that the best block of the search promises, %",
    "confirmed": "Mean gain confirmed, %",
    "trial": "Mean gain that the best single trial promises, %",
    "found": "Mean share of the gain found, %",
}
CLAIMS: Final[Mapping[Figure, tuple[str, str]]] = {"false": ("false claims", "≤ 5 %"), "covers": ("coverage", "95 %")}
PATHS: Final[Mapping[str, Callable[[Setup], Iterator[Rate]]]] = {
    **calibrated_paths.PATHS,
    **calibrated_stopping.PATHS,
    **calibrated_hosts.PATHS,
    **calibrated_covariates.PATHS,
    **calibrated_interactions.PATHS,
    **calibrated_screening.PATHS,
    **calibrated_own.PATHS,
    **calibrated_curves.PATHS,
    **calibrated_boots.PATHS,
    **calibrated_bisection.PATHS,
    **calibrated_tuning.PATHS,
}


@dataclass(frozen=True)
class Part:
    """Paths that share a row of the table.

    Attributes:
        paths: their names.
        n: numbers of blocks, or of what a path counts instead; the first is that of `--quick`.
        noises: columns; `--quick` has the first.
        runs: per path, noise and n; `quick`: of `--quick`, which leaves a part with 0 out.
    """

    paths: tuple[str, ...]
    n: tuple[int, ...] = (6, 8, 10, 12, 20)
    noises: tuple[str, ...] = tuple(KINDS)
    runs: int = RUNS
    quick: int = QUICK


PARTS: Final[Mapping[str, Part]] = {
    "paired": Part(("paired", "wilcoxon", "one-arm")),
    "unpaired": Part(("welch", "mann-whitney")),
    "families": Part(("cells", "arms", "screening")),
    "equivalence": Part(("equivalence",)),
    "guardrails": Part(("guardrail", "guarded"), n=(10, 6, 20), quick=500),
    "sequential": Part(("stopping",), n=(10, 20), quick=200),
    "one arm's own noise": Part(("own", "own-unpaired", "own-stopping"), n=(10, 6, 20), noises=tuple(OWN), quick=100),
    "boots": Part(("boots",), n=(6, 10, 20), noises=tuple(calibrated_boots.SCATTER)[::-1]),
    "hosts": Part(("hosts", "hosts-stopped"), n=(10, 20), quick=300),
    "covariates": Part(("covariates",)),
    "interactions": Part(
        ("interactions", "interactions-rounds", "interactions-stopped"), n=(10, 4, 6, 8, 20), quick=300
    ),
    "curves": Part(("curves",), n=(6, 4, 10), noises=tuple(calibrated_curves.NOISE)),
    "screening alone": Part(("screened",), n=(20,), runs=5_000, quick=0),
    "curvature": Part(("curvature",), n=(3, 2, 5), runs=20_000, quick=300),
    "screening": Part(("confirmed", "one-at-a-time"), n=(10, 20), runs=10_000, quick=400),
    "bisection": Part(("bisection",), n=(8, 64), noises=("0.5", "1", "0.2"), runs=2_000, quick=40),
    "tuning": Part(("tuning-random",), n=(20, 50, 100), noises=tuple(calibrated_tuning.NOISE), runs=10_000, quick=200),
    "tuning by Optuna": Part(("tuning-optuna",), n=(20,), noises=("2 %", "5 %"), runs=1_000, quick=2),
}


@dataclass(frozen=True)
class Task:
    """One path under one noise with one n."""

    path: str
    noise: str
    n: int
    runs: int
    seed: int

    def done(self) -> tuple[list[Rate], float]:
        """Its rates, and the seconds of processor time that they took."""
        began = time.process_time()
        rates = simulate(self.path, self.noise, self.n, runs=self.runs, seed=self.seed)
        return rates, time.process_time() - began


def simulate(path: str, noise: str, n: int, *, runs: int, seed: int) -> list[Rate]:
    """The rates of one path: the stream of random numbers depends on nothing else that is simulated."""
    random = np.random.default_rng([seed, zlib.crc32(f"{path} {noise} {n}".encode())])
    found: list[Rate] = []
    for start in range(0, runs, RUNS_AT_ONCE):
        setup = Setup(noise=noise, n=n, runs=min(RUNS_AT_ONCE, runs - start), random=random)
        batch = list(PATHS[path](setup))
        found = [one + other for one, other in zip(found, batch, strict=True)] if found else batch
    return found


def simulated(parts: Mapping[str, Part], *, seed: int, jobs: int = 1) -> Iterator[tuple[str, list[Rate], float]]:
    """Each part's rates, and the seconds of processor time that they took."""
    mapped = map if jobs == 1 else ProcessPoolExecutor(jobs).map
    for name, part in parts.items():
        tasks = [Task(path, noise, n, part.runs, seed) for path in part.paths for n in part.n for noise in part.noises]
        done = list(mapped(Task.done, tasks))
        yield name, [rate for rates, _ in done for rate in rates], sum(seconds for _, seconds in done)


def rows(name: str, rates: Sequence[Rate], seconds: float) -> Iterator[str]:
    """A part's rows of the table: the worst rate of each claim stands for it."""
    took = f"{seconds:,.0f}"
    for figure, (claim, nominal) in CLAIMS.items():
        if own := [rate for rate in rates if rate.required and rate.figure == figure]:
            worst = max(own, key=lambda rate: rate.estimate if rate.figure == "false" else -rate.estimate)
            met, missed = sum(rate.met for rate in own), min(rate.p_met for rate in own) * len(own) < ALPHA
            verdict = "missed" if missed else "met" if met == len(own) else "open"
            yield (
                f"| {name} | {claim} | {nominal} | {_shown(worst)} | {worst.path}; {worst.noise}, n = {worst.n} "
                f"| {worst.runs:,} | {met} of {len(own)} | {took} | {verdict} |"
            )
            took = ""


COLUMNS: Final = "part", "claim", "nominal", "worst", "bounds, %", "of", "replications", "met", "seconds", "verdict"
HEAD: Final = f"| {' | '.join(COLUMNS)} |\n|---|---|---|--:|--:|---|--:|--:|--:|---|"


def _shown(rate: Rate) -> str:
    low, high = rate.bounds
    return f"{rate.estimate * 100:.1f} | {low * 100:.1f}–{high * 100:.1f}"


def table(rates: Sequence[Rate], figure: Figure, kinds: Sequence[str]) -> list[str]:
    """One row per path and number of blocks, one column per noise of `kinds`."""
    found: dict[tuple[str, int], dict[str, Rate]] = {}
    for rate in rates:
        if rate.figure == figure and rate.noise in kinds:
            found.setdefault((rate.path, rate.n), {})[rate.noise] = rate
    lines = [f"| path | n | {' | '.join(kinds)} |", f"|---|--:|{'--:|' * len(kinds)}"]
    paths = list(dict.fromkeys(path for path, _ in found))
    for (path, n), own in sorted(found.items(), key=lambda row: (paths.index(row[0][0]), row[0][1])):
        lines.append(f"| {path} | {n} | {' | '.join(_cell(own.get(kind)) for kind in kinds)} |")
    return lines


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    scale = 1 if rate.figure == "blocks" else 100
    middle, low, high = (f"{value * scale:.1f}" for value in (rate.estimate, *rate.bounds))
    return f"**{middle}** ({low}–{high})" if rate.unshown else f"{middle} ({low}–{high})"


def chosen(names: Sequence[str]) -> dict[str, Part]:
    """The parts that are named, by their own names or, of other names, by those of some of their paths."""
    paths = {*names} - PARTS.keys()
    own = {name: tuple(path for path in part.paths if name in names or path in paths) for name, part in PARTS.items()}
    return {name: replace(PARTS[name], paths=paths) for name, paths in own.items() if paths}


def short(names: Sequence[str]) -> dict[str, Part]:
    """What `--quick` simulates of them."""
    parts = {name: part for name, part in chosen(names).items() if part.quick}
    return {name: replace(part, n=part.n[:1], noises=part.noises[:1], runs=part.quick) for name, part in parts.items()}


def with_rows(page: str, made: Mapping[str, Sequence[str]], *, seed: int) -> str:
    """The page with these rows in its table; those of other parts stay."""
    before, _, rest = page.partition(MARKS[0])
    old, _, after = rest.partition(MARKS[1])
    known: dict[str, Sequence[str]] = {}
    for line in old.splitlines():
        name = line.removeprefix("| ").partition(" | ")[0]
        known[name] = [*known.get(name, []), line]
    lines = [line for name in PARTS for line in made.get(name, known.get(name, []))]
    when = f"Seed {seed}, {time.strftime('%d %B %Y')}."
    return "\n".join([before + MARKS[0] + HEAD, *lines, "", when, "", MARKS[1] + after])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one noise and one n per path, few runs")
    parser.add_argument("--only", nargs="+", choices=(*PARTS, *PATHS), default=list(PARTS), help="parts, or paths")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--runs", type=int, help="per path, noise and n (default: as each part says)")
    parser.add_argument("--n", type=int, nargs="+", help="blocks, or what a path counts instead")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--tables", action="store_true", help="print every rate, too")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    asked = parser.parse_args()
    parts = short(asked.only) if asked.quick else chosen(asked.only)
    if asked.write and asked.seed != SEED and len(parts) < len(PARTS):
        parser.error("--write with a seed of its own takes every part: the page names one seed for all rows")
    named = {"runs": asked.runs, "n": asked.n and tuple(asked.n)}
    changes = {name: value for name, value in named.items() if value}
    parts = {name: replace(part, **changes) for name, part in parts.items()}
    made, every = dict[str, list[str]](), dict[str, list[Rate]]()
    print(HEAD)
    for name, every[name], seconds in simulated(parts, seed=asked.seed, jobs=asked.jobs):
        made[name] = list(rows(name, every[name], seconds))
        print("\n".join(made[name]), flush=True)
    for name, rates in every.items() if asked.tables else ():
        for figure in [figure for figure in TITLES if any(rate.figure == figure for rate in rates)]:
            print(f"\n### {TITLES[figure]}, {name}\n")
            print("\n".join(table(rates, figure, parts[name].noises)))
    if asked.write:
        PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), made, seed=asked.seed), encoding="utf-8")
    return int(any(line.endswith("missed |") for lines in made.values() for line in lines))


if __name__ == "__main__":
    raise SystemExit(main())
