"""One comparison with and without its covariates: which of them count, the adjusted estimate, how much it narrows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from fairtrial.analyse.designs.adjusted import CovariateAdjustment, CovariateEffect, LeftOut, NoAdjustment
from fairtrial.analyse.inference import covariates as regressions
from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import TTest, Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Interval

ADDITIVE: Final = ("time_since_boot_s",)  # drift goes with the time that passed, not with its share of a clock's
Arms = Mapping[str, ArmValues]  # level → values of one covariate in one cell


@dataclass(frozen=True)
class Adjusting:
    """What covariates make of one comparison.

    Attributes:
        adjustment: as it is reported.
        deciding: the covariates' differences within blocks, shape (k, n), where the adjusted estimate is to give the
            verdict and can; None elsewhere.
    """

    adjustment: CovariateAdjustment
    deciding: Values | None = None


@dataclass(frozen=True)
class _Covariate:
    """One covariate's differences within the compared blocks, shape (n,); NaN where a trial does not have it."""

    name: str
    scale: Literal["ratio", "difference"]
    differences: Values
    left_out: LeftOut = ""


def adjusting(
    baseline: ArmValues, arm: ArmValues, *, covariates: Mapping[str, Arms], confidence: float, decides: bool
) -> Adjusting:
    """Adjusts the log ratios of the blocks that both arms have; `covariates` in the study's order."""
    blocks = baseline.common(arm)
    first, second = baseline.at(blocks), arm.at(blocks)
    positive = bool((first > 0).all() and (second > 0).all())
    ratios = np.log(second) - np.log(first) if positive else np.full(len(blocks), np.nan)
    plain = t_tests.mean(ratios, confidence=confidence) if positive else None
    found = _distinct([_within(name, (each[baseline.arm], each[arm.arm]), blocks) for name, each in covariates.items()])
    kept = {each.name: each.differences for each in found if not each.left_out}
    bare = CovariateAdjustment(
        covariates=tuple(_effect(each, confidence=confidence) for each in found),
        decides=decides,
        **dict(zip(("plain_ratio", "plain_low", "plain_high"), _ratio(plain), strict=True)),
        reason=_reason(positive=positive, n=len(blocks), kept=len(kept)),
    )
    if bare.reason:
        return Adjusting(bare)
    matrix = np.stack(list(kept.values()))
    fit = regressions.regressed(ratios, matrix)
    test = fit.tests.single(confidence=confidence)
    if plain is None or test is None:
        return Adjusting(bare.model_copy(update={"reason": "not_computable"}))
    slopes = dict(zip(kept, fit.slopes.tolist(), strict=True))
    effects = tuple(each.model_copy(update={"slope": slopes.get(each.name)}) for each in bare.covariates)
    explained = 1 - float(np.square(fit.remaining - test.estimate).sum()) / test.df / float(np.var(ratios, ddof=1))
    estimates = {
        **dict(zip(("ratio", "low", "high"), _ratio(test), strict=True)),
        "p": test.p,
        "df": round(test.df),
        "width": (test.high - test.low) / (plain.high - plain.low),
        "explained": explained,
    }
    adjustment = bare.model_copy(update={"covariates": effects, **estimates})
    return Adjusting(adjustment, deciding=matrix if decides else None)


def by_class(found: CovariateAdjustment, plain: Interval) -> CovariateAdjustment:
    """What is left for values known by class, which least squares cannot take into account: the plain ratio."""
    return CovariateAdjustment(
        covariates=tuple(each.model_copy(update={"slope": None}) for each in found.covariates),
        decides=found.decides,
        plain_ratio=plain.estimate,
        plain_low=plain.low,
        plain_high=plain.high,
        reason="by_class",
    )


def _within(name: str, arms: tuple[ArmValues, ArmValues], blocks: Sequence[int]) -> _Covariate:
    known = [dict(zip(each.blocks, each.values.tolist(), strict=True)) for each in arms]
    first, second = (t_tests.array([each.get(block, math.nan) for block in blocks]) for each in known)
    if np.isnan(first).any() or np.isnan(second).any():
        return _Covariate(name, "difference", second - first, left_out="missing")
    if name not in ADDITIVE and (first > 0).all() and (second > 0).all():
        return _Covariate(name, "ratio", np.log(second) - np.log(first))
    return _Covariate(name, "difference", second - first)


def _distinct(covariates: Sequence[_Covariate]) -> list[_Covariate]:
    """The same, with those left out that do not vary, or not apart from those before them."""
    there = [each for each in covariates if not each.left_out]
    if not there:
        return list(covariates)
    varies = regressions.distinct(np.stack([each.differences for each in there]))
    constant = {each.name for each, own in zip(there, varies.tolist(), strict=True) if not own}
    return [replace(each, left_out="does_not_vary") if each.name in constant else each for each in covariates]


def _reason(*, positive: bool, n: int, kept: int) -> NoAdjustment:
    if not positive:
        return "no_ratio"
    if not kept:
        return "no_covariate"
    return "" if regressions.enough(n, kept) else "few_blocks"


def _effect(covariate: _Covariate, *, confidence: float) -> CovariateEffect:
    known = covariate.left_out != "missing"
    test = t_tests.mean(covariate.differences, confidence=confidence) if known else None
    middle = float(covariate.differences.mean()) if known else None
    return CovariateEffect(
        name=covariate.name,
        slope=None,
        scale=covariate.scale,
        shift=math.exp(middle) if middle is not None and covariate.scale == "ratio" else middle,
        p_shift=None if test is None else test.p,
        left_out=covariate.left_out,
    )


def _ratio(test: TTest | None) -> tuple[float | None, float | None, float | None]:
    if test is None:
        return None, None, None
    ratio, low, high = (
        math.exp(min(t_tests.LARGEST_LOGARITHM, value)) for value in (test.estimate, test.low, test.high)
    )
    return ratio, low, high
