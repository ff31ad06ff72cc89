"""The Universal Scalability Law: X(N) = lambda · N / (1 + sigma · (N - 1) + kappa · N · (N - 1)) at N users.

X: throughput. Lambda: throughput of one user. Sigma: contention, the share of work done one at a time. Kappa:
coherency, the cost of each pair of users. Fitted by least squares on log X, as noise is a share of throughput.
Functions take shapes (…,) and know nothing of blocks. Source: Gunther (2007), Guerrilla Capacity Planning.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference.t_tests import Values

PARAMETERS: Final = ("lambda", "sigma", "kappa")
_STEPS: Final = 200  # of Gauss and Newton; a dozen are usual
_RIDGE: Final = 1e-13  # the least damping: keeps a step finite where values cannot tell two parameters apart
_DAMPED: Final = 1e-8  # after a first step that makes the fit worse
_STRONGEST: Final = 1e6
_CONVERGED: Final = 1e-11  # step of any log
_ROUNDING: Final = 1e-10  # of a sum of squares near its least


def logs(theta: Values, n: Values) -> Values:
    """The logarithm of X at values n, shape (…, k), of parameters (log lambda, sigma, kappa), shape (…, 3)."""
    return np.asarray(theta[..., :1] + np.log(n) - np.log(_slowdown(theta, n)))


def gradient(theta: Values, n: Values) -> Values:
    """Derivatives of log X with respect to (log lambda, sigma, kappa), shape (…, k, 3)."""
    slowdown = _slowdown(theta, n)
    return np.stack([np.ones_like(slowdown), -(n - 1) / slowdown, -n * (n - 1) / slowdown], axis=-1)


def fitted(values: Values, n: Values) -> Values:
    """Parameters (log lambda, sigma, kappa) that fit log throughputs of shape (…, k) best, whatever their signs."""
    return _refined(_start(values, n), values, n, free=np.array([True, True, True]))


def bounded(free: Values, values: Values, n: Values) -> Values:
    """The best fit with sigma and kappa at least 0, shape (3,); `free` is the best of all."""
    if (free[1:] >= 0).all():
        return free
    found = []
    flat = np.array([values.mean(), 1.0, 0.0])  # where throughput does not grow, the best is far from the free fit's
    for start in (np.maximum(free, [-np.inf, 0, 0]), flat):
        for held in ((True, False), (False, True), (True, True)):
            keep = np.array([True, *(not each for each in held)])
            theta = _refined(np.where(keep, start, 0.0), values, n, free=keep)
            if (theta[1:] >= 0).all():
                found.append(theta)
    return min(found, key=lambda theta: float(np.square(values - logs(theta, n)).sum()))


def _slowdown(theta: Values, n: Values) -> Values:
    return np.asarray(1 + theta[..., 1:2] * (n - 1) + theta[..., 2:3] * n * (n - 1))


def _start(values: Values, n: Values) -> Values:
    """By linear least squares on N / X, each weighted by its own size: relative errors, as those of log X are."""
    per_user = np.exp(values - np.log(n))
    columns = np.stack([per_user, (n - 1) * per_user, n * (n - 1) * per_user], axis=-1)
    scale = np.abs(columns).max(axis=-2, keepdims=True)
    scale[scale == 0] = 1.0
    found = np.linalg.pinv(columns / scale).sum(axis=-1) / scale[..., 0, :]
    positive = found[..., :1] > 0
    first = np.where(positive, found[..., :1], 1 / per_user.max(axis=-1, keepdims=True))
    theta = np.concatenate([-np.log(first), found[..., 1:] / first], axis=-1)
    usable = positive[..., 0] & (_slowdown(theta, n) > 0).all(axis=-1)
    plain = np.concatenate([-np.log(first), np.zeros_like(theta[..., 1:])], axis=-1)
    return np.where(usable[..., None], theta, plain)


def _refined(theta: Values, values: Values, n: Values, *, free: NDArray[np.bool_]) -> Values:
    """Levenberg and Marquardt's steps: Gauss and Newton's, damped more after each that makes the fit worse."""
    rest = np.square(values - logs(theta, n)).sum(axis=-1)
    damping = np.full(rest.shape, _RIDGE)
    for _ in range(_STEPS):
        slopes = gradient(theta, n) * free
        scale = np.sqrt(np.square(slopes).sum(axis=-2, keepdims=True))
        scale[scale == 0] = 1.0
        scaled = np.swapaxes(slopes / scale, -1, -2)
        diagonal = np.where(free, damping[..., None], 1.0)  # held parameters stay
        normal = scaled @ np.swapaxes(scaled, -1, -2) + diagonal[..., None] * np.eye(len(free))
        residuals = (values - logs(theta, n))[..., None]
        step = np.linalg.solve(normal, scaled @ residuals)[..., 0] / scale[..., 0, :]
        if np.abs(step * scale[..., 0, :]).max(initial=0.0) < _CONVERGED:
            break
        tried = theta + step
        with np.errstate(invalid="ignore", divide="ignore"):
            left = np.square(values - logs(tried, n)).sum(axis=-1)
        better = (_slowdown(tried, n) > 0).all(axis=-1) & (left <= rest * (1 + _ROUNDING) + _ROUNDING**2)
        theta, rest = np.where(better[..., None], tried, theta), np.where(better, left, rest)
        eased, raised = np.maximum(damping / 10, _RIDGE), np.clip(damping * 10, _DAMPED, _STRONGEST)
        damping = np.where(better, eased, raised)
    return theta


def peak(theta: Values) -> Values:
    """Users of the largest throughput, sqrt((1 - sigma) / kappa); NaN where throughput never falls."""
    sigma, kappa = theta[..., 1], theta[..., 2]
    falls = (kappa > 0) & (sigma < 1)
    return np.sqrt(np.where(falls, (1 - sigma) / np.where(falls, kappa, 1.0), np.nan))


def slope_moves(theta: Values, moves: Values) -> Values:
    """How the two parts of the slope that a peak balances move, from how (log lambda, sigma, kappa) do.

    The parts are lost gain and coherency per lambda: with these Fieller's limits hold even where throughput of one user
    is far outside the values measured, and lambda and sigma are hardly known. Shapes (…, 3, k) → (…, 2, k).
    """
    rate, sigma, kappa = (moves[..., index, :] for index in range(3))
    lost = sigma + (1 - theta[..., 1, None]) * rate
    return np.stack([lost, kappa - theta[..., 2, None] * rate], axis=-2)


def peak_interval(theta: Values, covariance: Values, *, reach: Values) -> tuple[Values, Values]:
    """Users at which throughput may be largest, by Fieller: where the slope 1 - sigma - kappa · N² may be 0.

    Args:
        theta: (log lambda, sigma, kappa), shape (…, 3).
        covariance: of the two parts of the slope as `slope_moves` has them, shape (…, 2, 2).
        reach: standard errors to either side, the quantile of t.

    Returns:
        Low and high, shape (…,): NaN and infinity where everything below, or above, is possible; both are infinite
        where throughput is shown to grow without end.
    """
    gain, kappa, squared = 1 - theta[..., 1], theta[..., 2], np.square(reach)
    known = np.square(kappa) - squared * covariance[..., 1, 1]
    middle = gain * kappa + squared * covariance[..., 0, 1]
    rest = np.square(gain) - squared * covariance[..., 0, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(np.square(middle) - known * rest, 0.0))
        first, second = (middle - root) / known, (middle + root) / known
        low, high = np.minimum(first, second), np.maximum(first, second)
        falls = (known > 0) & (kappa > 0)
        open_low = np.where((rest > 0) & (gain > 0) & (known <= 0), high, np.nan)
        least = np.sqrt(np.where(falls & (low > 0), low, np.where(falls, np.nan, open_low)))
        grows = (known > 0) & (kappa < 0) & (high < 0)  # the slope may be 0 at no N², and is above 0 there
        least = np.where(grows, np.inf, least)
        most = np.where(falls, np.sqrt(np.maximum(high, 0.0)), np.inf)
    return least, most
