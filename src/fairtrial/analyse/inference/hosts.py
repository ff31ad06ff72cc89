"""Random effects over hosts: whether the arm's effect differs between hosts, and what it is on hosts like these.

Owns the arithmetic, over any number of replicates at once. It must not know metrics, arms or verdicts.

A host's estimate is the mean log ratio of its blocks. Its variance comes from the spread of blocks within all hosts
together: the two or three blocks of one host do not know their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.inference.t_tests import Values

FEWEST_DIFFERING: Final = 2  # hosts, of which one can differ from the other
_CLOSE: Final = 1e-13  # of the variance: Newton's last step
_MOST_STEPS: Final = 200  # a handful do, and none where all hosts have equally many blocks


@dataclass(frozen=True)
class HostMeans:
    """The arm's mean log ratio on each host.

    Attributes:
        means, variances: shape (…, hosts); variances are squared standard errors. All 0 where no host has two blocks:
            the noise of blocks is then part of what differs between hosts.
        df: of the spread within hosts; infinite where variances are known.
    """

    means: Values
    variances: Values
    df: float = math.inf

    @property
    def hosts(self) -> int:
        """How many."""
        return int(self.means.shape[-1])

    @cached_property
    def tau2(self) -> Values:
        """The variance of the true effects over hosts, shape (…): Paule and Mandel's estimate.

        It is the only one at which the estimates scatter about their mean as much as they should. It needs no normal
        effects, is found by steps that cannot fail, lies inside its own interval, and with hosts of equally many blocks
        it is REML's. Source: Paule and Mandel (1982); `rma(method = "PM")` of R's metafor.
        """
        return self.tau2_at(self.hosts - 1)

    def tau2_interval(self, *, confidence: float) -> tuple[Values, Values]:
        """Low and high of the variance over hosts.

        Source: Viechtbauer (2007), Q profile; by F, because the spread within hosts is an estimate.
        """
        low, high = (self.tau2_at((self.hosts - 1) * self._f((1 + side * confidence) / 2)) for side in (1, -1))
        return low, high

    def tau2_at(self, target: float) -> Values:
        """The variance over hosts at which `q` is `target`; 0 where it is smaller even without any.

        Newton's method from below: `q` falls and is convex, so every step falls short and none too far.
        """
        apart = np.square(self.means - self.means.mean(axis=-1, keepdims=True)).sum(axis=-1)
        tau2 = np.maximum(0.0, apart / target - self.variances.max(axis=-1))
        for _ in range(_MOST_STEPS):
            weights = self._weights(tau2)
            away = np.square(self.means - self._mean(weights)[..., None])
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                excess = (weights * away).sum(axis=-1) - target
                step = excess / (np.square(weights) * away).sum(axis=-1)
            step = np.where(np.isfinite(step) & (step > 0), step, 0.0)
            tau2 = tau2 + step
            if (step <= _CLOSE * (tau2 + self.variances.mean(axis=-1))).all():
                break
        return np.asarray(tau2)

    def q(self, tau2: Values | float = 0.0) -> Values:
        """The scatter of estimates about their weighted mean, in units of their variances: Cochran's Q at 0."""
        weights = self._weights(np.broadcast_to(tau2, self.means.shape[:-1]))
        return np.asarray((weights * np.square(self.means - self._mean(weights)[..., None])).sum(axis=-1))

    @property
    def p(self) -> Values:
        """Of equal effects on all hosts: F of one-way analysis of variance, which knows that the spread is estimated.

        1 where no host has two blocks.
        """
        known = (self.variances > 0).all(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(known, self._beyond(self.hosts - 1, self.q()), 1.0)

    @property
    def i2(self) -> Values:
        """The share of the estimates' scatter that is not noise of their blocks. Source: Higgins, Thompson (2002)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = 1 / self.variances
            total = weights.sum(axis=-1)
            typical = (self.hosts - 1) * total / (np.square(total) - np.square(weights).sum(axis=-1))
            return np.asarray(self.tau2 / (self.tau2 + typical))

    @cached_property
    def mean(self) -> Values:
        """Of hosts like these, shape (…)."""
        return self._mean(self._weights(self.tau2))

    @cached_property
    def error(self) -> Values:
        """Hartung and Knapp's standard error, for t with one degree of freedom less than hosts; NaN without any spread.

        Their factor, `q` at the estimated variance over hosts - 1, is 1 wherever Paule and Mandel's estimate is above
        0. Below it, the ad-hoc correction leaves it at 1, so that estimates that are alike by chance cannot make the
        interval narrower than if hosts were known not to differ. Source: Hartung and Knapp (2001); Knapp and Hartung
        (2003) for the correction, `test = "adhoc"` of metafor.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(1 / self._weights(self.tau2).sum(axis=-1))
        return np.where(error > 0, error, np.nan)

    def reach(self, confidence: float) -> Values:
        """How far the interval of the mean reaches."""
        return np.asarray(special.stdtrit(self.hosts - 1, (1 + confidence) / 2) * self.error)

    def prediction_reach(self, confidence: float, *, noise: Values | float) -> Values:
        """How far from the mean a further host may lie.

        With a `noise` of 0 that is its true effect (metafor's `predict`), which is missed too often where hosts differ
        little: the estimated variance over hosts is then 0 half of the time. With the variance of what a further host
        would measure the interval is exact for that, and covers its true effect as well.

        Source: Higgins, Thompson, Spiegelhalter (2009).
        """
        spread = np.sqrt(self.tau2 + noise + np.square(self.error))
        return np.asarray(special.stdtrit(self.hosts - 1, (1 + confidence) / 2) * spread)

    @property
    def crossing_p(self) -> Values:
        """Of "the arm has one sign on all hosts": the test of Gail and Simon (1985) for a qualitative interaction.

        1 where all estimates have one sign, or no host has two blocks.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.square(self.means) / self.variances
        sides = (np.where(side, squares, 0.0).sum(axis=-1) for side in (self.means > 0, self.means < 0))
        smaller = np.minimum(*sides)
        rest = self.hosts - 1
        count = np.arange(1, rest + 1)
        ways = special.gammaln(rest + 1) - special.gammaln(count + 1) - special.gammaln(rest - count + 1)
        chances = np.exp(ways - rest * math.log(2))
        p = (chances * self._beyond(count, smaller[..., None])).sum(axis=-1)
        return np.where((smaller > 0) & np.isfinite(smaller), p, 1.0)

    def _beyond(self, count: NDArray[np.int64] | int, squares: Values) -> Values:
        """Chance that so many squared deviations sum to more, in units of the spread within hosts."""
        if math.isinf(self.df):
            return np.asarray(special.chdtrc(count, squares))
        return np.asarray(special.fdtrc(count, self.df, squares / count))

    def _f(self, probability: float) -> float:
        """The quantile of F by which the hosts' scatter is judged."""
        between = self.hosts - 1
        if math.isinf(self.df):
            return float(special.chdtri(between, 1 - probability)) / between
        return float(special.fdtri(between, self.df, probability))

    def _weights(self, tau2: Values) -> Values:
        with np.errstate(divide="ignore"):
            return np.asarray(1 / (self.variances + np.asarray(tau2)[..., None]))

    def _mean(self, weights: Values) -> Values:
        """Weighted; of estimates without any variance the plain one."""
        even = np.where(np.isfinite(weights), weights, 1.0)
        return np.asarray((even * self.means).sum(axis=-1) / even.sum(axis=-1))


def host_means(by_host: list[Values]) -> HostMeans:
    """Of the log ratios of each host's blocks, one array per host, none empty."""
    counts = np.array([len(each) for each in by_host], dtype=np.float64)
    df = float(counts.sum() - len(counts))
    within = sum(float(np.square(each - each.mean()).sum()) for each in by_host)
    spread = within / df if df else 0.0
    return HostMeans(means=np.array([each.mean() for each in by_host]), variances=spread / counts, df=df)
