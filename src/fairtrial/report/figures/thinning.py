"""Fewer points for a picture, with every extreme kept: a dip that a mean would hide stays visible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

Row = dict[str, str | float | bool | None]  # what a mark is drawn from, by the names of its channels' fields
Rows = list[Row]

SIGNIFICANT_DIGITS: Final = 5  # finer than a pixel, and a fifth of the bytes


def thinned(values: npt.NDArray[np.float64], *, points: int) -> npt.NDArray[np.int64]:
    """Indices of at most about `points` values, in order: each stretch's smallest and largest; of few values, all."""
    n = len(values)
    if n <= points:
        return np.arange(n)
    width = math.ceil(n / max(1, points // 2))
    starts = np.arange(0, n, width)
    stretches = np.full(len(starts) * width, np.nan)
    stretches[:n] = values
    absent = np.isnan(stretches)
    lowest, highest = (np.where(absent, fill, stretches).reshape(-1, width) for fill in (np.inf, -np.inf))
    return np.unique(np.concatenate([starts + lowest.argmin(axis=1), starts + highest.argmax(axis=1)]))


def rounded(value: float | None) -> float | None:
    """A number at drawing precision; None where there is none to draw."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def rows(frame: pl.DataFrame, columns: Sequence[str]) -> Rows:
    """The frame's rows for a figure, numbers rounded."""
    return [
        {name: rounded(value) if isinstance(value, float) else value for name, value in row.items()}
        for row in frame.select(columns).iter_rows(named=True)
    ]
