"""What curves over a numeric factor say: the shape that stands in `report.json` under `curves`.

Values of the metric are in its unit, values of the factor in its own. Intervals hold one at a time at the study's
confidence; bands are pointwise.
"""

from __future__ import annotations

from typing import Literal

from fairtrial.analyse.result import Result
from fairtrial.study.designs.numeric_factors import CurveModel

PeakPosition = Literal["within", "beyond", "before", "open", "none", "excluded"]
Spread = Literal["blocks", "repeats", "scatter"]
Difference = Literal["differs", "undecided", "none"]


class Estimate(Result):
    """An estimate with its interval; None where there is none, at an end: where it is open."""

    estimate: float | None
    low: float | None
    high: float | None


class Peak(Result):
    """Where an arm's throughput is largest.

    Attributes:
        position: `within` the values measured, with its whole interval; `beyond` the largest or `before` the smallest
            of them; `none`: no peak is shown, because coherency may be 0; `excluded`: there is none, because coherency
            is below 0 and contention below 1; else `open`.
        at: of the factor; its high end is None where no end is shown.
        throughput: at the peak; None unless the peak is estimated within the values measured.
    """

    position: PeakPosition
    at: Estimate
    throughput: Estimate | None = None


class Misfit(Result):
    """Lack of fit against pure error: F with Box's correction of both degrees of freedom."""

    f: float
    df: float
    df_error: float
    p: float


class CurvePoint(Result):
    """The curve at one value, and its pointwise band."""

    value: float
    estimate: float
    low: float | None
    high: float | None


class ArmCurve(Result):
    """One arm's curve.

    Attributes:
        parameters: by name. Those that cannot be below 0 are estimated within that bound, and intervals end at it.
        free: parameters without that bound, from which intervals are made.
        misfit: None where nothing is left to tell it from.
    """

    arm: str
    parameters: dict[str, Estimate]
    free: dict[str, float]
    peak: Peak | None = None
    misfit: Misfit | None = None
    line: tuple[CurvePoint, ...]


class ParameterComparison(Result):
    """One parameter of an arm against the baseline's.

    Attributes:
        scale: what `change` is: treatment - baseline, or treatment / baseline.
        p: two-sided, raised towards those of exact tests of the blocks where these are larger.
        p_adjusted: Holm over all parameters of the study's curves.
    """

    parameter: str
    scale: Literal["difference", "ratio"]
    change: Estimate
    p: float
    p_adjusted: float
    family_size: int
    verdict: Difference


class Crossing(Result):
    """A value of the factor at which two curves cross; an end is None where it is beyond the values measured."""

    at: float
    low: float | None
    high: float | None


class CurvePair(Result):
    """An arm's curve against the baseline's.

    Attributes:
        crossings: of the fitted curves, from the smallest to the largest value measured.
        shown: whether the arm is shown to be higher at one measured value and lower at another, with Bonferroni's
            correction over them and over all pairs of the study's curves: without it crossings may be noise.
    """

    arm: str
    parameters: tuple[ParameterComparison, ...]
    crossings: tuple[Crossing, ...]
    shown: bool


class Curves(Result):
    """The curves of all arms on one metric under one combination of the other conditions.

    Attributes:
        cell: its name; levels of every other condition in `levels`.
        values: of the factor, ascending.
        cells: of the analysis, one for each value.
        spread: what intervals rest on: `blocks`; `repeats` at each value where trials are not paired; the `scatter` of
            single trials around the curve, which assumes the model.
        n: blocks or trials at each value.
        reason: why there are no curves; empty where there are.
    """

    metric: str
    cell: str
    levels: dict[str, str]
    over: str
    model: CurveModel
    values: tuple[float, ...]
    cells: tuple[str, ...]
    spread: Spread = "blocks"
    n: int = 0
    confidence: float
    reason: str = ""
    arms: tuple[ArmCurve, ...] = ()
    pairs: tuple[CurvePair, ...] = ()
