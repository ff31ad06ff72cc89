"""Exchanging arms within blocks: a p that asks nothing of the shape of noise that arms share.

Where arms do not differ, swapping them within a block changes nothing but the sign of its difference, so all 2ⁿ
choices of signs are alike. Owns that test's p over many samples at once. It must not know metrics, arms or verdicts.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference.t_tests import Values

EXACT_N: Final = 20  # blocks: all signs in two halves of 1,024 sums; one more block would double the time
_MOST_SUMS: Final = 1 << 20  # of one half of the blocks, at once: 8 MiB
_ROUNDING: Final = 1e-12  # of a sum: choices of signs whose sums differ by less have the same
_CLOSE: Final = 1e-9  # of the tilt: the formula is flat in it
_MOST_STEPS: Final = 200  # ten do, but where all signs but the smallest are alike
_NEARLY_NONE: Final = 1e-3  # standard deviations from 0: so near the formula divides by nothing, and p is 1
_MOST_DOUBLINGS: Final = 1000  # beyond it a power of 2 is no number


def exchange_p(differences: Values) -> Values:
    """Two-sided p of a mean of 0, shape (…, n) → (…): exact up to `EXACT_N` blocks, then by saddle point.

    1 where all differences are 0. Source: Fisher (1935), Pitman (1937); Robinson (1982) for the saddle point.
    """
    rows = np.abs(differences).reshape(-1, differences.shape[-1])
    sums = np.abs(differences.sum(axis=-1)).reshape(-1)
    if (n := differences.shape[-1]) <= EXACT_N:
        some = _MOST_SUMS >> (n + 1) // 2
        parts = [slice(start, start + some) for start in range(0, max(1, len(rows)), some)]
        p = np.concatenate([_exact(rows[part], sums[part]) for part in parts])
    else:
        p = _saddle_point(rows, sums)
    return p.reshape(differences.shape[:-1])


def _exact(sizes: Values, total: Values) -> Values:
    """The share of signs whose sum is at least this far from 0, all of them counted in two halves.

    Shapes (rows, n) and (rows,).
    """
    half = sizes.shape[-1] // 2
    some, others = sizes[:, :half] @ _signs(half), np.sort(sizes[:, half:] @ _signs(sizes.shape[-1] - half))
    least = total - _ROUNDING * sizes.sum(axis=-1)
    bounds = least[:, None] - some
    short = [float(each.searchsorted(bound).sum()) for each, bound in zip(others, bounds, strict=True)]
    reached = 1 - np.array(short) / 2.0 ** sizes.shape[-1]  # exact: there are fewer choices than a number has values
    return np.where(least > 0, np.minimum(1.0, 2 * reached), 1.0)


@cache
def _signs(n: int) -> Values:
    """Every choice of n signs, shape (n, 2ⁿ)."""
    choices = np.arange(2**n) >> np.arange(n)[:, None] & 1
    return np.where(choices, 1.0, -1.0)


def _saddle_point(sizes: Values, total: Values) -> Values:
    """Lugannani and Rice's formula for the tail of a sum of ± sizes, shapes (rows, n) and (rows,)."""
    least = 2.0 ** max(1 - sizes.shape[-1], -_MOST_DOUBLINGS)
    one_sign = total >= sizes.sum(axis=-1) * (1 - _ROUNDING)
    length = np.sqrt((sizes**2).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled, at = sizes / length[:, None], total / length
    tilt = _tilt(scaled, at)
    arguments = tilt[:, None] * scaled
    cumulant = (arguments + np.log1p(np.exp(-2 * arguments)) - math.log(2)).sum(axis=-1)
    curvature = (scaled**2 * (1 - np.tanh(arguments) ** 2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        w, v = np.sqrt(2 * (tilt * at - cumulant)), tilt * np.sqrt(curvature)
        tail = special.ndtr(-w) + np.exp(-w * w / 2) / math.sqrt(2 * math.pi) * (1 / v - 1 / w)
        p = np.where(w > _NEARLY_NONE, np.clip(2 * tail, least, 1.0), 1.0)
    return np.where(one_sign & (length > 0), least, p)


def _tilt(sizes: Values, at: Values) -> Values:
    """Where the mean of the tilted sum is the one seen: sizes of length 1, shape (rows, n), and their sums.

    Newton's method: the mean is concave in the tilt, so from 0 on every step falls short, and none too far.
    """
    tilt = np.zeros(len(at))
    for _ in range(_MOST_STEPS):
        mean = np.tanh(tilt[:, None] * sizes)
        with np.errstate(invalid="ignore", divide="ignore"):
            step = (at - (sizes * mean).sum(axis=-1)) / (sizes**2 * (1 - mean**2)).sum(axis=-1)
        step = np.where(np.isfinite(step) & (step > 0), step, 0.0)
        tilt = tilt + step
        if (step <= _CLOSE * tilt).all():
            break
    return tilt
