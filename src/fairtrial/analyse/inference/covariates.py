"""Differences of blocks, adjusted for what was measured before: their mean where no covariate differs.

Owns the arithmetic: least squares of the differences on the covariates' own differences within the block. It must not
know metrics, arms or verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import TTests, Values

FEWEST_DF: Final = 3  # of the residual spread; with fewer, an interval gets wider than any covariate makes it narrower
DISTINCT: Final = 1e-6  # share of a covariate's spread that those before it must leave


@dataclass(frozen=True)
class Regressions:
    """Many regressions at once.

    Attributes:
        tests: of the mean difference where no covariate differs, n - 1 - k degrees of freedom.
        slopes: per unit of each covariate, shape (…, k).
        remaining: the differences without what covariates explain, shape (…, n); their mean is the tests' estimate.
    """

    tests: TTests
    slopes: Values
    remaining: Values


def enough(n: int, covariates: int) -> bool:
    """Whether so many blocks can carry so many covariates."""
    return n - 1 - covariates >= FEWEST_DF


def regressed(differences: Values, covariates: Values) -> Regressions:
    """Least squares along the last axis of differences, shape (…, n), on covariates, shape (…, k, n), n > k + 1.

    Covariates are distinct and vary (`distinct`). The interval is exact for normal noise whatever the covariates are,
    because it holds given them.

    Source: `lm(differences ~ covariates)` in R, its intercept; in experiments with a period before them known as CUPED
    (Deng, Xu, Kohavi and Walker 2013), with the slope's uncertainty counted.
    """
    n, k = differences.shape[-1], covariates.shape[-2]
    (scaled,), exponent = t_tests.scaled(differences)
    middle = covariates.mean(axis=-1, keepdims=True)
    size = np.std(covariates, axis=-1, keepdims=True)
    centred = (covariates - middle) / size
    products = centred @ np.swapaxes(centred, -1, -2)
    slopes = np.linalg.solve(products, centred @ scaled[..., None]) / size
    remaining = scaled - (slopes * covariates).sum(axis=-2)
    estimate = remaining.mean(axis=-1)
    df = n - 1 - k
    spread = np.square(remaining - estimate[..., None]).sum(axis=-1) / df
    away = middle / size
    leverage = (away * np.linalg.solve(products, away)).sum(axis=(-1, -2))
    error = np.sqrt(spread * (1 / n + leverage))
    constant = error <= t_tests.ROUNDING * np.abs(scaled).mean(axis=-1)
    tests = TTests(estimate=estimate, standard_error=np.where(constant, np.nan, error), df=np.full_like(error, df))
    return Regressions(
        tests=tests.times(exponent),
        slopes=np.ldexp(slopes[..., 0], exponent[..., None]),
        remaining=np.ldexp(remaining, exponent[..., None]),
    )


def distinct(covariates: Values) -> NDArray[np.bool_]:
    """Which of some covariates, shape (k, n), vary and are no combination of those before them: shape (k,)."""
    centred = covariates - covariates.mean(axis=-1, keepdims=True)
    kept: list[Values] = []
    found = np.zeros(len(covariates), dtype=bool)
    for index, values in enumerate(centred):
        size = float(np.linalg.norm(values))
        rest = values - sum((float(values @ each) * each for each in kept), np.zeros_like(values))
        left = float(np.linalg.norm(rest))
        rounding = t_tests.ROUNDING * float(np.abs(covariates[index]).max(initial=0.0)) * len(values)
        if size > rounding and left > DISTINCT * size:
            kept.append(rest / left)
            found[index] = True
    return found
