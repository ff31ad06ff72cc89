"""Exact rank tests and Hodges-Lehmann estimates: the second opinion that rests on no shape of the noise.

Owns Wilcoxon's signed rank test (blocks) and the Mann-Whitney test (no blocks), their exact distributions and the
intervals that invert them. It must not know metrics, arms or verdicts. R's `wilcox.test(exact = TRUE, conf.int = TRUE)`
gives the same figures where no values tie; where they do, R has no exact p and this one is exact all the same, given
the ties that were seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.inference.t_tests import Values

EXACT_N: Final = 50  # R's limit: beyond it the normal approximation agrees to three digits
EXACT_TIED_TOTAL: Final = 40  # ties need a distribution of their own each time: above it that takes over 10 ms
LARGEST_N: Final = 1000  # pairs of values grow with the square; so many blocks need no second opinion on normality


@dataclass(frozen=True)
class RankTest:
    """One rank test of a shift against 0.

    Attributes:
        estimate: the Hodges-Lehmann estimate, on the scale of the values given.
        low, high: the values of the shift that the test would not reject; None where n is too small to reject any.
        p: two-sided.
        exact: whether p and interval are from the exact distribution, not from the normal approximation.
        tied: values that equal another one (in absolute size if signed) or are zero where zero has no sign.
        smallest_p: the smallest p that so many values could give.
    """

    estimate: float
    low: float | None
    high: float | None
    p: float
    exact: bool
    tied: int
    smallest_p: float


def signed_rank(differences: Values, *, confidence: float) -> RankTest | None:
    """Wilcoxon's signed rank test of differences, shape (n,). None without values or with more than `LARGEST_N`.

    Zeros are left out of the test, as Wilcoxon did, and stay in the estimate. With ties the interval is that of
    continuous values with its ends included, which covers at least as often (Noether 1967).

    Source: Wilcoxon (1945), Hodges and Lehmann (1963); `wilcox.test(x, exact = TRUE, conf.int = TRUE)` in R.
    """
    n = len(differences)
    if not 0 < n <= LARGEST_N:
        return None
    law = _signed_rank_law(differences)
    tied = _tied(np.abs(differences[differences != 0])) + int((differences == 0).sum())
    reach = _signed_rank_reach(n, confidence=confidence)
    return _tested(law, walsh_averages(differences), reach=reach, tied=tied, smallest_p=smallest_signed_rank_p(n))


def rank_sum(first: Values, second: Values, *, confidence: float) -> RankTest | None:
    """The Mann-Whitney test of `second` against `first`. None without values or with more pairs than `LARGEST_N` ².

    Source: Mann and Whitney (1947), Hodges and Lehmann (1963); `wilcox.test(second, first, exact = TRUE)` in R.
    """
    n, m = len(first), len(second)
    if not 0 < n * m <= LARGEST_N**2:
        return None
    both = np.concatenate([second, first])
    reach, least = _rank_sum_reach(n, m, confidence=confidence), smallest_rank_sum_p(n, m)
    return _tested(_rank_sum_law(both, n, m), shifts(first, second), reach=reach, tied=_tied(both), smallest_p=least)


@dataclass(frozen=True)
class _Law:
    """A statistic and its distribution: exact `chances` over 0, 1, …, else normal, `away` from its mean."""

    statistic: float
    chances: Values | None
    away: float
    spread: float

    @property
    def two_sided(self) -> float:
        """With the correction for continuity that R makes, where it is not exact."""
        if self.chances is not None:
            return float(two_sided(self.chances, np.asarray(self.statistic)))
        if self.spread == 0:
            return 1.0
        return min(1.0, 2 * float(special.ndtr(-max(0.0, abs(self.away) - 0.5) / self.spread)))

    @property
    def above(self) -> float:
        if self.chances is not None:
            return float(_above(self.chances, np.asarray(self.statistic)))
        return float(special.ndtr(-(self.away - 0.5) / self.spread)) if self.spread > 0 else 1.0


def _signed_rank_law(differences: Values) -> _Law:
    signed = differences[differences != 0]
    ranks = ranked(np.abs(signed))
    statistic = float(ranks[signed > 0].sum())
    away, spread = statistic - float(ranks.sum()) / 2, math.sqrt(float((ranks**2).sum())) / 2
    if len(differences) > EXACT_N:
        return _Law(statistic, None, away=away, spread=spread)
    if not _tied(np.abs(signed)):
        return _Law(statistic, signed_rank_chances(len(signed)), away=away, spread=spread)
    return _Law(2 * statistic, _halves(_doubled(ranks)), away=away, spread=spread)


def _rank_sum_law(both: Values, n: int, m: int) -> _Law:
    """Of `m` values that come first among `both` against the other `n`."""
    ranks = ranked(both)
    total = float(ranks[:m].sum())
    statistic = total - m * (m + 1) / 2
    spread = math.sqrt(n * m / (n + m) * float(np.var(ranks, ddof=1))) if n + m > 1 else 0.0
    away = statistic - n * m / 2
    tied = _tied(both)
    if max(n, m) > EXACT_N or (tied and n + m > EXACT_TIED_TOTAL):
        return _Law(statistic, None, away=away, spread=spread)
    if not tied:
        return _Law(statistic, rank_sum_chances(n, m), away=away, spread=spread)
    return _Law(2 * total, _choices(_doubled(ranks), m), away=away, spread=spread)


def _tested(law: _Law, shifts_in_order: Values, *, reach: int, tied: int, smallest_p: float) -> RankTest:
    low, high = bounds(shifts_in_order, reach)
    return RankTest(
        estimate=float(np.median(shifts_in_order)),
        low=low,
        high=high,
        p=law.two_sided,
        exact=law.chances is not None,
        tied=tied,
        smallest_p=smallest_p,
    )


def settled(values: Values, *, rounding: float) -> Values:
    """The same, shape (n,), but equal in size where they differ by no more than rounding, and 0 where they are no more.

    Ranks would else say how a unit is rounded: 1 → 2 and 2 → 4 are one ratio, and their logarithms may differ.
    """
    sizes = np.abs(values)
    order = np.argsort(sizes)
    ordered = sizes[order]
    new = np.diff(ordered, prepend=0.0) > rounding
    levels = np.empty_like(sizes)
    levels[order] = np.maximum.accumulate(np.where(new, ordered, 0.0))
    return np.copysign(levels, values)


def smallest_signed_rank_p(n: int) -> float:
    """All signs alike: one of 2ⁿ ways, on either side."""
    return min(1.0, 2.0 ** (1 - n))  # 2ⁿ itself is no number from 1,024 blocks on


def smallest_rank_sum_p(n: int, m: int) -> float:
    """All of one sample above all of the other: one of C(n + m, n) ways, on either side."""
    return min(1.0, 2 / math.comb(n + m, n))


def could_claim(smallest_p: float, *, alpha: float) -> bool:
    """Whether so many trials may claim anything: from 6 blocks or 4 trials per arm on at a level of 0.05.

    Noise with two modes gives four blocks of one sign and one size in 1 of 128 comparisons, and t tests take them for
    a certain difference, far below the level of a family of six (docs/explanation/calibration.md).
    """
    return smallest_p < alpha


def signed_rank_above(differences: Values) -> Values:
    """Chance of ranks that lie at least as far above 0, of many samples, shape (…, n) → (…).

    Exact given the ties up to `EXACT_N`; zeros are left out.
    """
    rows = differences.reshape(-1, differences.shape[-1])
    sizes = np.sort(np.abs(rows), axis=-1)
    untied = (np.diff(sizes, axis=-1) > 0).all(axis=-1) & (sizes[:, 0] > 0) & (rows.shape[-1] <= EXACT_N)
    p = np.ones(len(rows))
    if untied.any():
        places = np.argsort(np.argsort(np.abs(rows[untied]), axis=-1), axis=-1) + 1
        statistic = np.where(rows[untied] > 0, places, 0).sum(axis=-1)
        p[untied] = _above(signed_rank_chances(rows.shape[-1]), statistic)
    for row in np.flatnonzero(~untied).tolist():
        p[row] = _signed_rank_law(rows[row]).above
    return p.reshape(differences.shape[:-1])


def rank_sum_above(first: Values, second: Values) -> Values:
    """Chance of ranks of `second` that lie at least as far above `first`, shapes (…, n) and (…, m) → (…).

    Exact given the ties as far as `rank_sum` is.
    """
    n, m = first.shape[-1], second.shape[-1]
    both = np.concatenate([second, first], axis=-1).reshape(-1, n + m)
    exact = max(n, m) <= EXACT_N
    untied = (np.diff(np.sort(both, axis=-1), axis=-1) > 0).all(axis=-1) & exact
    p = np.ones(len(both))
    if untied.any():
        places = np.argsort(np.argsort(both[untied], axis=-1), axis=-1) + 1
        statistic = places[:, :m].sum(axis=-1) - m * (m + 1) // 2
        p[untied] = _above(rank_sum_chances(n, m), statistic)
    for row in np.flatnonzero(~untied).tolist():
        p[row] = _rank_sum_law(both[row], n, m).above
    return p.reshape(first.shape[:-1])


def _above(chances: Values, statistic: NDArray[np.generic]) -> Values:
    """The upper tail of a distribution over 0, 1, …, the statistic included."""
    tails = np.minimum(1.0, np.cumsum(chances[::-1])[::-1])
    p: Values = tails[np.rint(statistic).astype(int)]
    return p


def walsh_averages(differences: Values) -> Values:
    """Means of every value with itself and every other, in order, shape (…, n) → (…, n (n + 1) / 2)."""
    left, right = np.triu_indices(differences.shape[-1])
    return np.sort((differences[..., left] + differences[..., right]) / 2, axis=-1)


def shifts(first: Values, second: Values) -> Values:
    """Every value of `second` less every value of `first`, in order, shapes (…, n), (…, m) → (…, n m)."""
    apart = second[..., :, None] - first[..., None, :]
    return np.sort(apart.reshape(*apart.shape[:-2], -1), axis=-1)


def bounds(ordered: Values, reach: int) -> tuple[float, float] | tuple[None, None]:
    """The `reach`-th value from each end; None where not even the outermost would be left out by the test."""
    return (float(ordered[reach - 1]), float(ordered[-reach])) if reach else (None, None)


def interval_many(ordered: Values, reach: int) -> tuple[Values, Values]:
    """`bounds` of many at once, shape (…, k) → (…); infinite where there is none."""
    if not reach:
        nothing = np.full(ordered.shape[:-1], math.inf)
        return -nothing, nothing
    return ordered[..., reach - 1], ordered[..., -reach]


@lru_cache(maxsize=256)
def signed_rank_chances(n: int) -> Values:
    """Probabilities of the sum of positive ranks, 0 to n (n + 1) / 2, if every sign is a fair coin."""
    return _halves(np.arange(1, n + 1))


@lru_cache(maxsize=256)
def rank_sum_chances(n: int, m: int) -> Values:
    """Probabilities of the Mann-Whitney statistic, 0 to n m, if every order of n + m values is alike."""
    return _choices(np.arange(1, n + m + 1), m)[m * (m + 1) // 2 : n * m + m * (m + 1) // 2 + 1]


@lru_cache(maxsize=1024)
def signed_rank_reach(n: int, *, confidence: float) -> int:
    """Which Walsh average from each end bounds the exact interval; 0 where no test of n values rejects anything."""
    return _reach(signed_rank_chances(n), confidence=confidence)


@lru_cache(maxsize=1024)
def rank_sum_reach(n: int, m: int, *, confidence: float) -> int:
    """Which shift from each end bounds the exact interval; 0 where no test of n and m values rejects anything."""
    return _reach(rank_sum_chances(n, m), confidence=confidence)


def two_sided(chances: Values, statistic: NDArray[np.generic]) -> Values:
    """Twice the smaller tail of a distribution over 0, 1, …, at most 1."""
    at = np.rint(statistic).astype(int)
    below = np.cumsum(chances)
    above = np.cumsum(chances[::-1])[::-1]
    p: Values = np.minimum(1.0, 2 * np.minimum(below[at], above[at]))
    return p


def _signed_rank_reach(n: int, *, confidence: float) -> int:
    if n <= EXACT_N:
        return signed_rank_reach(n, confidence=confidence)
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return _normal_reach(n * (n + 1) / 4, spread=spread, confidence=confidence)


def _rank_sum_reach(n: int, m: int, *, confidence: float) -> int:
    if max(n, m) <= EXACT_N:
        return rank_sum_reach(n, m, confidence=confidence)
    return _normal_reach(n * m / 2, spread=math.sqrt(n * m * (n + m + 1) / 12), confidence=confidence)


def _reach(chances: Values, *, confidence: float) -> int:
    """As many of the smallest statistics as stay below the level: those a two-sided test rejects on one side."""
    return int((2 * np.cumsum(chances) < 1 - confidence).sum())


def _normal_reach(centre: float, *, spread: float, confidence: float) -> int:
    return max(0, math.floor(centre - float(special.ndtri((1 + confidence) / 2)) * spread + 0.5))


def _halves(ranks: NDArray[np.int64]) -> Values:
    """Probabilities of the sum of ranks, each counted or not by a fair coin."""
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks.tolist():
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: len(chances) - rank]
        chances = (chances + moved) / 2
    return chances


def _choices(ranks: NDArray[np.int64], count: int) -> Values:
    """Probabilities of the sum of `count` of the ranks, every choice alike."""
    size = int(np.sort(ranks)[len(ranks) - count :].sum()) + 1
    ways = np.zeros((count + 1, size))
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : size - rank]
    chosen: Values = ways[count] / math.comb(len(ranks), count)
    return chosen


def _doubled(ranks: Values) -> NDArray[np.int64]:
    """Ranks of ties are halves: twice them are whole."""
    return np.rint(2 * ranks).astype(np.int64)


def ranked(values: Values) -> Values:
    """Ranks from 1, ties at their mean, as `scipy.stats.rankdata`; a library's cost a claim half its time."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Values = np.cumsum(counts) - (counts - 1) / 2
    return ranks[places]


def _tied(values: Values) -> int:
    """How many values equal another."""
    _, counts = np.unique(values, return_counts=True)
    return int(counts[counts > 1].sum())
