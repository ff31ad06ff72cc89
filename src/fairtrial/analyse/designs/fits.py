"""Curves through the mean logs of one arm: the law of scalability, a straight line, a local regression.

Every fit says what it is at any value, and how it moves with each of the means it was fitted to. Both axes are
logarithmic: noise is a share of the value, and numeric factors are usually doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.designs import usl
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.study.designs.numeric_factors import CurveModel

SPAN: Final = 0.75  # share of all values in a window of the local regression
FEWEST_IN_WINDOW: Final = 4  # the farthest has no weight, and two would be a line from point to point

Curve = Callable[[Values], Values]  # values n, shape (m,) → logs, shape (m,)


@dataclass(frozen=True)
class Fit:
    """A fitted curve.

    Attributes:
        theta: parameters in the order of the model's names; rates as logarithms.
        moves: derivatives of `theta` with respect to the means, shape (p, k).
        at: the curve.
        moves_at: its derivatives with respect to the means: values n, shape (m,) → shape (m, k).
        shown: the curve that a report draws, within the bounds of its parameters.
        bounded: parameters within their bounds, shape (p,).
        across: directions of the means that the curve cannot follow, orthonormal, shape (r, k).
    """

    theta: Values
    moves: Values
    at: Curve
    moves_at: Callable[[Values], Values]
    shown: Curve
    bounded: Values
    across: Values


def usl_fit(n: Values, means: Values) -> Fit:
    """The law of scalability."""
    theta = usl.fitted(means, n)
    bounded = usl.bounded(theta, means, n)
    slopes = usl.gradient(theta, n)
    moves = np.asarray(np.linalg.pinv(slopes), dtype=np.float64)
    return Fit(
        theta=theta,
        moves=moves,
        at=lambda values: usl.logs(theta, values),
        moves_at=lambda values: usl.gradient(theta, values) @ moves,
        shown=lambda values: usl.logs(bounded, values),
        bounded=bounded,
        across=_across(slopes),
    )


def line_fit(n: Values, means: Values) -> Fit:
    """A straight line on logarithmic axes: the value at the smallest n, and the factor per doubling."""
    first = float(n.min())

    def slopes(values: Values) -> Values:
        return np.stack([np.ones_like(values), np.log2(values / first)], axis=-1)

    moves = np.asarray(np.linalg.pinv(slopes(n)), dtype=np.float64)
    theta = moves @ means

    def at(values: Values) -> Values:
        return np.asarray(slopes(values) @ theta)

    return Fit(
        theta=theta,
        moves=moves,
        at=at,
        moves_at=lambda values: slopes(values) @ moves,
        shown=at,
        bounded=theta,
        across=_across(slopes(n)),
    )


def loess_fit(n: Values, means: Values) -> Fit:
    """A local straight line with tricube weights on logarithmic axes, as R's `loess(degree = 1)`."""
    nothing = np.zeros((0, len(n)))

    def at(values: Values) -> Values:
        return np.asarray(smoother(n, values) @ means)

    return Fit(
        theta=np.zeros(0),
        moves=nothing,
        at=at,
        moves_at=lambda values: smoother(n, values),
        shown=at,
        bounded=np.zeros(0),
        across=nothing,
    )


def smoother(n: Values, values: Values) -> Values:
    """Weights of the means in a local regression at other values, shape (m, k)."""
    x, at = np.log(n), np.log(values)
    away = np.abs(at[:, None] - x)
    nearest = min(len(n), max(FEWEST_IN_WINDOW, math.ceil(SPAN * len(n))))
    width = np.sort(away, axis=1)[:, nearest - 1 : nearest]
    weights = np.clip(1 - (away / width) ** 3, 0, None) ** 3
    total = weights.sum(axis=1, keepdims=True)
    centre = (weights * x).sum(axis=1, keepdims=True) / total
    off = x - centre
    spread = (weights * off**2).sum(axis=1, keepdims=True)
    return np.asarray(weights * (1 / total + (at[:, None] - centre) * off / spread))


FITS: Final[Mapping[CurveModel, Callable[[Values, Values], Fit]]] = {
    "usl": usl_fit,
    "linear": line_fit,
    "loess": loess_fit,
}


def _across(slopes: Values) -> Values:
    """An orthonormal basis of what is orthogonal to all slopes, shape (k - p, k)."""
    left, _sizes, _right = np.linalg.svd(slopes, full_matrices=True)
    return np.asarray(left[:, slopes.shape[1] :].T)
