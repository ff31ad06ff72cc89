"""How sure curves are: variances of sums over the mean logs of all arms and values, from blocks or from repeats.

Blocks are the unit. Every estimate is linearised, so that it is a sum over means, and each block has a value of that
sum: their spread is right whatever noise does along the curve, and whatever a round has in common. Shapes begin with …;
K is all values of all arms, one arm after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.inference.t_tests import Values


class Errors(Protocol):
    """What the means are uncertain by."""

    def covariance(self, sums: Values) -> Values:
        """Of sums with weights of shape (…, q, K): shape (…, q, q)."""

    def df(self, sums: Values) -> Values:
        """Degrees of freedom of each sum's variance, shape (…, q)."""

    def trace_df(self, sums: Values) -> Values:
        """Degrees of freedom of the sum of all the variances, shape (…,), where they may differ."""


@dataclass(frozen=True)
class BlockErrors:
    """Of blocks: `deviations` from the means, shape (…, blocks, K)."""

    deviations: Values

    @property
    def blocks(self) -> int:
        """Their number."""
        return int(self.deviations.shape[-2])

    def covariance(self, sums: Values) -> Values:
        """Of sums with weights of shape (…, q, K): shape (…, q, q)."""
        each = self.deviations @ np.swapaxes(sums, -1, -2)
        return np.asarray(np.swapaxes(each, -1, -2) @ each / (self.blocks * (self.blocks - 1)))

    def df(self, sums: Values) -> Values:
        """Degrees of freedom of each sum's variance, shape (…, q)."""
        return np.full(sums.shape[:-1], float(self.blocks - 1))

    def trace_df(self, sums: Values) -> Values:
        """Degrees of freedom of the sum of all the variances, by Greenhouse and Geisser (1959)."""
        return (self.blocks - 1) * _spread_over(self.covariance(sums))


@dataclass(frozen=True)
class GroupErrors:
    """Of independent trials: a variance for each mean, known from groups that have degrees of freedom of their own.

    Attributes:
        variances: of the means, shape (K,).
        groups: of each mean, shape (K,), from 0.
        freedom: degrees of freedom by group.
    """

    variances: Values
    groups: NDArray[np.int64]
    freedom: Values

    def covariance(self, sums: Values) -> Values:
        """Of sums with weights of shape (…, q, K): shape (…, q, q)."""
        return np.asarray((sums * self.variances) @ np.swapaxes(sums, -1, -2))

    def df(self, sums: Values) -> Values:
        """Degrees of freedom of each sum's variance, by Satterthwaite (1946)."""
        parts = np.square(sums) * self.variances
        each = np.stack([parts[..., self.groups == group].sum(axis=-1) for group in range(len(self.freedom))], axis=-1)
        below = (np.square(each) / self.freedom).sum(axis=-1)
        return np.asarray(np.square(parts.sum(axis=-1)) / np.where(below > 0, below, np.inf))

    def trace_df(self, sums: Values) -> Values:
        """Degrees of freedom of the sum of all the variances, by Satterthwaite."""
        sizes = np.sqrt(np.square(sums).sum(axis=-2, keepdims=True))
        return np.asarray(self.df(sizes)[..., 0])


def _spread_over(covariance: Values) -> Values:
    """How many equal variances there would be in place of these."""
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    squares = np.square(covariance).sum(axis=(-1, -2))
    return np.asarray(np.square(trace) / np.where(squares > 0, squares, np.inf))


def reach(errors: Errors, sums: Values, *, confidence: float) -> tuple[Values, Values]:
    """Standard errors of sums, shape (…, q), and the quantile of t for an interval."""
    variances = np.diagonal(errors.covariance(sums), axis1=-2, axis2=-1)
    return np.sqrt(variances), special.stdtrit(errors.df(sums), (1 + confidence) / 2)


def misfit(residuals: Values, across: Values, errors: Errors) -> tuple[Values, Values, Values, Values]:
    """Whether means lie off a fitted curve by more than errors explain.

    Args:
        residuals: of the means, all of them, shape (…, K).
        across: directions in which the curve cannot follow, orthonormal, shape (…, r, K).
        errors: of the means.

    Returns:
        F, its two degrees of freedom and p, shape (…,). Variances may differ between directions: both degrees are
        corrected by Box (1954).
    """
    covariance = errors.covariance(across)
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    off = np.square((across @ residuals[..., None])[..., 0]).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        f = off / trace
        first = _spread_over(covariance)
        second = errors.trace_df(across)
        p = special.fdtrc(first, second, f)
    return f, first, second, p
