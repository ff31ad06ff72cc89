"""Noise that belongs to one arm: do the arms' own spreads differ, and what may stalls do that nobody has seen?

Treatments that this project compares stall now and then, and an arm that stalls has noise of its own. Its mean is then
another thing than its typical trial, and a few blocks without a stall show the second only.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference import exchanging, ranks
from fairtrial.analyse.inference.t_tests import LARGEST_LOGARITHM, Values, scaled
from fairtrial.analyse.models import Interval, Spreads, Stalls

DEPTH: Final = 0.15  # of a stalled trial: what the table of noises has (docs/explanation/calibration.md)
FEWEST: Final = 6  # values per arm, from which an exact test can go below 0.05


def stalls(n: int, *, level: float) -> Stalls:
    """What n trials of an arm without a stall leave open: (1 - share)ⁿ = level."""
    worth = -math.expm1(-float(unseen(np.asarray(n), level=level)))
    return Stalls(share=1 - level ** (1 / n), depth=DEPTH, worth=worth)


def unseen(n: NDArray[np.int64], *, level: float) -> Values:
    """How much stalls that n trials of an arm do not show may take from its geometric mean: a logarithm, shape (…)."""
    share = 1 - level ** (1 / np.maximum(1, n))
    return np.asarray(-share * math.log1p(-DEPTH))


def mean_interval(mean: tuple[float, float, float], *, n: int, level: float, size: float | None) -> Interval | None:
    """An interval of the mean, widened by what unseen stalls of either arm may be worth.

    `mean` is the estimate and its interval at `level`, of logarithms unless there is a `size` of the values, of which
    stalls are worth a share. A ratio if there is no `size`; None where no number holds it.
    """
    open_ = float(unseen(np.asarray(n), level=level))
    estimate, low, high = mean
    if size is not None:
        open_ = -math.expm1(-open_) * size
        return Interval(estimate=estimate, low=low - open_, high=high + open_)
    if high + open_ > LARGEST_LOGARITHM:
        return None
    return ratio(math.exp(estimate), low - open_, high + open_)


def ratio(estimate: float | None, low: float | None, high: float | None) -> Interval:
    """A ratio with its interval, of which the logarithms are given; without ends where no number holds them."""
    if low is None or high is None or high > LARGEST_LOGARITHM:
        return Interval(estimate=estimate, low=None, high=None)
    return Interval(estimate=estimate, low=math.exp(low), high=math.exp(high))


def compared(baseline: Values, arm: Values, *, paired: bool, rounding: float) -> Spreads | None:
    """The arms' spreads on the scale of their comparison; None with fewer than `FEWEST` values, or without any spread.

    Over blocks: the sum over blocks of difference times sum, both around their means, which is the difference of the
    arms' variances. Exchanging what remains of the arms within a block turns a summand's sign: Pitman and Morgan's test
    (1939) with the exchange in place of normality. Without blocks: Mann and Whitney's of distances from the median, of
    which two are alike wherever the median lies between two values.
    """
    if min(len(baseline), len(arm)) < FEWEST:
        return None
    (baseline, arm), exponent = scaled(baseline, arm)
    first, second = (float(np.std(each, ddof=1)) for each in (baseline, arm))
    rounding = math.ldexp(rounding, -int(exponent))
    if min(first, second) <= rounding:
        return None
    if paired:
        difference, total = arm - baseline, arm + baseline
        p = float(exchanging.exchange_p((difference - difference.mean()) * (total - total.mean())))
    else:
        away = np.concatenate([np.abs(each - np.median(each)) for each in (baseline, arm)])
        tied = ranks.settled(away, rounding=rounding)
        test = ranks.rank_sum(tied[: len(baseline)], tied[len(baseline) :], confidence=0.95)
        p = 1.0 if test is None else test.p
    return Spreads(ratio=second / first, p=p)
