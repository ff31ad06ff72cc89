"""A t test's p, held against tests that ask less of the noise: claims are about the typical trial.

Two witnesses. Exchanging arms within blocks is exact for noise that arms share, whatever its shape. Ranks are not moved
by how far a few trials of one arm lie off: a mean is, and t then claims a difference that no typical trial has
(docs/decisions/inference.md, 0020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference import exchanging, ranks
from fairtrial.analyse.inference.t_tests import Values

Flags = NDArray[np.bool_]

_MOST_DOUBLINGS: Final = 1000  # beyond it a power of 2 is no number
ENOUGH_VALUES: Final = 500  # of an arm without blocks: how many ways there are to divide more is no number


def weight(n: int, *, level: float) -> float:
    """How much an exact p of n blocks counts at a level: 0 where it cannot reach it, towards 1 as n grows.

    At the level lie `level` · 2ⁿ⁻¹ choices of signs on either side. The fewer they are, the coarser is the exact test,
    and the more the sizes of a few differences decide it: 1 - 1 / √choices keeps the error and almost all power
    (docs/decisions/inference.md, 0014).
    """
    return _weight(level * 2.0 ** min(n - 1, _MOST_DOUBLINGS))


def paired(p: Values, differences: Values, *, level: float, alpha: float) -> Values:
    """Two-sided p values of t tests on a mean of 0, raised towards those of both witnesses where they are larger.

    Only p values below `alpha`: the others claim nothing, and stay as t gives them. In logarithms a p goes from t's
    towards the witness's by the `weight`. Shapes (…) and (…, n); `level` is that of one comparison at the hardest step
    of its family, `alpha` that of the whole family.
    """

    def witnesses(rows: Values) -> tuple[Values, Values]:
        return exchanging.exchange_p(rows), signed_ranks(rows)

    return _raised(p, (differences,), witnesses, alpha=alpha, share=weight(differences.shape[-1], level=level))


def paired_beyond(p: Values, differences: Values, *, level: float, alpha: float) -> Values:
    """The same for one-sided p values of "the mean is 0 or less": a claim needs differences above 0."""

    def witnesses(rows: Values) -> tuple[Values, Values]:
        return exchanging.exchange_p(rows) / 2, ranks.signed_rank_above(rows)

    share = weight(differences.shape[-1], level=2 * level)  # one tail has all of the level
    return _raised(p, (differences,), witnesses, alpha=alpha, share=share)


def unpaired(p: Values, first: Values, second: Values, *, level: float, alpha: float) -> Values:
    """Two-sided p values of Welch's tests, held against the rank sum of shapes (…, n) and (…, m) likewise."""
    moves_up = second.mean(axis=-1, keepdims=True) >= first.mean(axis=-1, keepdims=True)
    sign = np.where(moves_up, 1.0, -1.0)
    return _unpaired(p, (sign * first, sign * second), level=level / 2, alpha=alpha, sides=2)


def unpaired_beyond(p: Values, first: Values, second: Values, *, level: float, alpha: float) -> Values:
    """The same for one-sided p values of "`second` is not above `first`"."""
    return _unpaired(p, (first, second), level=level, alpha=alpha, sides=1)


def _unpaired(p: Values, arms: tuple[Values, Values], *, level: float, alpha: float, sides: int) -> Values:
    def witness(first: Values, second: Values) -> tuple[Values]:
        return (np.minimum(1.0, sides * ranks.rank_sum_above(first, second)),)

    n, m = (arm.shape[-1] for arm in arms)
    ways = math.inf if max(n, m) > ENOUGH_VALUES else float(math.comb(n + m, n))
    return _raised(p, arms, witness, alpha=alpha, share=_weight(level * ways))


def _raised(
    p: Values, samples: tuple[Values, ...], witnesses: Callable[..., tuple[Values, ...]], *, alpha: float, share: float
) -> Values:
    raised, claimed = np.array(p, dtype=np.float64), np.asarray(p < alpha)
    if share > 0 and claimed.any():
        by_t, others = raised[claimed], witnesses(*(sample[claimed] for sample in samples))
        raised[claimed] = np.max([towards(by_t, other, share) for other in others], axis=0)
    return raised


def signed_ranks(differences: Values) -> Values:
    """Two-sided p of the signed rank test, shape (…, n) → (…), for a claim in the direction of the mean."""
    sign = np.where(differences.mean(axis=-1, keepdims=True) >= 0, 1.0, -1.0)
    return np.minimum(1.0, 2 * ranks.signed_rank_above(sign * differences))


def towards(p: Values, witness: Values, share: float | Values) -> Values:
    """P moved in logarithms by a share of the way to the witness's, and never below where it was."""
    return np.maximum(p, p ** (1 - share) * witness**share)


def _weight(choices: float) -> float:
    return 1 - 1 / math.sqrt(choices) if choices > 1 else 0.0
