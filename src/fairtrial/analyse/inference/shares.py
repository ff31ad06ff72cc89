"""Shares of a total: near all of it a ratio hides what becomes of the rest.

A hit ratio that goes from 99.0 to 99.9 % has changed by 0.9 %, and misses tenfold. So two shares are called equivalent
only where neither they nor what is left of the total differ by more than the margin.
"""

from __future__ import annotations

import math

import numpy as np

from fairtrial.analyse.inference.t_tests import Values


def bound(baseline: Values, arm: Values, *, margin: float, total: float) -> float:
    """How far the log ratio of positive values may be from 0 within the margin, to the nearer side.

    Where the rest is judged, its size is the baseline's: an error of it moves the bound by a share of the margin only.
    Without baseline values, or if one exceeds the total, the values are not shares and the bound is the margin's own.
    """
    own = math.log1p(margin)
    largest = max((float(each.max()) for each in (baseline, arm) if len(each)), default=0.0)
    if largest > total or not len(baseline):
        return own
    share = math.exp(float(np.log(baseline / total).mean()))  # each before the mean: all of the total is exactly 1
    rest = 1 - share
    if rest <= 0:
        return own if float(arm.min(initial=total)) == total else 0.0
    more_rest, less_rest = (1 - rest * by for by in (1 + margin, 1 / (1 + margin)))
    below = math.log(share / more_rest) if more_rest > 0 else math.inf
    return min(own, below, math.log(less_rest / share))
