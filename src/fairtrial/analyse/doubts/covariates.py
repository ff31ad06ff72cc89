"""Doubts about comparisons with covariates: an arm that seems to move what is to be measured before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.analyse.doubts.comparisons import of
from fairtrial.analyse.models import Comparison, Doubt

LEVEL: Final = 0.01  # false alarms per covariate and comparison where the arm moves none


def about(comparison: Comparison) -> Iterator[Doubt]:
    """What the covariates of a comparison give reason for."""
    adjustment = comparison.covariates
    for each in () if adjustment is None else adjustment.covariates:
        if each.p_shift is None or each.p_shift >= LEVEL:
            continue
        size = f"{each.shift:.4g} times the baseline's" if each.scale == "ratio" else f"{each.shift:+.4g} different"
        yield of(
            comparison,
            code="covariate_moved",
            message=f"{each.name} is {size} before trials of this arm (p = {each.p_shift:.2g})",
            advice="what the arm does by way of the covariate is missing in the adjusted estimate: rely on the plain "
            "one, and find out what of the arm is in effect, or left from its last trial, before a trial begins",
        )
