"""How many blocks `fairtrial bisect` takes to find a step, and how often it is wrong, beside three others: `--help`.

Prints tables in Markdown. The searches are those of the product (`fairtrial.bisect.simulating`), one step anywhere
among the candidates with equal chances, normal noise; what matters is the noise of a block's log ratio in units of the
step. Beside them, of the same candidates and noise:

- bisection with a fixed number of blocks per query, the smallest with which it is wrong as rarely as the search was,
  which knows where to draw the line and measures no ends;
- git_bayesect's posterior over pass and fail (Beta-Bernoulli, Jeffreys), told that a block failed if its ratio is past
  half of the step, which it cannot know, until one change holds 95 %;
- the information bound: no method with that error needs fewer blocks on average (Fano's inequality, with the capacity
  of a normal channel of two inputs), even if it knows the step and the noise.

A confirmation is a paired t test of the change that was found against its predecessor, of as many blocks as the product
takes. How often the answers are wrong where nothing changes is in the table of `benches/calibration.py` (`claims`).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import Setup
from scipy import integrate, special, stats

from fairtrial.bisect.deciding import MOST_BLOCKS as MOST
from fairtrial.bisect.holding import HOLDS, ONE_CHANGE, TWO_STEPS
from fairtrial.bisect.posterior import Floats, Integers
from fairtrial.bisect.reading import confirming_blocks
from fairtrial.bisect.simulating import NO_CHANGE, Searches, Truth, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrated_paths import Rate

CANDIDATES = (8, 64, 1000)
NOISE = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # in units of the step: steps of 1 to 10 % under noise of 1 to 5 %
TWO_STEPS_NOISE = (0.2, 0.5)
STEP = 0.05
RUNS = {0.1: 4_000, 0.2: 4_000, 0.5: 4_000, 1.0: 4_000, 2.0: 2_000, 5.0: 300}  # for up to 64 candidates
FEWER = {8: 1, 64: 1, 1000: 5}  # times fewer
PASS_OR_FAIL_RUNS = 200
PASS_OR_FAIL_NOISE = 1.0  # with more, thousands of blocks
LIMIT = {2.0: 2_000, 5.0: 10_000}  # `--blocks`; a search that reaches it is undecided, which counts as wrong
MOST_OF_FIXED = {8: 0.8, 64: 0.6, 1000: 0.6}  # of those with a fixed number per query
MOST_WRONG = 0.05
LEVEL = 0.05


@dataclass(frozen=True)
class Found:
    """What one row of the tables says: blocks of each method, and shares of searches."""

    candidates: int
    noise: float
    runs: int
    blocks: Floats
    ends: float
    wrong: float
    wrong_confirmed: float
    right_confirmed: float
    none: float
    fixed: int
    per_query: int
    pass_or_fail: tuple[float, float] | None
    bound: float

    @property
    def ratio(self) -> float:
        return float(self.blocks.mean()) / self.fixed

    @property
    def attainable(self) -> bool:
        """Whether any method could need as few blocks as is required."""
        return self.bound <= MOST_OF_FIXED[self.candidates] * self.fixed

    @property
    def missed(self) -> bool:
        return self.attainable and self.ratio > MOST_OF_FIXED[self.candidates]


def searched(levels: Floats, noise: float, random: np.random.Generator, *, margin: float = STEP / 2) -> Searches:
    truth = Truth(levels, lambda shape: random.normal(0, noise * STEP, shape))
    return simulate(truth, blocks=LIMIT.get(noise, MOST), margin=math.expm1(margin))


def one_step(candidates: int, runs: int, random: np.random.Generator) -> tuple[Integers, Floats]:
    at = random.integers(1, candidates + 1, runs)
    return at, np.where(np.arange(candidates + 1) >= at[:, None], STEP, 0.0)


def row(candidates: int, noise: float, *, runs: int, seed: int) -> Found:
    random = np.random.default_rng([seed, candidates, round(noise * 1000)])
    at, levels = one_step(candidates, runs, random)
    found = searched(levels, noise, random)
    named = found.outcome == ONE_CHANGE
    right = named & (found.interval == at - 1)
    agreed = confirmed(found, np.where(right, STEP, 0.0), noise=noise, random=random) & named
    wrong = float((~right).mean())
    per_query, fixed = fixed_number(candidates, noise, wrong=max(wrong, 1 / runs))
    return Found(
        candidates=candidates,
        noise=noise,
        runs=runs,
        blocks=found.blocks.astype(float),
        ends=float(found.ends.mean()),
        wrong=wrong,
        wrong_confirmed=float((agreed & ~right).mean()),
        right_confirmed=float((agreed & right).mean()),
        none=float((found.outcome == NO_CHANGE).mean()),
        fixed=fixed,
        per_query=per_query,
        pass_or_fail=pass_or_fail(candidates, noise, random) if noise <= PASS_OR_FAIL_NOISE else None,
        bound=bound(candidates, noise, wrong=wrong),
    )


def confirmed(found: Searches, true: Floats, *, noise: float, random: np.random.Generator) -> np.ndarray:
    """Whether a paired t test of the product's number of blocks claims the change that was found, in its direction."""
    agrees = np.zeros(len(true), dtype=bool)
    for index in np.flatnonzero(found.outcome == ONE_CHANGE):
        n = confirming_blocks(float(found.size[index]), float(found.noise[index]))
        values = random.normal(true[index], noise * STEP, n)
        t = values.mean() / (values.std(ddof=1) / math.sqrt(n))
        agrees[index] = t * np.sign(found.size[index]) >= stats.t.ppf(1 - LEVEL / 2, n - 1)
    return agrees


def fixed_number(candidates: int, noise: float, *, wrong: float) -> tuple[int, int]:
    """Blocks per query and in all: every query compares their mean with half of the step."""
    queries = math.ceil(math.log2(candidates))
    each = 1 - (1 - wrong) ** (1 / queries)
    per_query = max(1, math.ceil((2 * noise * stats.norm.isf(each)) ** 2))
    return per_query, per_query * queries


def bound(candidates: int, noise: float, *, wrong: float) -> float:
    unsure = float(special.entr(wrong) + special.entr(1 - wrong)) / math.log(2)
    return max(0.0, (1 - wrong) * math.log2(candidates) - unsure) / capacity(1 / noise)


def capacity(signal: float) -> float:
    """Bits a block tells of two levels this many standard deviations apart."""
    half = signal / 2

    def density(value: float) -> float:
        return float(stats.norm.pdf(value - half) + stats.norm.pdf(value + half)) / 2

    def entropy(value: float) -> float:
        return float(special.entr(density(value)))

    mixed, _ = integrate.quad(entropy, -half - 10, half + 10, points=[-half, half], limit=200)
    return float(mixed - stats.norm.entropy()) / math.log(2)


def pass_or_fail(candidates: int, noise: float, random: np.random.Generator) -> tuple[float, float]:
    """Blocks on average and share that is wrong, of git_bayesect's `Bisector` on many searches at once."""
    runs = PASS_OR_FAIL_RUNS
    at, _ = one_step(candidates, runs, random)
    fails = stats.norm.cdf(-0.5 / noise)  # a block of a version before the step is past half of it
    seen = np.zeros((2, runs, candidates + 1))  # all, failed: by version
    blocks, wrong, active = np.zeros(runs), np.zeros(runs, dtype=bool), np.arange(runs)
    while len(active):
        shares, chosen = believed(seen[:, active])
        done = shares.max(axis=-1) >= HOLDS
        wrong[active[done]] = shares.argmax(axis=-1)[done] + 1 != at[active[done]]
        active, chosen = active[~done], chosen[~done]
        failed = random.random(len(active)) < np.where(chosen >= at[active], 1 - fails, fails)
        seen[0, active, chosen] += 1
        seen[1, active, chosen] += failed
        blocks[active] += 1
    return float(blocks.mean()), float(wrong.mean())


def believed(seen: Floats) -> tuple[Floats, Integers]:
    """Posterior that the change is version 1, 2, …, and the version of the next block: least expected entropy."""
    every, failed = np.cumsum(seen, axis=-1)
    before = np.stack([every, failed])[..., :-1]  # of a change right behind
    after = np.stack([every, failed])[..., -1:] - before
    jeffreys = 0.5
    logs = sum(special.betaln(jeffreys + bad, jeffreys + n - bad) for n, bad in (before, after))
    shares = np.exp(logs - special.logsumexp(logs, axis=-1, keepdims=True))
    old, new = ((jeffreys + bad) / (1 + n) for n, bad in (before, after))
    expected = np.zeros((*shares.shape[:-1], shares.shape[-1] + 1))  # of a block of version 0, 1, …
    for p_old, p_new in ((old, new), (1 - old, 1 - new)):
        weight = split(shares * p_new, shares * p_old)
        expected += split(special.entr(shares * p_new), special.entr(shares * p_old)) - special.entr(weight)
    middle = np.abs(np.arange(expected.shape[-1]) - expected.shape[-1] // 2)
    least = np.isclose(expected, expected.min(axis=-1, keepdims=True), rtol=1e-12, atol=1e-15)
    return shares, np.where(least, middle, expected.shape[-1]).argmin(axis=-1)


def split(of_new: Floats, of_old: Floats) -> Floats:
    """By version: the sum over changes at or before it, of which it is new, and over those behind it."""
    new = np.concatenate([np.zeros_like(of_new[..., :1]), np.cumsum(of_new, axis=-1)], axis=-1)
    old = np.concatenate([np.zeros_like(of_old[..., :1]), np.cumsum(of_old, axis=-1)], axis=-1)
    return np.asarray(new + old[..., -1:] - old)


def claims(setup: Setup) -> Iterator[Rate]:
    """One step, none, and a step of just the margin: changes that are claimed, and *no change*.

    `n` is the number of candidates, and the column a block's noise in units of the step.
    """
    noise, margin = float(setup.noise), STEP / 2
    at, levels = one_step(setup.n, setup.runs, setup.random)
    found = searched(levels, noise, setup.random)
    right = (found.outcome == ONE_CHANGE) & (found.interval == at - 1)
    agreed = confirmed(found, np.where(right, STEP, 0.0), noise=noise, random=setup.random)
    yield setup.rate("a step: a wrong one confirmed", "false", agreed & ~right)
    yield setup.rate("a step: no change", "false", found.outcome == NO_CHANGE)
    yield setup.rate("a step", "power", agreed & right)
    yield setup.number("a step", "blocks", found.blocks.astype(float))
    found = searched(np.zeros_like(levels), noise, setup.random)
    agreed = confirmed(found, np.zeros(setup.runs), noise=noise, random=setup.random)
    yield setup.rate("no step: one confirmed", "false", agreed)
    yield setup.rate("no step: no change", "power", found.outcome == NO_CHANGE)
    yield setup.number("no step", "blocks", found.blocks.astype(float))
    found = searched(levels / STEP * margin, noise, setup.random)
    yield setup.rate("a step of the margin: no change", "false", found.outcome == NO_CHANGE)


PATHS: Final = {"bisection": claims}


def two_steps(candidates: int, noise: float, *, runs: int, seed: int) -> str:
    """Two equal steps at least an eighth of the history apart."""
    random = np.random.default_rng([seed, candidates, 2])
    apart = max(1, candidates // 8)
    first = random.integers(1, candidates - apart + 1, runs)
    second = first + apart + (random.random(runs) * (candidates - first - apart + 1)).astype(int)
    versions = np.arange(candidates + 1)
    levels = STEP * ((versions >= first[:, None]).astype(float) + (versions >= second[:, None]))
    found = searched(levels, noise, random)
    two = found.outcome == TWO_STEPS
    right = two & (found.interval == first - 1) & (found.second == second - 1)
    one_of = (found.outcome == ONE_CHANGE) & ((found.interval == first - 1) | (found.interval == second - 1))
    blocks = found.blocks
    return (
        f"| {candidates:,} | {noise:g} | {100 * two.mean():.1f} % | {100 * right.mean():.1f} % | "
        f"{100 * one_of.mean():.1f} % | {blocks.mean():.0f} | {np.percentile(blocks, 90):.0f} |"
    )


def line(found: Found) -> str:
    mark = "**" if found.missed else ""
    ratio = f"{mark}{found.ratio:.2f}{mark}" + ("" if found.attainable else ", bound above")
    others = "–" if found.pass_or_fail is None else "{:.0f} ({:.0%} wrong)".format(*found.pass_or_fail)
    median, most = np.percentile(found.blocks, (50, 90))
    return (
        f"| {found.candidates:,} | {found.noise:g} | {found.runs:,} | {found.blocks.mean():.1f} | {median:.0f} | "
        f"{most:.0f} | {found.ends:.1f} | {found.fixed} ({found.per_query}) | {ratio} | {others} "
        f"| {found.bound:.1f} | {100 * found.wrong:.1f} % | {100 * found.none:.1f} % | "
        f"{100 * found.wrong_confirmed:.2f} % | {100 * found.right_confirmed:.1f} % |"
    )


COLUMNS = (
    "candidates",
    "noise ÷ step",
    "runs",
    "blocks, mean",
    "median",
    "90th percentile",
    "of the ends",
    "fixed number (per query)",
    "ratio",
    "pass or fail",
    "bound",
    "wrong",
    "“no change”",
    "wrong, confirmed",
    "right, confirmed",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'--:|' * len(COLUMNS)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="searches per row (default: fewer where they take more blocks)")
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--candidates", type=int, nargs="+", choices=CANDIDATES, default=CANDIDATES)
    parser.add_argument("--noise", type=float, nargs="+", choices=NOISE, default=NOISE)
    asked = parser.parse_args()
    print(HEAD)
    rows = []
    for candidates in asked.candidates:
        for noise in asked.noise:
            rows.append(
                row(candidates, noise, runs=asked.runs or max(50, RUNS[noise] // FEWER[candidates]), seed=asked.seed)
            )
            print(line(rows[-1]), flush=True)
    runs = asked.runs or 1_000
    print(f"\nTwo equal steps, {runs:,} runs per row:\n")
    columns = (
        "candidates",
        "noise ÷ step",
        "two steps",
        "both right",
        "one of them",
        "blocks, mean",
        "90th percentile",
    )
    print(f"| {' | '.join(columns)} |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for candidates in asked.candidates[:2]:
        for noise in TWO_STEPS_NOISE:
            print(two_steps(candidates, noise, runs=runs, seed=asked.seed), flush=True)
    wrong = [each for each in rows if each.wrong_confirmed > MOST_WRONG or each.none > MOST_WRONG]
    missed = [each for each in rows if each.missed]
    could = sum(each.attainable for each in rows)
    print(
        f"\nblocks: {could - len(missed)} of {could} rows as required; wrong: {len(rows) - len(wrong)} of {len(rows)}."
    )
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
