"""The shift curve: how much every quantile of latency differs between two arms, with a band that holds for all at once.

Counts of all trials of an arm are merged; percentiles are never averaged. The band comes from a bootstrap of blocks:
both arms' trials of a block are drawn together, with all their observations, because what varies between trials (and
within them) varies between blocks too; drawing observations again would count their noise twice. A block's draw moves
every quantile, so the largest standardised deviation over all of them gives the band its width.

Source: Doksum, *Empirical probability plots and statistical inference for nonlinear models in the two-sample case*,
Annals of Statistics 2 (1974), for the shift function; Davison and Hinkley, *Bootstrap Methods and their Application*
(1997), section 3.8, for drawing whole clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.result import Result
from fairtrial.metrics.latency.percentiles import DECIMALS, EXCEEDANCES_WANTED, RESOLUTION

Matrix = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]

REPLICATES: Final = 2_000
# Products of matrices with fewer multiplications than OpenBLAS shares among threads, which wait for each other in a
# loop: on a busy machine that takes several times as long as the product.
SMALL_PRODUCT: Final = 2**18
SMALLEST_N: Final = 5  # blocks: the bootstrap of fewer knows next to nothing of the tails of its own distribution
QUANTILES: Final = (
    *(step / 20 for step in range(1, 20)),
    *(0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999),
)


class ShiftPoint(Result):
    """One quantile.

    Attributes:
        quantile: share of observations at or below.
        baseline_ns, arm_ns: of the merged counts.
        ratio: arm / baseline.
        low, high: of the simultaneous band; None where there is none.
    """

    quantile: float
    baseline_ns: float
    arm_ns: float
    ratio: float
    low: float | None
    high: float | None


class ShiftCurve(Result):
    """One arm against the baseline in one cell, over all transaction types.

    Attributes:
        n: blocks, or trials of the smaller arm where there are none.
        confidence: that the whole band holds.
        critical: how many standard errors wide the band is on either side; None without a band.
        replicates, seed: of the bootstrap.
        points: quantiles with at least `EXCEEDANCES_WANTED` observations beyond them in either arm.
    """

    cell: str
    baseline: str
    arm: str
    n: int
    paired: bool
    confidence: float
    critical: float | None
    replicates: int
    seed: int
    points: tuple[ShiftPoint, ...]

    @property
    def excludes_one(self) -> tuple[float, ...]:
        """Quantiles at which the band leaves out 1."""
        return tuple(
            point.quantile
            for point in self.points
            if point.low is not None and point.high is not None and not point.low <= 1 <= point.high
        )


@dataclass(frozen=True)
class ArmHistograms:
    """Trials of two arms as counts over common classes.

    Attributes:
        highest_ns: upper bound of each class, ascending, shape (classes,).
        baseline, arm: counts, shape (trials, classes); where paired, row i of both is one block.
    """

    highest_ns: Classes
    baseline: Matrix
    arm: Matrix


@dataclass(frozen=True)
class Resampling:
    """How the band is made."""

    paired: bool
    confidence: float
    seed: int
    replicates: int = REPLICATES


def observed(baseline: Sequence[tuple[Classes, Classes]], arm: Sequence[tuple[Classes, Classes]]) -> ArmHistograms:
    """Trials, each as its classes' upper bounds and counts, over the classes that any of them has."""
    highest = np.unique(np.concatenate([bounds for bounds, _ in (*baseline, *arm)]))

    def counted(trials: Sequence[tuple[Classes, Classes]]) -> Matrix:
        counts = np.zeros((len(trials), len(highest)))
        for row, (bounds, numbers) in zip(counts, trials, strict=True):
            row[np.searchsorted(highest, bounds)] = numbers
        return counts

    return ArmHistograms(highest_ns=highest, baseline=counted(baseline), arm=counted(arm))


def quantiles_of(of: ArmHistograms) -> Matrix:
    """Those of `QUANTILES` with enough observations beyond in both arms, shape (quantiles,)."""
    fewest = min(float(of.baseline.sum()), float(of.arm.sum()))
    return np.array([each for each in QUANTILES if round(fewest * (1 - each), DECIMALS) >= EXCEEDANCES_WANTED])


def curve(of: ArmHistograms, *, cell: str, arms: tuple[str, str], how: Resampling) -> ShiftCurve:
    """The shift curve of `arms`, baseline first."""
    grid = quantiles_of(of)
    baseline, arm = (
        _logs(of.highest_ns, grid, np.cumsum(counts.sum(axis=0, keepdims=True), axis=1))[0]
        for counts in (of.baseline, of.arm)
    )
    n = min(len(of.baseline), len(of.arm))
    low, high, critical = _band(of, grid, estimate=arm - baseline, how=how) if n >= SMALLEST_N else (None, None, None)
    return ShiftCurve(
        cell=cell,
        baseline=arms[0],
        arm=arms[1],
        n=n,
        paired=how.paired,
        confidence=how.confidence,
        critical=critical,
        replicates=how.replicates if critical is not None else 0,
        seed=how.seed,
        points=tuple(
            ShiftPoint(
                quantile=float(quantile),
                baseline_ns=math.exp(baseline[at]),
                arm_ns=math.exp(arm[at]),
                ratio=math.exp(arm[at] - baseline[at]),
                low=None if low is None else math.exp(low[at]),
                high=None if high is None else math.exp(high[at]),
            )
            for at, quantile in enumerate(grid.tolist())
        ),
    )


def _band(
    of: ArmHistograms, grid: Matrix, *, estimate: Matrix, how: Resampling
) -> tuple[Matrix | None, Matrix | None, float | None]:
    """On logarithms: estimate ± critical · standard error, and a class's width on either side.

    The standard error is that of the replicates times √(n / (n - 1)), because drawing n of n blocks loses that much.
    The critical value is a quantile of the replicates' largest |z| over the curve, and then Student's t of the same
    tail, because every standard error is itself known from n blocks only (benches/within.py shows the coverage).
    """
    if not len(grid):
        return None, None, None
    deviations = _replicates(of, grid, how) - estimate
    n = min(len(of.baseline), len(of.arm))
    error = np.sqrt((deviations**2).mean(axis=0))
    moving = error > 0  # a quantile in the same class in every replicate deviates by nothing
    largest = np.abs(deviations[:, moving] / error[moving]).max(axis=1) if moving.any() else np.zeros(1)
    tail = float(special.ndtr(-np.quantile(largest, how.confidence)))
    critical = -t_tests.quantile(tail, n - 1)  # 1 - tail would round to 1 where quantiles hardly ever move
    reach = critical * error * math.sqrt(n / (n - 1)) - math.log1p(-RESOLUTION)
    if not np.isfinite(reach).all() or np.abs(estimate).max() + reach.max() > t_tests.LARGEST_LOGARITHM:
        return None, None, None  # a band that wide says nothing, and no number holds it
    return estimate - reach, estimate + reach, critical


def _replicates(of: ArmHistograms, grid: Matrix, how: Resampling) -> Matrix:
    """Log ratios of quantiles, one row per replicate, shape (replicates, quantiles)."""
    random = np.random.default_rng(how.seed)
    first = _drawn(random, len(of.baseline), how.replicates)
    second = first if how.paired else _drawn(random, len(of.arm), how.replicates)
    baseline, arm = np.cumsum(of.baseline, axis=1), np.cumsum(of.arm, axis=1)
    at_a_time = max(1, SMALL_PRODUCT // max(baseline.size, arm.size))
    return np.concatenate(
        [
            _logs(of.highest_ns, grid, second[at : at + at_a_time] @ arm)
            - _logs(of.highest_ns, grid, first[at : at + at_a_time] @ baseline)
            for at in range(0, how.replicates, at_a_time)
        ]
    )


def _drawn(random: np.random.Generator, n: int, replicates: int) -> Matrix:
    """How often each of n was drawn in n draws, shape (replicates, n)."""
    chosen = random.integers(0, n, size=(replicates, n))
    return np.asarray((chosen[:, :, np.newaxis] == np.arange(n)).sum(axis=1), dtype=np.float64)


def _logs(highest_ns: Classes, grid: Matrix, cumulated: Matrix) -> Matrix:
    """Logarithms of quantiles of cumulated counts, one row per distribution, shape (rows, quantiles).

    A quantile is, as in `metrics.latency`, the upper bound of the class of the observation whose rank is its share of
    the count, rounded half up.
    """
    ranks = np.maximum(1.0, np.floor(cumulated[:, -1:] * grid + 0.5))
    at = np.empty(ranks.shape, dtype=np.int64)
    for row, (below, rank) in enumerate(zip(cumulated, ranks, strict=True)):
        at[row] = np.searchsorted(below, rank)
    return np.asarray(np.log(np.maximum(highest_ns, 1).astype(np.float64))[at], dtype=np.float64)
