"""What the analysis of a screening says: main effects, what they are judged by, and what is nominated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairtrial.analyse.result import Result

ErrorSource = Literal["replicates", "unassigned columns", "Lenth", "none"]


class MainEffect(Result):
    """One option on one metric, averaged over all other options.

    Attributes:
        low, high: names of the levels compared, high over low.
        ratio: of the geometric means of trials at the high and at the low level.
        interval: of the ratio, one at a time; None without an error estimate.
        simultaneous: of the ratio, for all options together.
        t: effect over its standard error, or over Lenth's pseudo standard error.
        p: two-sided, unadjusted.
        p_adjusted: over all options of the metric.
        stands_out: whether the adjusted p is below the study's level. It nominates, and is no verdict.
        mixed_with: interactions of two other options that cannot be told from it, and both of whose options have
            larger effects: what it may be instead.
    """

    option: str
    low: str
    high: str
    effect: float
    ratio: float
    interval: tuple[float, float] | None
    simultaneous: tuple[float, float] | None
    t: float | None
    p: float | None
    p_adjusted: float | None
    stands_out: bool
    mixed_with: tuple[str, ...] = ()


class MixedInteractions(Result):
    """A column of the matrix that no option has: interactions of two options that cannot be told from each other."""

    interactions: tuple[str, ...]
    effect: float
    ratio: float


class ScreenedMetric(Result):
    """All options on one metric.

    Attributes:
        n: trials used.
        error: what effects are judged by: `replicates` of rows, the columns that no option has, or Lenth's pseudo
            standard error of the effects themselves. Nothing is judged where it is no larger than rounding.
        df: degrees of freedom of the error; of Lenth's, about a third of the effects.
        sd: of one trial, on the log scale; None by Lenth's method.
        standard_error: of an effect (a log ratio); Lenth's pseudo standard error; None where nothing is judged.
        margin, simultaneous_margin: how far an effect of nothing may lie from 0, alone and the largest of all.
        effects: strongest first.
        columns: strongest first, of designs of two levels; what interactions have to say.
        curvature: strongest first, of designs of three levels: the middle level over the geometric mean of its ends;
            left out elsewhere.
        lack_of_fit_p: whether the columns that no option has hold more than noise; None without replicates.
    """

    metric: str
    n: int
    error: ErrorSource
    df: float | None
    sd: float | None
    standard_error: float | None
    margin: float | None
    simultaneous_margin: float | None
    effects: tuple[MainEffect, ...]
    columns: tuple[MixedInteractions, ...] = ()
    curvature: Annotated[tuple[MainEffect, ...], Field(exclude_if=lambda curvature: not curvature)] = ()
    lack_of_fit_p: float | None = None


class ScreeningResult(Result):
    """A screening: it claims nothing, and says what is worth a paired study.

    Attributes:
        metrics: those with effects, primary ones first.
        nominated: options, strongest first, by the first of `metrics`; none without any.
        absent: metrics with values that have no logarithm, or with rows missing so that effects cannot be told apart.
    """

    metrics: tuple[ScreenedMetric, ...]
    nominated: tuple[str, ...]
    absent: tuple[str, ...] = ()
