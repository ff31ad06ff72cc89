"""Doubts about curves: a model that does not fit, and parameters that the law of scalability gives no meaning to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.designs.curve_models import ArmCurve, Curves
from fairtrial.analyse.models import Doubt

MISFIT_LEVEL: Final = 0.01  # false alarms per curve, at most
MODELS: Final = {"usl": "the Universal Scalability Law", "linear": "a straight line", "loess": "a local regression"}


def about(curves: Sequence[Curves]) -> Iterator[Doubt]:
    """What fitted curves give reason for."""
    for curve in curves:
        for arm in curve.arms:
            yield from _misfit(curve, arm)
            yield from _superlinear(curve, arm)


def _misfit(curve: Curves, arm: ArmCurve) -> Iterator[Doubt]:
    found = arm.misfit
    if found is None or found.p >= MISFIT_LEVEL:
        return
    yield _doubt(
        curve,
        arm,
        code="curve_misfit",
        message=f"{MODELS[curve.model]} does not fit: means lie off the curve by more than the spread of "
        f"{curve.spread} explains (F = {found.f:.2f}, p = {found.p:.2g})",
        advice="do not quote its parameters and peak: read the values themselves, or fit `loess`",
    )


def _superlinear(curve: Curves, arm: ArmCurve) -> Iterator[Doubt]:
    below = [name for name, each in arm.parameters.items() if each.high == 0 and arm.free[name] < 0]
    if not below:
        return
    named = " and ".join(f"{name} {arm.free[name]:.3g}" for name in below)
    yield _doubt(
        curve,
        arm,
        code="curve_superlinear",
        message=f"without bounds the fit gives {named}, and the whole interval is below 0: throughput grows in more "
        "than proportion, which the law does not allow",
        advice="look for what the first users lack, such as warm caches or a busy device; or fit `loess`",
    )


def _doubt(curve: Curves, arm: ArmCurve, *, code: str, message: str, advice: str) -> Doubt:
    cell = "" if curve.cell == "all" else curve.cell
    return Doubt(code=code, message=message, advice=advice, cell=cell, metric=curve.metric, arm=arm.arm)
