"""How small an effect a screening shows, before it runs."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.designs import maxima
from fairtrial.analyse.designs.screening import HIGH_OVER_LOW, error_source
from fairtrial.analyse.inference.roots import root
from fairtrial.record.screening import Screening

POWER: Final = 0.8
MOST_REPLICATES: Final = 100


def detectable(of: Screening, *, replicates: int, noise: float, confidence: float) -> float | None:
    """The effect, as a ratio - 1, that stands out with `POWER`; None where there is no error to judge it by.

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
    error = HIGH_OVER_LOW * noise / math.sqrt(replicates * int((codes[:, 0] != 0).sum()))
    away = root(lambda nc: special.nctdtr(df, nc, reach) - (1 - POWER), 0.0, 20 + 5 * reach)
    return math.expm1(away * error)


def replicates_for(of: Screening, *, effect: float, noise: float, confidence: float) -> int | None:
    """The fewest that show an effect; None if `MOST_REPLICATES` do not."""
    for replicates in range(1, MOST_REPLICATES + 1):
        shown = detectable(of, replicates=replicates, noise=noise, confidence=confidence)
        if shown is not None and shown <= effect:
            return replicates
    return None
