"""Every way from trials to a claim, with the project's own functions, counted over simulated runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats
from simulated_noise import MEANS, Shape, blocks, in_turn, shuffled

from fairtrial.analyse.inference import confirming, families, guardrails, ranks, sensitivity, t_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from simulated_noise import Values

CONFIDENCE, ALPHA = 0.95, 1 - 0.95
EFFECT = math.log(1.015)  # of every arm that differs
BOUND = math.log1p(0.02)  # the default margin
ARMS = 3  # besides the baseline, where several share it
CELLS, CELLS_OF_ARMS, SCREENED = 6, 4, 12
LIMIT_OF_BOUND, COVERED = 0.055, 0.94  # required of default paths: so exact a 5 % of false claims, and coverage
Figure = Literal["false", "covers", "power", "blocks", "width", "promised", "confirmed", "trial", "found"]
NUMBERS = ("blocks", "width", "promised", "confirmed", "trial", "found")  # figures that are means, not shares of runs


@dataclass(frozen=True)
class Rate:
    """What was counted of one figure of a path: events, or for `NUMBERS` their values.

    Attributes:
        total, squares: sum over the runs, and of the squares.
    """

    path: str
    noise: str
    n: int
    figure: Figure
    default: bool
    runs: int
    total: float
    squares: float

    def __add__(self, other: Rate) -> Rate:
        """Both, of the same figure."""
        return replace(
            self,
            runs=self.runs + other.runs,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )

    @property
    def estimate(self) -> float:
        return self.total / self.runs

    @property
    def bounds(self) -> tuple[float, float]:
        """What simulating so few runs leaves open, at 95 %: of a share exact (Clopper and Pearson 1934)."""
        if self.figure in NUMBERS:
            variance = (self.squares - self.total**2 / self.runs) / (self.runs - 1)
            away = 1.96 * math.sqrt(max(0.0, variance) / self.runs)
            return self.estimate - away, self.estimate + away
        low = float(stats.beta.ppf(0.025, self.total, self.runs - self.total + 1)) if self.total else 0.0
        left = self.runs - self.total
        return low, float(stats.beta.ppf(0.975, self.total + 1, left)) if left else 1.0

    @property
    def required(self) -> bool:
        return self.default and self.figure in {"false", "covers"}

    @property
    def met(self) -> bool:
        """Whether the bounds show what is required."""
        low, high = self.bounds
        return high <= LIMIT_OF_BOUND if self.figure == "false" else low >= COVERED

    @property
    def p_met(self) -> float:
        """The chance of a rate as bad as this if the true one is at the limit of what is required."""
        if self.figure == "false":
            return float(stats.binom.sf(self.total - 1, self.runs, LIMIT_OF_BOUND))
        return float(stats.binom.cdf(self.total, self.runs, COVERED))

    @property
    def unshown(self) -> bool:
        """Whether a default path is not shown to be what is required."""
        return self.required and not self.met


@dataclass(frozen=True)
class Setup:
    """One noise, one number of blocks, so many runs, one stream of random numbers."""

    noise: str
    n: int
    runs: int
    random: np.random.Generator

    def blocks(self, *, cells: int = 1, arms: int = 1) -> Values:
        return blocks(self.random, self.noise, Shape(runs=self.runs, cells=cells, arms=arms + 1, n=self.n))

    def may_claim(self, *, paired: bool) -> bool:
        least = ranks.smallest_signed_rank_p(self.n) if paired else ranks.smallest_rank_sum_p(self.n, self.n)
        return ranks.could_claim(least, alpha=ALPHA)

    def p(self, first: Values, second: Values, *, size: int = 1) -> Values:
        """Of the paired comparison along the last axis, in a family of so many."""
        by_t = t_tests.paired_many(first, second).p
        return confirming.paired(by_t, second - first, level=ALPHA / size, alpha=ALPHA)

    def unpaired_p(self, first: Values, second: Values, *, size: int = 1) -> Values:
        """Of the comparison without blocks, likewise."""
        by_t = t_tests.welch_many(first, second).p
        return confirming.unpaired(by_t, first, second, level=ALPHA / size, alpha=ALPHA)

    def inside(self, first: Values, second: Values, *, size: int = 1) -> Values:
        """P of equivalence within the default margin, likewise."""
        by_t = sensitivity.equivalence_many(t_tests.paired_many(first, second), bound=BOUND)
        apart = second - first
        near = np.where(apart.mean(axis=-1, keepdims=True) >= 0, BOUND - apart, BOUND + apart)
        return confirming.paired_beyond(by_t, near, level=ALPHA / size, alpha=ALPHA)

    def guarded(self, first: Values, second: Values) -> tuple[Values, Values]:
        """P of a guardrail kept and breached, where less is better and the margin the default."""
        p = guardrails.non_inferiority(t_tests.paired_many(first, second), worse=1, bound=BOUND)
        beyond = second - first - BOUND
        kept, breached = (
            confirming.paired_beyond(each, side, level=ALPHA, alpha=ALPHA)
            for each, side in zip(p, (-beyond, beyond), strict=True)
        )
        return kept, breached

    def rate(self, path: str, figure: Figure, hits: NDArray[np.bool_], *, default: bool = True) -> Rate:
        """Of every element of `hits`."""
        return self.number(path, figure, hits.astype(np.float64), default=default)

    def number(self, path: str, figure: Figure, values: Values, *, default: bool = True) -> Rate:
        """Of every element of `values`."""
        total, squares = float(values.sum()), float((values**2).sum())
        return Rate(path, self.noise, self.n, figure, default, values.size, total, squares)


def _of_test(
    setup: Setup, path: str, *, claimed: tuple[NDArray[np.bool_], NDArray[np.bool_]], covers: NDArray[np.bool_]
) -> Iterator[Rate]:
    """A test's rates from its claims of equal and of different arms."""
    yield setup.rate(path, "false", claimed[0])
    yield setup.rate(path, "power", claimed[1])
    yield setup.rate(path, "covers", covers)


def paired_t(setup: Setup) -> Iterator[Rate]:
    logs = setup.blocks()[:, 0]
    equal, different = (setup.p(logs[:, 0], logs[:, 1] + by) for by in (0.0, EFFECT))
    low, high = t_tests.paired_many(logs[:, 0], logs[:, 1] + EFFECT).interval(confidence=CONFIDENCE)
    covers = (low <= EFFECT) & (high >= EFFECT)
    may = setup.may_claim(paired=True)
    claimed = (equal < ALPHA) & may, (different < ALPHA) & may
    yield from _of_test(setup, "paired t, blocks", claimed=claimed, covers=covers)


def welch(setup: Setup) -> Iterator[Rate]:
    logs = shuffled(setup.random, setup.noise, runs=setup.runs, arms=2, n=setup.n)
    equal, different = (setup.unpaired_p(logs[:, 0], logs[:, 1] + by) for by in (0.0, EFFECT))
    low, high = t_tests.welch_many(logs[:, 0], logs[:, 1] + EFFECT).interval(confidence=CONFIDENCE)
    covers = (low <= EFFECT) & (high >= EFFECT)
    may = setup.may_claim(paired=False)
    claimed = (equal < ALPHA) & may, (different < ALPHA) & may
    yield from _of_test(setup, "Welch, shuffled", claimed=claimed, covers=covers)
    logs = in_turn(setup.random, setup.noise, runs=setup.runs, arms=2, n=setup.n)
    found = setup.unpaired_p(logs[:, 0], logs[:, 1]) < ALPHA
    yield setup.rate("Welch, one arm after the other", "false", found, default=False)
    cells = [shuffled(setup.random, setup.noise, runs=setup.runs, arms=2, n=setup.n) for _ in range(CELLS)]
    p = np.stack([setup.unpaired_p(each[:, 0], each[:, 1], size=CELLS) for each in cells], axis=1)[:, :, None]
    found = _any(p) & setup.may_claim(paired=False)
    yield setup.rate(f"Welch, shuffled, {CELLS} cells, Holm", "false", found, default=False)


def signed_rank(setup: Setup) -> Iterator[Rate]:
    logs = setup.blocks()[:, 0]
    apart = logs[:, 1] - logs[:, 0]
    reach = ranks.signed_rank_reach(setup.n, confidence=CONFIDENCE)
    low, high = ranks.interval_many(ranks.walsh_averages(apart + EFFECT), reach)
    p, found = (
        2 * np.minimum(ranks.signed_rank_above(each), ranks.signed_rank_above(-each))
        for each in (apart, apart + EFFECT)
    )
    claimed = p < ALPHA, found < ALPHA
    yield from _of_test(setup, "Wilcoxon, blocks", claimed=claimed, covers=(low <= EFFECT) & (high >= EFFECT))


def rank_sum(setup: Setup) -> Iterator[Rate]:
    logs = shuffled(setup.random, setup.noise, runs=setup.runs, arms=2, n=setup.n)
    first, second = logs[:, 0], logs[:, 1]
    reach = ranks.rank_sum_reach(setup.n, setup.n, confidence=CONFIDENCE)
    low, high = ranks.interval_many(ranks.shifts(first, second + EFFECT), reach)
    p, found = (
        2 * np.minimum(ranks.rank_sum_above(first, each), ranks.rank_sum_above(each, first))
        for each in (second, second + EFFECT)
    )
    claimed = p < ALPHA, found < ALPHA
    yield from _of_test(setup, "Mann-Whitney, shuffled", claimed=claimed, covers=(low <= EFFECT) & (high >= EFFECT))


def equivalence(setup: Setup) -> Iterator[Rate]:
    """False: arms that differ by exactly the margin in one cell, or in all of a family."""
    may = setup.may_claim(paired=True)
    logs = setup.blocks(cells=CELLS)
    one = setup.inside(logs[:, 0, 0], logs[:, 0, 1] + BOUND)
    all_ = setup.inside(logs[:, :, 0], logs[:, :, 1] + BOUND, size=CELLS)
    equal = setup.inside(logs[:, 0, 0], logs[:, 0, 1])
    yield setup.rate("equivalence, one cell", "false", (one < ALPHA) & may)
    yield setup.rate("equivalence, one cell", "power", (equal < ALPHA) & may)
    yield setup.rate(f"equivalence, {CELLS} cells, Holm", "false", _any(all_[:, :, None]) & may)


def several_cells(setup: Setup) -> Iterator[Rate]:
    """All cells without effect, and two of them with one, which must not cost the others their rate."""
    may = setup.may_claim(paired=True)
    logs = setup.blocks(cells=CELLS)
    for real in (0, 2):
        effect = np.where(np.arange(CELLS) < real, EFFECT, 0.0)[:, None]
        p = setup.p(logs[:, :, 0], logs[:, :, 1] + effect, size=CELLS)[:, :, None]
        path = f"{CELLS} cells, Holm" + (f", {real} differ" if real else "")
        yield setup.rate(path, "false", _any(p, of=np.arange(CELLS)[:, None] >= real) & may)
        if real:
            yield setup.rate(path, "power", _any(p, of=np.arange(CELLS)[:, None] == 0) & may)


def several_arms(setup: Setup) -> Iterator[Rate]:
    """Arms that share a baseline, in one cell and in several; and one arm of each that does differ."""
    may = setup.may_claim(paired=True)
    for cells, real in ((1, 0), (1, 1), (CELLS_OF_ARMS, 0), (CELLS_OF_ARMS, 1)):
        logs = setup.blocks(cells=cells, arms=ARMS)
        logs[:, :, 1 : 1 + real] += EFFECT
        p = setup.p(logs[:, :, :1], logs[:, :, 1:], size=cells * ARMS)
        null = np.broadcast_to(np.arange(ARMS) >= real, (cells, ARMS))
        path = (
            f"{ARMS} arms, " + (f"{cells} cells, " if cells > 1 else "") + "Dunnett" + (", 1 differs" if real else "")
        )
        shares = families.shares_of_blocks(logs)
        yield setup.rate(path, "false", _any(p, shares, of=null) & may)
        if real:
            yield setup.rate(path, "power", _any(p, shares, of=~null) & may)
    logs = shuffled(setup.random, setup.noise, runs=setup.runs, arms=1 + ARMS, n=setup.n)
    p = setup.unpaired_p(np.broadcast_to(logs[:, :1], logs[:, 1:].shape), logs[:, 1:], size=ARMS)[:, None]
    shares = families.shares_of_arms(np.var(logs, ddof=1, axis=-1) / setup.n, df=setup.n - 1)[:, None]
    found = _any(p, shares) & setup.may_claim(paired=False)
    yield setup.rate(f"{ARMS} arms, shuffled, Dunnett", "false", found)


def _any(p: Values, shares: Values | None = None, *, of: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Whether a family claims any of `of`: only families with a small p at all can, which saves adjusting the rest."""
    found = np.zeros(len(p), dtype=bool)
    small = np.flatnonzero((p < ALPHA).any(axis=(-1, -2)))
    used = np.zeros_like(p[small]) if shares is None else shares[small]
    claimed = families.step_down(p[small], used) < ALPHA
    found[small] = (claimed if of is None else claimed & of).any(axis=(-1, -2))
    return found


def screening(setup: Setup) -> Iterator[Rate]:
    """Benjamini-Hochberg: any claim where nothing differs; the share of false ones where a third does."""
    may = setup.may_claim(paired=True)
    logs = setup.blocks(cells=SCREENED)
    for real in (0, SCREENED // 3):
        effect = np.where(np.arange(SCREENED) < real, EFFECT, 0.0)[:, None]
        p = setup.p(logs[:, :, 0], logs[:, :, 1] + effect, size=SCREENED)
        claimed = (families.benjamini_hochberg(p) < ALPHA) & may
        path = f"{SCREENED} metrics, Benjamini-Hochberg"
        if not real:
            yield setup.rate(path, "false", claimed.any(axis=-1))
            continue
        share = claimed[:, real:].sum(axis=-1) / np.maximum(1, claimed.sum(axis=-1))
        # Of a share between 0 and 1 a coin with that chance has the same mean, and at least its variance.
        yield setup.rate(f"{path}, {real} differ: share", "false", setup.random.random(setup.runs) < share)


def guardrail(setup: Setup) -> Iterator[Rate]:
    """False: kept or breached, of an arm that is worse by exactly the margin. Power: kept, of equal arms."""
    may = setup.may_claim(paired=True)
    logs = setup.blocks()[:, 0]
    kept, breached = setup.guarded(logs[:, 0], logs[:, 1] + BOUND)
    fine, _ = setup.guarded(logs[:, 0], logs[:, 1])
    yield setup.rate("guardrail kept", "false", (kept < ALPHA) & may)
    yield setup.rate("guardrail breached", "false", (breached < ALPHA) & may)
    yield setup.rate("guardrail kept", "power", (fine < ALPHA) & may)


def one_arm(setup: Setup) -> Iterator[Rate]:
    """The descriptive interval of a single arm's mean: no default path compares by it, and this says why."""
    logs = shuffled(setup.random, setup.noise, runs=setup.runs, arms=1, n=setup.n)[:, 0]
    low, high = t_tests.paired_many(np.zeros_like(logs), logs).interval(confidence=CONFIDENCE)
    mean = MEANS[setup.noise]
    yield setup.rate("one arm's mean", "covers", (low <= mean) & (high >= mean), default=False)


PATHS: dict[str, Callable[[Setup], Iterator[Rate]]] = {
    "paired": paired_t,
    "welch": welch,
    "wilcoxon": signed_rank,
    "mann-whitney": rank_sum,
    "equivalence": equivalence,
    "cells": several_cells,
    "arms": several_arms,
    "screening": screening,
    "guardrail": guardrail,
    "one-arm": one_arm,
}
