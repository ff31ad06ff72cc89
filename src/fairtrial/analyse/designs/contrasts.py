"""Contrasts of means whose noise may differ: tests of one contrast and of several at once.

Owns the arithmetic. It must not know factors, arms or verdicts. All functions take any number of replicates at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import TTests, Values

LESS: Final = 0.5  # degrees of freedom of a group: with all of them, 4 to 10 values with unequal noise claim too often
QUIETEST: Final = 0.05


@dataclass(frozen=True)
class FTests:
    """Tests that several contrasts are 0; arrays of one shape. NaN where a test cannot be computed.

    Attributes:
        f: the statistic.
        df_between, df_within: its degrees of freedom, which may be fractions.
    """

    f: Values
    df_between: Values
    df_within: Values

    @property
    def p(self) -> Values:
        """Of a statistic at least as large; 1 where a test cannot be computed."""
        p = special.fdtrc(self.df_between, self.df_within, self.f)
        return np.where(np.isnan(p), 1.0, p)


@dataclass(frozen=True)
class GroupMeans:
    """Means of groups of values, and what is known of their noise.

    Attributes:
        means: shape (…, groups).
        covariances: of the means, shape (…, groups, groups); diagonal where groups are independent.
        counts: values of each group, shape (groups,), or (…, groups) where replicates differ.
        size: how large the values are, shape (…), to tell noise from rounding.
        common: variance of a value if noise is the same everywhere; None in step.
        in_step: whether the groups' values belong together one by one, as those of rounds do, and covary.
    """

    means: Values
    covariances: Values
    counts: NDArray[np.int64]
    size: Values
    common: Values | None = None
    in_step: bool = False

    @classmethod
    def independent(cls, groups: Sequence[Values]) -> GroupMeans:
        """Of groups of shapes (…, n), each n ≥ 2, with noise of their own."""
        counts = np.array([each.shape[-1] for each in groups])
        variances = np.stack([each.var(axis=-1, ddof=1) for each in groups], axis=-1)
        return cls.of(
            np.stack([each.mean(axis=-1) for each in groups], axis=-1),
            variances,
            counts,
            size=np.max([np.abs(each).mean(axis=-1) for each in groups], axis=0),
        )

    @classmethod
    def of(cls, means: Values, variances: Values, counts: NDArray[np.int64], *, size: Values) -> GroupMeans:
        """Of independent groups' own means and variances, shapes (…, groups).

        No group's noise is taken for less than a twentieth of that of all together: a few values may agree by chance.
        """
        df = counts - 1
        common = (variances * df).sum(axis=-1, keepdims=True) / df.sum(axis=-1, keepdims=True)
        held = np.maximum(variances, QUIETEST**2 * common) / counts
        return cls(means, held[..., None] * np.eye(means.shape[-1]), counts, size, common=common[..., 0])

    @classmethod
    def together(cls, groups: Values) -> GroupMeans:
        """Of groups whose values were taken in step, shape (…, groups, n), n ≥ 2."""
        n = groups.shape[-1]
        means = groups.mean(axis=-1)
        apart = groups - means[..., None]
        return cls(
            means=means,
            covariances=apart @ np.swapaxes(apart, -1, -2) / (n * (n - 1)),
            counts=np.full(groups.shape[-2], n),
            size=np.abs(groups).mean(axis=-1).max(axis=-1),
            in_step=True,
        )

    def contrast(self, weights: Values) -> TTests:
        """Student's or Welch's t of one weighted sum of the means, shape (groups,).

        Satterthwaite's (1946) degrees of freedom, each group counting for `LESS` fewer than it has.
        """
        error = np.sqrt(np.einsum("g,...gh,h->...", weights, self.covariances, weights))
        test = self.joint(weights[None, :])
        constant = ~np.isfinite(test.f)
        return TTests(self.means @ weights, np.where(constant, np.nan, error), df=test.df_within)

    def joint(self, weights: Values) -> FTests:
        """Johansen's (1980) test that all contrasts, the rows of `weights`, are 0: of one contrast Welch's t, squared.

        Groups may have noise of different size. In step, Hotelling's (1931) test.
        """
        q = len(weights)
        between = weights @ self.covariances @ weights.T
        constant = np.diagonal(between, axis1=-2, axis2=-1).min(axis=-1) <= self._rounding
        inverted = np.linalg.pinv if self.in_step else np.linalg.inv  # few rounds leave a matrix without an inverse
        inverse = inverted(np.where(constant[..., None, None], np.eye(q), between))
        estimates = self.means @ weights.T
        statistic = np.einsum("...c,...cd,...d->...", estimates, inverse, estimates)
        if self.in_step:
            n = self.counts[..., 0]
            scale, within = q * (n - 1) / np.where(n > q, n - q, np.nan), np.asarray(n - q, dtype=np.float64)
        else:
            # Johansen's A holds the trace of (H Q)² for each group: the square of H's element on the diagonal.
            hat = np.diagonal(self.covariances @ (weights.T @ inverse @ weights), axis1=-2, axis2=-1)
            a = (np.square(hat) / (self.counts - 1 - LESS)).sum(axis=-1)
            scale = q + 2 * a - 6 * a / (q + 2)
            within = q * (q + 2) / np.where(constant, np.nan, 3 * a)
        f = np.where(constant, np.nan, statistic / scale)
        return FTests(f, np.full(f.shape, float(q)), df_within=np.broadcast_to(within, f.shape))

    def classical(self, weights: Values) -> FTests:
        """The F test of independent groups with noise of one size: `lm` and `anova` of R, whatever the counts."""
        q, within = len(weights), (self.counts - 1.0).sum(axis=-1)
        common = np.full(self.means.shape[:-1], np.nan) if self.common is None else self.common
        inverse = np.linalg.inv((weights / self.counts[..., None, :]) @ weights.T)
        estimates = self.means @ weights.T
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.einsum("...c,...cd,...d->...", estimates, inverse, estimates) / (q * common)
        f = np.where(common <= self._rounding, np.nan, f)
        return FTests(f, np.full(f.shape, float(q)), df_within=np.broadcast_to(within, f.shape))

    @property
    def _rounding(self) -> Values:
        """A variance that rounding alone explains."""
        return np.square(t_tests.ROUNDING * np.maximum(1.0, self.size))
