"""Permutation tests for values that no t test is made for: some are exactly zero, or every arm's are constant.

Zeros (seconds of stalls, lost operations, shares of bad trials) have no logarithm, and a heap of them is nowhere near
normal; what a deterministic count shows has no spread to hold a difference against. Exchanging signs or arms asks
nothing of the shape.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fairtrial.analyse import exchanging
from fairtrial.analyse.t_tests import ROUNDING, SMALLEST_N, Values

HEAP: Final = 2  # equal zeros: continuous values have not one
RESAMPLES: Final = 9_999  # all orders where there are fewer: up to 13 pairs, or 7 + 7 values


def heaped(first: Values, second: Values) -> bool:
    """Whether zeros are no chance: `HEAP` of them, or one where nothing is negative, in both arms together."""
    both = np.concatenate([first, second])
    zeros = int((both == 0).sum())
    return zeros >= HEAP or (zeros > 0 and not (both < 0).any())


def paired_p(first: Values, second: Values, *, seed: int) -> float:
    """Two-sided p of the mean difference under exchanges within pairs; 1 where there is nothing to exchange.

    What differs by rounding only is equal. Exact for few pairs and where all differ alike; else of `RESAMPLES` random
    exchanges and the one observed.
    """
    rounding = _rounding(first, second)
    differences = np.where(np.abs(second - first) <= rounding, 0.0, second - first)
    if len(differences) < SMALLEST_N or not differences.any():
        return 1.0
    if np.ptp(differences) <= rounding:
        return float(exchanging.exchange_p(differences))
    return _p((differences,), kind="samples", seed=seed)


def unpaired_p(first: Values, second: Values, *, seed: int) -> float:
    """Two-sided p of the difference of means under exchanges between arms; 1 where there is nothing to exchange."""
    alike = np.ptp(np.concatenate([first, second])) <= _rounding(first, second)
    if min(len(first), len(second)) < SMALLEST_N or alike:
        return 1.0
    return _p((first, second), kind="independent", seed=seed)


def _rounding(first: Values, second: Values) -> float:
    return ROUNDING * max(float(np.abs(each).mean()) for each in (first, second))


def _p(data: tuple[Values, ...], *, kind: str, seed: int) -> float:
    from scipy import stats  # noqa: PLC0415 - scipy.stats takes most of a second, and few comparisons need it

    def difference(*arms: Values, axis: int = -1) -> Values:
        means = [np.mean(each, axis=axis) for each in arms]
        return np.asarray(means[-1] - (means[0] if len(means) > 1 else 0.0))

    found = stats.permutation_test(
        data,
        difference,
        permutation_type=kind,
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)
