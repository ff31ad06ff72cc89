"""Levels that hold: segmentation of a series by PELT with absolute deviations, at a penalty with a known error rate.

The penalty is simulated, not chosen: it is the (1 - alpha) quantile, over series of the same length and
autocorrelation without any change, of the gain that would make PELT place its first change point. Source of the
segmentation: Killick, Fearnhead & Eckley (2012), in `ruptures`; of absolute deviations, which a spike moves little:
docs/methodology.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from fairtrial.analyse.history.noise import Noise, autoregressive, units
from fairtrial.analyse.t_tests import Values

SHORTEST: Final = 3  # points in a segment: two spikes side by side are still no level
LONGEST_EXCURSION: Final = 20  # points of a passing level that the statistic looks for; longer ones are two steps
SIMULATIONS: Final = 500  # error of a 5 % quantile's rate: 1 point
TAIL: Final = 0.1  # beyond this quantile simulated gains are taken as exponential, which maxima nearly are
SMALLEST_P: Final = 1e-4  # further out the exponential is a guess
AUTOCORRELATION_STEP: Final = 0.1  # simulated at multiples of this, rounded up
EXACT_LENGTH: Final = 40  # longer series are simulated at the next multiple of LENGTH_STEP: the quantile moves slowly
LENGTH_STEP: Final = 10
SEED: Final = 20_261_121  # of the simulations: any number does, one number makes results repeatable


def gains(series: Values) -> Values:
    """The largest gain per change point that one step or one passing level gives; rows are series.

    The cost is the sum of absolute deviations from segments' medians. With a penalty above this value a segmentation
    with one or two change points costs more than none.
    """
    n = series.shape[1]
    ahead, behind = _one_sided(series)
    whole = ahead[:, n]
    best = whole - (ahead[:, SHORTEST : n - SHORTEST + 1] + behind[:, SHORTEST : n - SHORTEST + 1]).min(axis=1)
    for length in range(SHORTEST, min(LONGEST_EXCURSION, n - 2 * SHORTEST) + 1):
        starts = np.arange(SHORTEST, n - SHORTEST - length + 1)
        windows = np.lib.stride_tricks.sliding_window_view(series, length, axis=1)[:, starts]
        inside = np.abs(windows - np.median(windows, axis=2, keepdims=True)).sum(axis=2)
        two = whole - (ahead[:, starts] + inside + behind[:, starts + length]).min(axis=1)
        best = np.maximum(best, two / 2)
    return np.asarray(best, dtype=np.float64)


def p_value(values: Values, noise: Noise) -> float:
    """Of the hypothesis that the level never changed, between `SMALLEST_P` and 1."""
    seen = float(gains(values[np.newaxis])[0]) / noise.unit
    simulated = _simulated(*_like(len(values), noise))
    knee, excess = _tail(simulated)
    if seen <= knee:
        return float((simulated >= seen).mean())
    return max(SMALLEST_P, TAIL * math.exp(-(seen - knee) / excess))


def penalty(n: int, noise: Noise, *, alpha: float) -> float:
    """What a change point must gain, in `Noise.unit`: the gain at which `p_value` is alpha."""
    simulated = _simulated(*_like(n, noise))
    knee, excess = _tail(simulated)
    return knee + excess * math.log(TAIL / alpha) if alpha < TAIL else float(np.quantile(simulated, 1 - alpha))


def segment(values: Values, *, penalty_units: float, unit: float) -> list[int]:
    """Index of the first point of every segment but the first, in order."""
    from ruptures import Pelt  # noqa: PLC0415 - half a second that commands without a history need not wait for

    if len(values) < 2 * SHORTEST:
        return []
    found = Pelt(model="l1", min_size=SHORTEST, jump=1).fit(values / unit).predict(pen=penalty_units)
    return [int(end) for end in found[:-1]]


def _tail(simulated: Values) -> tuple[float, float]:
    """Where the tail begins, and the mean excess over it. Source: Knijnenburg et al. (2009), exponential case."""
    knee = float(np.quantile(simulated, 1 - TAIL))
    return knee, float((simulated[simulated > knee] - knee).mean())


def _one_sided(series: Values) -> tuple[Values, Values]:
    """Cost of the first k points and of the points from k on, for every k: shape (series, points + 1) each."""
    count, n = series.shape
    ahead, behind = np.zeros((count, n + 1)), np.zeros((count, n + 1))
    for k in range(1, n + 1):
        for costs, at, part in ((ahead, k, series[:, :k]), (behind, n - k, series[:, n - k :])):
            costs[:, at] = np.abs(part - np.median(part, axis=1, keepdims=True)).sum(axis=1)
    return ahead, behind


def _like(n: int, noise: Noise) -> tuple[int, int]:
    """Length and autocorrelation (in steps) to simulate at."""
    length = n if n <= EXACT_LENGTH else math.ceil(n / LENGTH_STEP) * LENGTH_STEP
    return length, math.ceil(round(noise.autocorrelation / AUTOCORRELATION_STEP, 9))


@lru_cache(maxsize=256)
def _simulated(n: int, autocorrelation_steps: int) -> Values:
    """Sorted gains of series without a change, each in its own estimated unit."""
    series = autoregressive(
        autocorrelation=autocorrelation_steps * AUTOCORRELATION_STEP,
        shape=(SIMULATIONS, n),
        generator=np.random.default_rng([SEED, n, autocorrelation_steps]),
    )
    return np.sort(gains(series) / units(series))
