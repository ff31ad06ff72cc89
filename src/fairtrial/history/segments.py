"""Levels that hold: where a series changed, at an error rate that its own points set.

The statistic is a likelihood ratio: how much better an autoregression of order 1 fits with one step, or with one level
that came and went, than without; or with up to `CHANGES` of them, the best after each other, at a price for each. Its
null distribution comes from the series itself: the fit without a change leaves residuals, and each permutation of them
makes a series without a change. A series that jumps between two levels, or stalls now and then, is compared with what
such jumps and stalls look like in any order. Where a change is found, the pieces are searched in turn, each at its
share of the level. The autoregression is fitted anew to every candidate, so that a step does not pass for neighbours
that are alike. Sources: Davison & Hinkley (1997), section 8.2 (residuals resampled); Matteson & James (2014) (change
points by permutation, piece by piece).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference.t_tests import Values
from fairtrial.history.noise import MAD_OF_NORMAL, WINSOR_SDS

Indices = NDArray[np.intp]

SHORTEST: Final = 3  # points in a segment: two spikes side by side are still no level
FEWEST_EQUAL: Final = 5  # points of one value from which a series is known for one without noise
FEWEST: Final = 8  # points that can be split: two segments of three, and something left to know the noise from
LONGEST_EXCURSION: Final = 20  # points of a passing level that is looked for as a whole; longer ones are two steps
EXCURSION_PRICE: Final = 3.0  # gain that a passing level must have beyond a step: there are many more places for it
CHANGES: Final = 3  # in one fit: one change at a time finds none in a series that goes up and down by turns
FURTHER_PRICE: Final = 10.0  # gain that each change after the first must have: about what the best of chance has
PERMUTATIONS: Final = 999
FIRST: Final = 99  # permutations after which a hopeless series is let go (Besag & Clifford 1991)
HOPELESS: Final = 0.2  # share of them with a larger gain; with a p of 0.05 it happens once in a million
TAIL: Final = 0.1  # beyond this quantile gains are taken as exponential, which likelihood ratios nearly are
FEWEST_BEYOND: Final = 10  # permutations with a larger gain from which their share is p; below, the tail is
SMALLEST_P: Final = 1e-4  # that is reported: further out the exponential is a guess, which decides among many series
LARGEST_FITTED: Final = 0.5  # autocorrelation: beyond, tens of points cannot tell neighbours that are alike from a step
LEAST: Final = -0.3  # autocorrelation: a series that alternates is taken for little more regular than chance
LARGEST_PERMUTED: Final = 0.6  # of the series without a change: a step looks like more, and must not hide itself
PERFECT: Final = 1e-9  # of the squares without a change: a fit that leaves less is one of constants
SEED: Final = 20_261_121  # of the permutations: any number does, one number makes results repeatable


def segment(values: Values, *, alpha: float) -> tuple[float, list[int]]:
    """Returns p of the hypothesis that the level never changed, and where every later segment begins.

    p may be below `SMALLEST_P`: a floor would keep every change from standing out of hundreds of series.
    """
    p, starts = _test(values)
    if p > alpha:
        return p, []
    n = len(values)
    pieces = pairwise([0, *starts, n])
    inner = [a + start for a, b in pieces for start in segment(values[a:b], alpha=alpha * (b - a) / n)[1]]
    return p, sorted([*starts, *inner])


def constant(values: Values) -> tuple[int, int] | None:
    """First point, and the point after the last, of the constant that the newest points are judged by.

    It is the newest run of two equal points or more with at least one and fewer than `SHORTEST` points after it, or the
    whole series. None where another value came and went before it, or no level held for `FEWEST_EQUAL` points: then
    the series has noise.

    It finds a deterministic metric's loss at its first run, and holds no error rate: of two values in random order, one
    with a share of 0.3, the newest is off its constant in 2.1 % of series of 12 points and in 0.3 % of 20 (of 0.5: 1.2
    and 0.1 %).
    """
    stretches = list(pairwise([0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]))
    levels = stretches[:-1] or stretches
    while levels and levels[-1][1] - levels[-1][0] == 1:
        levels.pop()
    lengths = [end - start for start, end in levels]
    if max(lengths, default=0) < FEWEST_EQUAL or min(lengths[:-1], default=SHORTEST) < SHORTEST:
        return None
    return levels[-1] if len(values) - levels[-1][1] < SHORTEST else None


def gains(series: Values) -> tuple[Values, list[int]]:
    """The largest gain of each row in logarithms of likelihood ratios, doubled, and where the first row changes for it.

    Shape (series, points) → (series,).
    """
    lagged = _LagRegression(series[:, 1:], series[:, :-1])
    cost = lagged.cost(lagged.whole)
    best, paid, starts = np.full(len(series), -math.inf), np.zeros(len(series)), list[int]()
    for _ in range(CHANGES):
        left, begins, ends = lagged.best_change()
        best = np.maximum(best, cost - left - paid)
        starts = starts or [int(places[0]) for places in (begins, ends) if places[0] < series.shape[1]]
        paid += FURTHER_PRICE + EXCURSION_PRICE * (ends < series.shape[1])
        lagged = lagged.without(begins, ends)
    return best, starts


class _LagRegression:
    """Every row regressed on itself one point before, with and without a step; sums make each candidate cheap.

    Attributes:
        whole: sum of squares that the regression without a step leaves; shape (series,).
    """

    def __init__(self, now: Values, before: Values, *, floor: Values | None = None) -> None:
        self._parts = now, before = (now - now.mean(axis=1, keepdims=True), before - before.mean(axis=1, keepdims=True))
        self._sums = [np.pad(np.cumsum(part, axis=1), ((0, 0), (1, 0))) for part in self._parts]
        self._products = [(a * b).sum(axis=1, keepdims=True) for a, b in ((now, now), (before, before), (now, before))]
        self.whole = self._left(*self._products)[:, 0]
        self._floor = PERFECT * self.whole if floor is None else floor
        self._points = now.shape[1]

    def cost(self, squares: Values) -> Values:
        """Twice the negative logarithm of the likelihood, but for a constant."""
        floor = np.maximum(self._floor, np.finfo(float).tiny)  # an exact fit leaves nothing
        return np.asarray(self._points * np.log(np.maximum(squares, floor)), dtype=np.float64)

    def best_change(self) -> tuple[Values, Indices, Indices]:
        """Cost with the best other level of each row, price included, its first point and the point after it."""
        rows = np.arange(len(self.whole))
        best, first, after = np.full(len(rows), math.inf), np.zeros_like(rows), np.zeros_like(rows)
        for begins, ends, price in _candidates(self._points + 1):
            squares = self._squares(begins, ends)
            at = squares.argmin(axis=1)
            cost = self.cost(squares[rows, at]) + price
            first, after = (np.where(cost < best, new[at], old) for new, old in ((begins, first), (ends, after)))
            best = np.minimum(best, cost)
        return best, first, after

    def without(self, begins: Indices, ends: Indices) -> _LagRegression:
        """What remains when each row's other level is taken out."""
        places = np.arange(self._points)
        step = ((places >= begins[:, np.newaxis] - 1) & (places < ends[:, np.newaxis] - 1)).astype(np.float64)
        step -= step.mean(axis=1, keepdims=True)
        step /= np.sqrt((step**2).sum(axis=1, keepdims=True))
        now, before = (part - (part * step).sum(axis=1, keepdims=True) * step for part in self._parts)
        return _LagRegression(now, before, floor=self._floor)

    def _squares(self, begins: Indices, ends: Indices) -> Values:
        """Sum of squares left by another level in points `begins` to `ends`; shape (series, candidates)."""
        now, before = (sums[:, ends - 1] - sums[:, begins - 1] for sums in self._sums)
        inside = ends - begins
        share = self._points / (inside * (self._points - inside))
        explained = (now * now * share, before * before * share, now * before * share)
        return self._left(*(whole - part for whole, part in zip(self._products, explained, strict=True)))

    @staticmethod
    def _left(now: Values, before: Values, both: Values) -> Values:
        slope = np.clip(both / np.maximum(before, np.finfo(float).tiny), LEAST, LARGEST_FITTED)
        return now - 2 * slope * both + slope**2 * before


def _candidates(n: int) -> Iterator[tuple[Indices, Indices, float]]:
    """First points of another level, the points after it, and what it must gain beyond others."""
    steps = np.arange(SHORTEST, n - SHORTEST + 1)
    yield steps, np.full_like(steps, n), 0.0
    for length in range(SHORTEST, min(LONGEST_EXCURSION, n - 2 * SHORTEST) + 1):
        begins = np.arange(SHORTEST, n - SHORTEST - length + 1)
        yield begins, begins + length, EXCURSION_PRICE


def _test(values: Values) -> tuple[float, list[int]]:
    """Returns p of one piece and its best change."""
    ends = values[: 1 - SHORTEST], values[SHORTEST - 1 :]  # what differs at one end only is too short for a level
    if len(values) < FEWEST or any((part == part[0]).all() for part in ends):
        return 1.0, []
    pulled = _pulled_in(values)
    reordered = _reordered(pulled)
    statistics, starts = gains(np.vstack([pulled, reordered[:FIRST]]))
    statistic, permuted = float(statistics[0]), statistics[1:]
    if (permuted >= statistic).mean() <= HOPELESS:
        permuted = np.concatenate([permuted, gains(reordered[FIRST:])[0]])
    beyond = 1 + int((permuted >= statistic).sum())
    if beyond >= FEWEST_BEYOND:
        return beyond / (1 + len(permuted)), starts
    knee = float(np.quantile(permuted, 1 - TAIL))
    excess = float((permuted[permuted >= knee] - knee).mean())
    return TAIL * math.exp(-(statistic - knee) / excess) if excess else SMALLEST_P, starts


def _pulled_in(values: Values) -> Values:
    """Distances from the median, the largest pulled in: a spike has no more weight than a doubtful point."""
    away = values - np.median(values)
    limit = WINSOR_SDS * float(np.median(np.abs(away))) / MAD_OF_NORMAL
    pulled = np.clip(away, -limit, limit) if limit else away
    return np.asarray(pulled - pulled.mean(), dtype=np.float64)


def _reordered(values: Values) -> Values:
    """Series of the same residuals in random orders, with the same autocorrelation: shape (permutations, points)."""
    slope = _autocorrelation(values)
    first = math.sqrt(1 - slope**2)  # standard deviation of a residual in that of a point, which the first one is
    residuals = values - slope * np.concatenate([[0.0], values[:-1]])
    residuals[0] *= first
    generator = np.random.default_rng([SEED, len(values)])
    series = generator.permuted(np.tile(residuals - residuals.mean(), (PERMUTATIONS, 1)), axis=1)
    series[:, 0] /= first
    for index in range(1, len(values)):
        series[:, index] += slope * series[:, index - 1]
    return series


def _autocorrelation(values: Values) -> float:
    """Lag 1, without the bias of few points (Kendall 1954), in [`LEAST`, `LARGEST_PERMUTED`]."""
    now, before = (part - part.mean() for part in (values[1:], values[:-1]))
    raw = float(now @ before) / max(float(before @ before), np.finfo(float).tiny)
    return min(max(raw + (1 + 3 * raw) / len(values), LEAST), LARGEST_PERMUTED)
