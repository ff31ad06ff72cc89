"""Whether cells may lend each other their variances: false claims and power of moderated t tests, `--help`.

Families of cells whose spreads are alike or not, under every noise of `simulated_noise.py`. Each test is judged as the
analysis judges: raised by the exact witnesses at the same level, then Holm. Prints tables in Markdown, in percent with
exact 95 % Monte-Carlo bounds: false claims of the noise that has most of them, power for each noise. Bold: false claims
whose upper bound is above 5.5 %.
"""

from __future__ import annotations

import argparse
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, BOUND, EFFECT, Setup
from scipy import special
from simulated_noise import KINDS, OWN, own_differences, typical

from fairtrial.analyse.inference import confirming, exchanging, families, ranks, sensitivity
from fairtrial.analyse.inference.t_tests import TTests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

    Claims = NDArray[np.bool_]

CELLS: Final = (6, 12)
BLOCKS: Final = (6, 8, 10, 20)
RUNS: Final = 8000
FEWER: Final = 2  # where some cells differ, whose rates are lower, and of power: one of so many runs
LARGE_EFFECT: Final = float(np.log(1.03))
MOST_DF: Final = 1e6  # of a prior: as good as infinitely many
HALVES: Final = np.geomspace(0.01, MOST_DF / 2, 4000)  # degrees of freedom to look trigamma up by: to 5 digits
TRIGAMMA: Final = special.polygamma(1, HALVES)
DRAWN: Final = 3000  # families to learn what winsorising takes away
FALSE, FALSE_AMONG, FALSE_SAME = (
    "False claims of a difference, nothing differs",
    "False claims of a difference, a third of the cells differ",
    "False claims of equivalence, all cells at the margin",
)
POWER, POWER_LARGE, POWER_SAME = (
    "A difference of 1.5 % found, in a third of the cells",
    "A difference of 3 % found, in a third of the cells",
    "Equivalence found, nothing differs",
)
POWER_BARE: Final = f"{POWER}, without witnesses"
POWERS: Final = (POWER, POWER_BARE, POWER_LARGE, POWER_SAME)


@dataclass(frozen=True)
class Prior:
    """What the cells of a family say about one cell's variance: as if `df` more blocks had shown `variance`."""

    variance: Values
    df: Values


def moderated(differences: Values, prior: Prior) -> TTests:
    """T tests on the means of shape (…, n), with variances drawn towards the prior's (Smyth 2004)."""
    n = differences.shape[-1]
    df = n - 1
    share = prior.df / (prior.df + df)
    variance = share * prior.variance + (1 - share) * np.var(differences, ddof=1, axis=-1)
    # All blocks of a family together have no more degrees of freedom than this (as in limma).
    together = np.minimum(prior.df + df, df * differences.shape[-2])
    return TTests(estimate=differences.mean(axis=-1), standard_error=np.sqrt(variance / n), df=together)


def nothing(variances: Values, df: int) -> Prior:
    """Every cell for itself: Student's t."""
    del df
    return Prior(variance=np.ones_like(variances), df=np.zeros_like(variances))


def moments(variances: Values, df: int) -> Prior:
    """Mean and variance of log variances, matched to a scaled F distribution (Smyth 2004, section 6.2)."""
    logs = np.log(variances)
    return _matched(logs.mean(axis=-1), logs.var(axis=-1, ddof=1), df=df, shape=variances.shape)


def _matched(mean: Values, spread: Values, *, df: int, shape: tuple[int, ...]) -> Prior:
    more = np.maximum(spread - special.polygamma(1, df / 2), TRIGAMMA[-1])  # no more than chance: one common variance
    prior = 2 * np.exp(np.interp(np.log(more), np.log(TRIGAMMA[::-1]), np.log(HALVES[::-1])))
    centre = mean - _log_mean(df) + _log_mean(prior)
    return Prior(
        variance=np.broadcast_to(np.exp(centre)[..., None], shape), df=np.broadcast_to(prior[..., None], shape)
    )


def _log_mean(df: Values | int) -> Values:
    """Mean of the logarithm of a mean square with so many degrees of freedom, of true value 1."""
    found: Values = special.digamma(np.asarray(df) / 2) - np.log(np.asarray(df) / 2)
    return found


def halved(variances: Values, df: int) -> Prior:
    """Half the degrees of freedom: the spreads of so few cells say little about how alike they are."""
    prior = moments(variances, df)
    return Prior(variance=prior.variance, df=prior.df / 2)


def capped(variances: Values, df: int) -> Prior:
    """No more degrees of freedom than the cell has itself."""
    prior = moments(variances, df)
    return Prior(variance=prior.variance, df=np.minimum(prior.df, df))


def others(variances: Values, df: int) -> Prior:
    """From all cells but the one in question."""
    cells = variances.shape[-1]
    rest = [moments(np.delete(variances, cell, axis=-1), df) for cell in range(cells)]
    return Prior(
        variance=np.stack([each.variance[..., 0] for each in rest], axis=-1),
        df=np.stack([each.df[..., 0] for each in rest], axis=-1),
    )


def only_larger(variances: Values, df: int) -> Prior:
    """A variance below the prior's is drawn up, one above it stays the cell's own: noisy cells borrow nothing."""
    prior = moments(variances, df)
    return Prior(variance=prior.variance, df=np.where(variances > prior.variance, 0.0, prior.df))


def only_larger_halved(variances: Values, df: int) -> Prior:
    """The same with half the degrees of freedom."""
    prior = only_larger(variances, df)
    return Prior(variance=prior.variance, df=prior.df / 2)


def robust(variances: Values, df: int) -> Prior:
    """Winsorised moments, and fewer degrees of freedom for cells that are too noisy (Phipson and others 2016)."""
    logs = np.sort(np.log(variances), axis=-1)
    kept = _winsorised(logs)
    centre, spread = kept.mean(axis=-1), kept.var(axis=-1, ddof=1)
    grid, centres, spreads = _winsorised_f(df, variances.shape[-1])
    prior = np.exp(np.interp(spread, spreads[::-1], np.log(grid)[::-1]))
    scale = np.exp(centre - np.interp(np.log(prior), np.log(grid), centres))
    common = Prior(
        variance=np.broadcast_to(scale[:, None], variances.shape),
        df=np.broadcast_to(prior[:, None], variances.shape),
    )
    return Prior(variance=common.variance, df=_without_outliers(variances, common, df))


def _winsorised(logs: Values) -> Values:
    """The outermost of sorted values at each end, one of six cells, moved to the next."""
    away = logs.shape[-1] // 6
    return np.clip(logs, logs[..., away, None], logs[..., -1 - away, None])


@cache
def _winsorised_f(df: int, cells: int) -> tuple[Values, Values, Values]:
    """Prior degrees of freedom, and what mean and variance winsorised logarithms then have on average."""
    random = np.random.default_rng(1)
    grid = np.geomspace(0.2, 1000, 40)
    own = np.log(random.chisquare(df, (DRAWN, cells)) / df)
    logs = [own - np.log(random.chisquare(each, (DRAWN, cells)) / each) for each in grid]
    kept = [_winsorised(np.sort(each, axis=-1)) for each in logs]
    centres = np.array([each.mean() for each in kept])
    return grid, centres, np.minimum.accumulate([each.var(axis=-1, ddof=1).mean() for each in kept])


def _without_outliers(variances: Values, prior: Prior, df: int) -> Values:
    """Prior degrees of freedom by cell, towards those that make the largest variance an ordinary one."""
    ratio = variances / prior.variance
    cells = variances.shape[-1]
    tail = np.log(np.maximum(special.fdtrc(df, prior.df, ratio), 1e-300))
    order = np.argsort(np.argsort(ratio, axis=-1), axis=-1) + 1
    ordinary = np.exp(np.minimum(tail - np.log((cells - order + 0.5) / cells), 0.0))
    largest = ratio.max(axis=-1, keepdims=True)
    fewest = prior.df[:, :1]
    for _ in range(2):
        with np.errstate(divide="ignore"):
            fewest = np.minimum(fewest, np.log(0.5) / np.log(special.fdtrc(df, fewest, largest)) * fewest)
    found = ordinary * prior.df + (1 - ordinary) * fewest
    ascending = np.sort(found, axis=-1)  # noisier cells never have more, as in limma
    return np.take_along_axis(ascending, cells - order, axis=-1)


TESTS: Final[Mapping[str, Callable[[Values, int], Prior]]] = {
    "t, as now": nothing,
    "moderated": moments,
    "half the prior": halved,
    "at most n - 1": capped,
    "winsorised": robust,
    "from the others": others,
    "up only": only_larger,
    "up only, half": only_larger_halved,
}


def _unlike(log_sd: float) -> Callable[[np.random.Generator, tuple[int, int]], Values]:
    return lambda random, shape: np.exp(random.normal(0, log_sd, shape))


def _noisy(times: float, *, share: float = 0.0) -> Callable[[np.random.Generator, tuple[int, int]], Values]:
    """The last cell or a share of them, which never differ."""

    def factors(random: np.random.Generator, shape: tuple[int, int]) -> Values:
        del random
        others_ = shape[1] - max(1, round(share * shape[1]))
        return np.broadcast_to(np.where(np.arange(shape[1]) < others_, 1.0, times), shape)

    return factors


# How many times as large each cell's noise is.
SPREADS: Final[Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Values]]] = {
    "equal": _unlike(0.0),
    "log-sd 0.5": _unlike(0.5),
    "log-sd 1": _unlike(1.0),
    "half × 2": _noisy(2.0, share=0.5),
    "one × 2": _noisy(2.0),
    "one × 3": _noisy(3.0),
    "one × 10": _noisy(10.0),
}


@dataclass(frozen=True)
class Design:
    """Families of so many cells and blocks, with one noise and one way for spreads to differ between cells."""

    cells: int
    n: int
    noise: str
    spread: str

    @property
    def real(self) -> int:
        """Cells that differ, where some do."""
        return self.cells // 3


def differences(setup: Setup, of: Design) -> Values:
    """Log ratios of shape (runs, cells, n); what is typical of each cell is 0."""
    if of.noise in OWN:
        shape = (setup.runs, of.cells, of.n)
        apart = own_differences(setup.random, of.noise, shape) - typical(of.noise, paired=True)
    else:
        apart = np.diff(setup.blocks(cells=of.cells), axis=2)[:, :, 0]
    return apart * SPREADS[of.spread](setup.random, (setup.runs, of.cells))[..., None]


@dataclass(frozen=True)
class Families:
    """Log ratios of shape (families, cells, n), and what each test takes the cells' variances from.

    A prior knows variances only, so families that are moved by an effect keep it.
    """

    values: Values
    priors: Mapping[str, Prior]

    @classmethod
    def of(cls, values: Values) -> Families:
        variances = np.var(values, ddof=1, axis=-1)
        return cls(values, {name: fit(variances, values.shape[-1] - 1) for name, fit in TESTS.items()})

    def first(self, count: int) -> Families:
        priors = {name: Prior(each.variance[:count], each.df[:count]) for name, each in self.priors.items()}
        return Families(self.values[:count], priors)

    def moved(self, by: Values | float) -> Families:
        return Families(self.values + by, self.priors)

    @property
    def tests(self) -> dict[str, TTests]:
        return {name: moderated(self.values, prior) for name, prior in self.priors.items()}

    def different(self, *, witnesses: bool = True) -> dict[str, Claims]:
        """Claims of each test that cells differ."""
        p = {name: each.p for name, each in self.tests.items()}
        if witnesses:
            share = confirming.weight(self.values.shape[-1], level=ALPHA / self.values.shape[1])
            p = _raised(p, self.values, share=share, witness=_two_sided)
        return {name: _claimed(each) for name, each in p.items()}

    def equivalent(self) -> dict[str, Claims]:
        """Claims of each test that cells lie within the margin."""
        p = {name: sensitivity.equivalence_many(each, bound=BOUND) for name, each in self.tests.items()}
        near = BOUND - self.values * np.where(self.values.mean(axis=-1, keepdims=True) >= 0, 1.0, -1.0)
        share = confirming.weight(self.values.shape[-1], level=2 * ALPHA / self.values.shape[1])
        return {name: _claimed(each) for name, each in _raised(p, near, share=share, witness=_one_sided).items()}


def _two_sided(rows: Values) -> Values:
    return np.maximum(exchanging.exchange_p(rows), confirming.signed_ranks(rows))


def _one_sided(rows: Values) -> Values:
    return np.maximum(exchanging.exchange_p(rows) / 2, ranks.signed_rank_above(rows))


def _raised(
    p: dict[str, Values], rows: Values, *, share: float, witness: Callable[[Values], Values]
) -> dict[str, Values]:
    """As `confirming` does, but the witnesses are heard once for all tests: they take most of the time."""
    small = np.min(list(p.values()), axis=0) < ALPHA
    if share == 0 or not small.any():
        return p
    heard = np.zeros(small.shape)
    heard[small] = witness(rows[small])
    return {name: np.where(each < ALPHA, confirming.towards(each, heard, share), each) for name, each in p.items()}


def _claimed(p: Values) -> Claims:
    """By Holm's method; families without a small p claim nothing."""
    found = np.zeros(p.shape, dtype=bool)
    some = (p < ALPHA).any(axis=-1)
    found[some] = families.step_down(p[some][..., None], np.zeros((*p[some].shape, 1)))[..., 0] < ALPHA
    return found


@dataclass(frozen=True)
class Counted:
    """One figure of one design by one test."""

    design: Design
    figure: str
    rate: Rate


def simulate(of: Design, *, runs: int, seed: int) -> list[Counted]:
    """All figures; the stream of random numbers depends on the design only."""
    random = np.random.default_rng([seed, zlib.crc32(repr(of).encode())])
    setup = Setup(noise=of.noise, n=of.n, runs=runs, random=random)
    return [
        Counted(of, figure, setup.rate(test, "power" if figure in POWERS else "false", hits))
        for figure, found in _figures(setup, of)
        for test, hits in found.items()
    ]


def _figures(setup: Setup, of: Design) -> Iterator[tuple[str, dict[str, Claims]]]:
    """Which families have a false claim, and which find what the first cell shows."""
    alike = Families.of(differences(setup, of))
    fewer = alike.first(max(1, setup.runs // FEWER))
    differs = np.arange(of.cells) < of.real
    yield FALSE, _any(alike.different())
    real = fewer.moved(np.where(differs, EFFECT, 0.0)[:, None])
    claimed = real.different()
    yield FALSE_AMONG, _any({name: each[:, ~differs] for name, each in claimed.items()})
    yield POWER, {name: each[:, 0] for name, each in claimed.items()}
    yield FALSE_SAME, _any(alike.moved(BOUND).equivalent())
    if of.noise == "normal":
        large = fewer.moved(np.where(differs, LARGE_EFFECT, 0.0)[:, None]).different()
        yield POWER_BARE, {name: each[:, 0] for name, each in real.different(witnesses=False).items()}
        yield POWER_LARGE, {name: each[:, 0] for name, each in large.items()}
        yield POWER_SAME, {name: each[:, 0] for name, each in fewer.equivalent().items()}


def _any(claims: Mapping[str, Claims]) -> dict[str, Claims]:
    """Families in which some cell has a claim."""
    return {name: np.asarray(each.any(axis=-1)) for name, each in claims.items()}


def table(counted: Sequence[Counted]) -> list[str]:
    """One row per number of cells, blocks, and spread: the worst noise of each test."""
    rows: dict[tuple[int, int, str], dict[str, list[Rate]]] = {}
    for each in counted:
        row = rows.setdefault((each.design.cells, each.design.n, each.design.spread), {})
        row.setdefault(each.rate.path, []).append(each.rate)
    lines = [f"| cells | n | spreads | {' | '.join(TESTS)} |", f"|--:|--:|---|{'--:|' * len(TESTS)}"]
    for (cells, n, spread), found in rows.items():
        cell = " | ".join(_cell(found[name]) for name in TESTS)
        lines.append(f"| {cells} | {n} | {spread} | {cell} |")
    return lines


def _cell(rates: Sequence[Rate]) -> str:
    worst = max(rates, key=lambda rate: rate.estimate)
    middle, low, high = (f"{100 * value:.1f}" for value in (worst.estimate, *worst.bounds))
    noise = f" {worst.noise}" if len(rates) > 1 else ""
    return f"**{middle}** ({low}–{high}){noise}" if worst.unshown else f"{middle} ({low}–{high}){noise}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="simulated families per row and noise")
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--cells", type=int, nargs="+", default=CELLS)
    parser.add_argument("--n", type=int, nargs="+", default=BLOCKS, help="blocks; from 6")
    parser.add_argument("--noise", nargs="+", choices=(*KINDS, *OWN), default=[*KINDS, *OWN])
    parser.add_argument("--spread", nargs="+", choices=SPREADS, default=list(SPREADS))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser


def main() -> None:
    asked = _parser().parse_args()
    designs = [Design(*each) for each in product(asked.cells, asked.n, asked.noise, asked.spread)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        found = pool.map(partial(simulate, runs=asked.runs, seed=asked.seed), designs)
        counted = [each for of_one in found for each in of_one]
    print(f"{asked.runs:,} families per row and noise, of power and among differing cells {asked.runs // FEWER:,};")
    print(f"seed {asked.seed}; in brackets the exact 95 % Monte-Carlo bounds.")
    for figure in (FALSE, FALSE_AMONG, FALSE_SAME):
        _print(figure, [each for each in counted if each.figure == figure])
    for figure, noise in product(POWERS, asked.noise):
        _print(f"{figure}, {noise}", [each for each in counted if (each.figure, each.design.noise) == (figure, noise)])


def _print(title: str, counted: Sequence[Counted]) -> None:
    if counted:
        print(f"\n### {title}, %\n")
        print("\n".join(table(counted)))


if __name__ == "__main__":
    main()
