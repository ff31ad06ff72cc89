"""Adjusting p values for what is judged together: a claim's family, and a screening's.

Owns the arithmetic only: p values in, adjusted p values out, over any number of replicates at once. It must not know
metrics, arms or verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference.t_tests import Values

# Of the baseline's share of a comparison's variance: nearer to 1 the integrand gets narrower than the grid, and an arm
# that hardly varies while its baseline does is no reason for a milder adjustment.
LARGEST_SHARE: Final = 0.8
_GRID: Final = np.linspace(0.0, 8.0, 21)  # standard deviations; the trapezoid rule on it is exact to 9 digits here
_WEIGHTS: Final = np.where(_GRID > 0, 2, 1) * np.exp(-(_GRID**2) / 2) * _GRID[1] / math.sqrt(2 * math.pi)
# A large t with few degrees of freedom is mostly a small estimate of its own spread, which arms hardly share: the
# dependence that normal deviations would have is there in part only. Simulated for 2 to 19 degrees in benches.
_DF_WITHOUT_DEPENDENCE: Final = 3
SMALLEST_N: Final = 2  # one value has no variance
_SMALLEST_P: Final = 1e-12  # smaller ones are adjusted by the bound of independence, which is as good there


def dunnett(p: Values, shares: Values) -> Values:
    """Adjusts the p values of comparisons that share a baseline for one another, in one step.

    The chance that any of k comparisons of equal arms has a p this small. Each p is taken as a two-sided normal
    deviation; those of two arms correlate because both contain the baseline's noise, by the root of the product of
    `shares`. So every comparison keeps its own test and its own spread, which pooled variances would not allow.
    The result lies between p and 1 - (1 - p)^k, the bound of independent comparisons.

    Both have shape (…, k); a share of 0 counts as independent.

    Source: Dunnett (1955) for the integral; the normal deviations are a Gaussian copula.
    """
    return np.stack([_any_below(p[..., index], shares) for index in range(p.shape[-1])], axis=-1)


def _any_below(p: Values, shares: Values) -> Values:
    """Chance that any of k comparisons has a p value below `p`, shapes (…) and (…, k) → (…)."""
    count = shares.shape[-1]
    independent = -np.expm1(count * np.log1p(-np.minimum(p, 1 - 1e-16)))
    if count == 1:
        return np.asarray(p)
    share = np.clip(shares, 0.0, LARGEST_SHARE)[..., None]
    loading, rest = np.sqrt(share), np.sqrt(1 - share)
    far = -special.ndtri(np.maximum(p, _SMALLEST_P) / 2)[..., None, None]
    outside = special.ndtr(-(far - loading * _GRID) / rest) + special.ndtr(-(far + loading * _GRID) / rest)
    inside = np.log1p(-np.minimum(outside, 1 - 1e-16)).sum(axis=-2)
    integral = (-np.expm1(inside) * _WEIGHTS).sum(axis=-1)
    adjusted: Values = np.where(p < _SMALLEST_P, independent, np.clip(integral, p, independent))
    return adjusted


def step_down(p: Values, shares: Values) -> Values:
    """Adjusts families of comparisons: Dunnett within a group that shares a baseline, Holm across the groups.

    At each step the comparison with the smallest p value, adjusted within what is left of its group and multiplied by
    the number of groups that are left, is next; adjusted p values never fall. With one comparison per group this is
    Holm's method, with one group it is Dunnett's in steps.

    The chance of any false claim stays at the level whatever else is true, because the critical value of a set never
    falls when the set grows (Romano and Wolf 2005, theorem 1).

    All have shape (…, groups, k); shorter groups are filled with NaN.

    Source: Holm (1979); Dunnett and Tamhane (1991).
    """
    order = np.argsort(p, axis=-1)  # NaN comes last
    ascending = np.take_along_axis(p, order, axis=-1)
    groups, count = p.shape[-2:]
    within = _remaining(ascending, np.take_along_axis(np.where(np.isnan(p), 0.0, shares), order, axis=-1))
    flat = within.reshape(-1, groups, count)
    adjusted = np.full_like(flat, np.nan)
    at = np.zeros(flat.shape[:-1], dtype=int)
    sizes = (~np.isnan(flat)).sum(axis=-1)
    rows = np.arange(len(flat))
    largest = np.zeros(len(flat))
    for _ in range(groups * count):
        open_ = at < sizes
        candidate = np.take_along_axis(flat, np.minimum(at, count - 1)[..., None], axis=-1)[..., 0]
        chosen = np.argmin(np.where(open_, candidate, np.inf), axis=-1)
        left = open_.sum(axis=-1)
        value = np.minimum(1.0, left * candidate[rows, chosen])
        largest = np.where(left > 0, np.fmax(largest, value), largest)
        going = np.flatnonzero(left > 0)
        if not len(going):
            break
        where = (rows[going], chosen[going], at[going, chosen[going]])
        adjusted[where] = largest[going]
        at[rows[going], chosen[going]] += 1
    back = np.empty_like(flat)
    np.put_along_axis(back, order.reshape(flat.shape), adjusted, axis=-1)
    return back.reshape(p.shape)


def _remaining(ascending: Values, shares: Values) -> Values:
    """Each p value adjusted for those of its group that are not smaller, shape (…, k)."""
    count = ascending.shape[-1]
    adjusted = np.full_like(ascending, np.nan)
    for start in range(count):
        here = ~np.isnan(ascending[..., start])
        if not here.any():
            continue
        # A filled place is no comparison: it must not add to the chance, so it is left out by size of group.
        sizes = (~np.isnan(ascending)).sum(axis=-1)
        for size in np.unique(sizes[here]).tolist():
            these = here & (sizes == size)
            adjusted[these, start] = _any_below(ascending[these, start], shares[these, start:size])
    return adjusted


def holm(values: Values | Sequence[float]) -> Values:
    """Adjusted p values along the last axis. Source: Holm (1979); R's `p.adjust(method = "holm")`."""
    p = np.asarray(values, dtype=np.float64)
    order = np.argsort(p, axis=-1)
    count = p.shape[-1]
    stepped = np.take_along_axis(p, order, axis=-1) * np.arange(count, 0, -1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(1.0, np.maximum.accumulate(stepped, axis=-1)), axis=-1)
    return adjusted


def benjamini_hochberg(p: Values) -> Values:
    """Adjusted p values along the last axis: claims below q are false in a share of at most q on average.

    Source: Benjamini and Hochberg (1995); R's `p.adjust(method = "BH")`.
    """
    order = np.argsort(p, axis=-1)
    count = p.shape[-1]
    scaled = np.take_along_axis(p, order, axis=-1) * count / np.arange(1, count + 1)
    smallest = np.minimum.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(1.0, smallest), axis=-1)
    return adjusted


def shares_of_blocks(noise: Values) -> Values:
    """The baseline's share of the variance of each paired comparison with it, from what the trials show.

    Differences of two arms from the baseline covary by the baseline's own variance, so the mean covariance of all
    pairs of arms estimates it.

    From values by arm, baseline first, and block, on the scale that is tested: shape (…, 1 + k, n) → (…, k), n ≥ 2.
    Between 0 and 1, less than estimated where n is small; 0 where nothing varies.
    """
    apart = noise[..., 1:, :] - noise[..., :1, :]
    count, df = apart.shape[-2], apart.shape[-1] - 1
    centred = apart - apart.mean(axis=-1, keepdims=True)
    covariance = centred @ np.swapaxes(centred, -1, -2) / df
    own = np.diagonal(covariance, axis1=-2, axis2=-1)
    if count == 1:
        return np.zeros_like(own)
    shared = (covariance.sum(axis=(-1, -2)) - own.sum(axis=-1))[..., None] / (count * (count - 1))
    return _share(np.broadcast_to(shared, own.shape), own, df=df)


def shares_of_arms(errors: Values, *, df: int) -> Values:
    """The same without blocks, from squared standard errors by arm, shape (…, 1 + k), and the smallest arm's `df`."""
    own, shared = errors[..., 1:], errors[..., :1]
    return _share(np.broadcast_to(shared, own.shape), own + shared, df=df)


def _share(part: Values, whole: Values, *, df: int) -> Values:
    kept = max(0.0, 1 - _DF_WITHOUT_DEPENDENCE / df)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Values = np.clip(part / whole, 0.0, LARGEST_SHARE)
    return kept * np.nan_to_num(share)
