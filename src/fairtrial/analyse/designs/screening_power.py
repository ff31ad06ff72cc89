"""How small an effect a screening shows, before it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.designs import maxima
from fairtrial.analyse.designs.screening import HIGH_OVER_LOW, Model, Values, error_source, exchanged, p_values
from fairtrial.analyse.designs.screening_models import ErrorSource
from fairtrial.analyse.inference import sensitivity
from fairtrial.record.screening import Screening

POWER: Final = sensitivity.POWER
MOST_REPLICATES: Final = 100
FEWEST_DF: Final = 8.0  # of trials that judge: with fewer, what their exchange allows decides as often as t does
SIMULATED: Final = 200  # runs: their share is known to 3 percentage points
MOST_MISSED: Final = round((1 - POWER) * SIMULATED)
EXCHANGES: Final = 500  # in each run: a fourth of what a report takes decides nearly the same
FARTHEST: Final = 8.0  # effect that is tried, times that which t alone would show
HALVINGS: Final = 7  # of the logarithm between half of that and the farthest: to 2 % of the effect
_SEED: Final = 1946


def detectable(of: Screening, *, replicates: int, noise: float, confidence: float) -> float | None:
    """The effect, as a ratio - 1, that stands out with `POWER`; None where none can.

    Args:
        of: the matrix.
        replicates: of it.
        noise: standard deviation of the logarithm of one trial, replicates apart.
        confidence: of no option standing out where none does anything.
    """
    codes, options = np.array(list(of.rows.values())), len(of.options)
    trials = replicates * len(codes)
    source, df = error_source(of, df=trials - replicates - options, pure_df=(replicates - 1) * (len(codes) - 1))
    if df is None or df <= 0:
        return None
    if source == "Lenth":
        reach = maxima.lenth_reach(confidence, count=options)[1]
    else:
        reach = maxima.modulus_quantile(confidence, count=options, df=df)
    error = HIGH_OVER_LOW / math.sqrt(replicates * int((codes[:, 0] != 0).sum()))
    away = error * sensitivity.shift_beyond(reach, df=df)
    if source == "Lenth" or df < FEWEST_DF:
        judged = _Judged(tuple(map(tuple, of.rows.values())), replicates, source, df, 1 - confidence)
        away = _simulated(judged, away)
    return math.expm1(away * noise) if math.isfinite(away) else None


def replicates_for(of: Screening, *, effect: float, noise: float, confidence: float) -> int | None:
    """The fewest that show an effect; None if `MOST_REPLICATES` do not."""
    for replicates in range(1, MOST_REPLICATES + 1):
        shown = detectable(of, replicates=replicates, noise=noise, confidence=confidence)
        if shown is not None and shown <= effect:
            return replicates
    return None


@dataclass(frozen=True)
class _Judged:
    """Trials of every row, and what judges them, as `Screening` and `error_source` have it."""

    rows: tuple[tuple[int, ...], ...]
    replicates: int
    source: ErrorSource
    df: float
    alpha: float


@lru_cache(maxsize=64)
def _simulated(judged: _Judged, nominal: float) -> float:
    """The logarithm of the first option's effect that stands out with `POWER` under noise of 1; infinite if none does.

    Found by what decides in a report, between half of `nominal` and `FARTHEST` times it, as no law has both parts: the
    largest statistic over its own error, and the exchange of trials.
    """
    rows = np.tile(np.arange(len(judged.rows)), judged.replicates)
    replicates = np.repeat(np.arange(judged.replicates), len(judged.rows))
    model = Model(np.array(judged.rows, dtype=float), rows=rows, replicates=replicates, exchanges=EXCHANGES)
    uniform = np.random.Generator(np.random.PCG64(_SEED)).random((SIMULATED, len(rows)))
    noise, acting = special.ndtri(uniform), model.codes[:, 0] / HIGH_OVER_LOW

    def shows(effect: float) -> bool:
        missed = 0
        for each in noise:
            missed += not _stands_out(model, each + effect * acting, judged)
            if missed > MOST_MISSED:
                return False
        return True

    low, high = nominal / 2, FARTHEST * nominal
    if not shows(high):
        return math.inf
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def _stands_out(model: Model, logs: Values, judged: _Judged) -> bool:
    _, adjusted = p_values(model.statistics(logs, judged.source), error=judged.source, df=judged.df)
    if adjusted[0] >= judged.alpha:
        return False
    held = exchanged(model, logs, error=judged.source, adjusted=adjusted, alpha=judged.alpha)
    return bool(held[0] < judged.alpha)
