"""What adjusted estimates, layouts and curves can show with so many blocks, from the analysis of a pilot run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fairtrial.analyse.designs.layouts import noise_of
from fairtrial.analyse.inference import sensitivity, t_tests
from fairtrial.analyse.inference.covariates import FEWEST_DF
from fairtrial.analyse.models import Analysis, Comparison


@dataclass(frozen=True)
class Detectable:
    """One estimate of a pilot, and how its error shrinks.

    Attributes:
        of: metric, cell and arm, or metric, cell, arm and parameter.
        noise: standard deviation of what a block says of it, on its own scale.
        scale: what a change is: a share, or a difference of the parameter.
        taken: degrees of freedom that covariates take.
        between: standard deviation between layouts; None where they are no factor.
    """

    of: tuple[str, ...]
    noise: float
    scale: Literal["ratio", "difference"] = "ratio"
    taken: int = 0
    between: float | None = None

    def at(self, blocks: int, *, alpha: float, layouts: int = 0) -> float | None:
        """The smallest change found with power 0.8; None where there is none."""
        df = blocks - 1 - self.taken if self.between is None else layouts - 1
        if df < (FEWEST_DF if self.taken else 1):
            return None
        slopes = self.taken / (df - 1) if self.taken else 0.0  # expected leverage of normal covariates
        error = math.sqrt(self.noise**2 * (1 + slopes) / blocks + (self.between or 0.0) ** 2 / max(layouts, 1))
        change = sensitivity.shift(df, alpha=alpha) * error
        return sensitivity.share(change) if self.scale == "ratio" else change


def adjusted(pilot: Analysis) -> Iterator[Detectable]:
    """Comparisons of primary metrics whose estimate could be adjusted."""
    for each in _compared(pilot):
        found = each.covariates
        if found is None or found.explained is None or found.df is None:
            continue
        plain = _error(*_logs(found.plain_low, found.plain_high), df=each.n - 1, confidence=each.confidence)
        noise = plain * math.sqrt(each.n * (1 - found.explained))
        yield Detectable(_of(each), noise, taken=each.n - 1 - found.df)


def layouts(pilot: Analysis) -> Iterator[Detectable]:
    """Comparisons of primary metrics over layouts of which some have two blocks."""
    for each in _compared(pilot):
        over = each.over_layouts
        noise = None if over is None else noise_of(over, each.confidence)
        if over is not None and over.heterogeneity is not None and noise is not None:
            yield Detectable(_of(each), noise, between=over.heterogeneity.tau)


def curves(pilot: Analysis) -> Iterator[Detectable]:
    """Parameters of curves that arms are compared on, with blocks."""
    for curve in pilot.curves:
        for pair in curve.pairs if curve.spread == "blocks" else ():
            for each in pair.parameters:
                ends = each.change.low, each.change.high
                ends = _logs(*ends) if each.scale == "ratio" else ends
                error = _error(*ends, df=curve.n - 1, confidence=curve.confidence)
                if error > 0:
                    of = curve.metric, curve.cell, pair.arm, each.parameter
                    yield Detectable(of, error * math.sqrt(curve.n), scale=each.scale)


def _compared(pilot: Analysis) -> Iterator[Comparison]:
    for cell in pilot.cells:
        for metric, compared in cell.comparisons.items():
            yield from compared if pilot.roles[metric] == "primary" else ()


def _of(compared: Comparison) -> tuple[str, ...]:
    return compared.metric, compared.cell, compared.arm


def _logs(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    return (math.log(low) if low else None, math.log(high) if high else None)


def _error(low: float | None, high: float | None, *, df: int, confidence: float) -> float:
    """Standard error of an estimate with an interval by t; 0 without one."""
    if low is None or high is None:
        return 0.0
    return (high - low) / 2 / t_tests.quantile((1 + confidence) / 2, df)
