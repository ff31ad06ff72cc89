"""How alike neighbours of a series are, and how many independent values its mean is worth."""

from __future__ import annotations

from typing import Final

import numpy as np

from fairtrial.metrics.series.throughput import Values

LARGEST_AR: Final = 0.95  # beyond it a window of some hundred values cannot tell noise from a level
STEPS_APART: Final = 2


def lag1(values: Values) -> float | None:
    """Autocorrelation at lag 1, as R's `acf` gives it; None for a constant."""
    by_lag = correlations(values)
    return None if by_lag is None or len(by_lag) < STEPS_APART else float(by_lag[1])


def correlations(values: Values) -> Values | None:
    """Autocorrelation at every lag from 0, shape (n,), by the fast Fourier transform; None for a constant."""
    n = len(values)
    centred = values - values.mean() if n else values
    if n == 0 or not np.any(np.abs(centred) > n * np.finfo(np.float64).eps * np.abs(values).max()):
        return None
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariances = np.fft.irfft(spectrum * np.conj(spectrum), size)[:n]
    return np.asarray(covariances / covariances[0], dtype=np.float64)


def effective_n(values: Values) -> float:
    """How many independent values would give the mean this precisely; at least 1, at most n.

    n / (1 + 2·Σρ), summed while pairs of neighbouring lags stay positive and do not grow.

    Source: Geyer, *Practical Markov chain Monte Carlo*, Statistical Science 7 (1992), initial monotone sequence.
    """
    n = len(values)
    by_lag = correlations(values)
    if by_lag is None:
        return float(n)
    pairs = by_lag[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    return float(np.clip(n / max(2 * kept.sum() - 1, 1.0), 1.0, n))


def robust_ar1(values: Values) -> float:
    """The coefficient of an autoregression of order 1 that changes of level and single outliers do not move.

    Between 0 and `LARGEST_AR`. Source: Chakar, Lebarbier, Lévy-Leduc and Robin, *A robust approach for estimating
    change-points in the mean of an AR(1) process*, Bernoulli 23 (2017).
    """
    one = float(np.median(np.abs(np.diff(values))))
    two = float(np.median(np.abs(values[STEPS_APART:] - values[:-STEPS_APART])))
    return 0.0 if one == 0 else float(np.clip((two / one) ** 2 - 1, 0.0, LARGEST_AR))


def residual_ar1(residuals: Values, *, parameters: int) -> float:
    """The same from residuals, with what fitting `parameters` means has taken from it put back.

    Source: Kendall, *Note on bias in the estimation of autocorrelation*, Biometrika 41 (1954): each mean takes about
    (1 + 3φ) / n.
    """
    square = float(residuals @ residuals)
    if square == 0:
        return 0.0
    phi = float(residuals[1:] @ residuals[:-1]) / square
    return float(np.clip(phi + parameters * (1 + 3 * max(phi, 0.0)) / len(residuals), 0.0, LARGEST_AR))


def inflation(ar1: float) -> float:
    """What autocorrelation multiplies the variance of a mean of many values by."""
    return (1 + ar1) / (1 - ar1)
