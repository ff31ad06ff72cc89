"""What covariates measured before the window make of a comparison.

Owns the shape that stands in `report.json` beside each comparison of a study with covariates. Ratios are treatment /
baseline.
"""

from __future__ import annotations

from typing import Literal

from fairtrial.analyse.result import Result

LeftOut = Literal["", "missing", "does_not_vary"]
NoAdjustment = Literal["", "few_blocks", "no_covariate", "no_ratio", "by_class", "not_computable"]


class CovariateEffect(Result):
    """One covariate in one comparison.

    Attributes:
        slope: of the log ratio of the metric per log ratio of the covariate; per unit where `scale` is a difference.
            None if it is left out.
        scale: how blocks compare the covariate: `ratio` where all of its values are positive, except of a time.
        shift: mean within blocks, arm against baseline, on that scale.
        p_shift: of no such shift, two-sided; None if it cannot be computed. A small one says that the arm moves the
            covariate, or that chance did.
        left_out: why the adjustment does without it.
    """

    name: str
    slope: float | None
    scale: Literal["ratio", "difference"]
    shift: float | None
    p_shift: float | None
    left_out: LeftOut = ""


class CovariateAdjustment(Result):
    """A comparison with and without its covariates.

    Attributes:
        covariates: as the study names them, in its order.
        decides: whether the study chose before the run that the adjusted estimate gives the verdict.
        plain_ratio, plain_low, plain_high: without covariates, at the comparison's confidence.
        ratio, low, high: where no covariate differs between the arms of a block, at the same confidence.
        p: of no effect, two-sided, unadjusted for the family and not held against other tests.
        df: degrees of freedom of its t.
        width: of the interval, on the log scale, as a share of the plain one's; above 1 it is wider.
        explained: share of the variance of the blocks' log ratios that the covariates account for, by residual mean
            squares: below 0 where they cost more than they explain.
        reason: why there is no adjusted estimate.
    """

    covariates: tuple[CovariateEffect, ...]
    decides: bool
    plain_ratio: float | None
    plain_low: float | None
    plain_high: float | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    df: int | None = None
    width: float | None = None
    explained: float | None = None
    reason: NoAdjustment = ""
