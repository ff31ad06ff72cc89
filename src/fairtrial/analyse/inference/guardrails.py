"""Whether a metric that must not get worse did not: non-inferiority against a margin, not a missing significance.

A difference that is not significant says nothing of a guardrail: three noisy trials show no difference either. So each
guardrail is tested on both sides of its margin, one-sided at the study's level. Guardrails are not adjusted for each
other: a claim that all are kept needs every one of these tests, which can only lower its error (Berger 1982).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from fairtrial.analyse.inference import censoring, sensitivity, t_tests
from fairtrial.analyse.inference.comparing import (
    ArmPair,
    ComparisonOptions,
    arm_pair,
    confirmed_above,
    exchanged_beyond,
    t_test,
    t_tests_by_class,
)
from fairtrial.analyse.inference.t_tests import TTest, TTests, Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison, Estimand, Guardrail, Outcome
from fairtrial.study.catalogue import MetricDefinition


@dataclass(frozen=True)
class GuardrailRule:
    """One guardrail's rule: which direction is worse, how far is too far, as a share, and its metric's resolution."""

    better: Literal["higher", "lower"]
    margin: float
    resolution: float = 0.0

    @property
    def worse(self) -> int:
        """1 where larger values are worse, else -1."""
        return 1 if self.better == "lower" else -1


def rule(definition: MetricDefinition, margins: Mapping[str, float], *, otherwise: float) -> GuardrailRule:
    """Of a metric, by its own margin or the study's."""
    return GuardrailRule(
        better=definition.better,
        margin=margins.get(definition.name, otherwise),
        resolution=definition.resolution,
    )


def guarded(baseline: ArmValues, arm: ArmValues, *, rail: GuardrailRule, setting: ComparisonOptions) -> Guardrail:
    """Tests one arm on one guardrail; the outcome is `judging`'s to withhold."""
    used = arm_pair(baseline, arm, paired=setting.paired)
    in_units = t_test(used, setting)
    logs = t_test(used.logarithms, setting) if baseline.positive and arm.positive else None
    if used.baseline.any() and censoring.by_class(used.baseline, used.arm, resolution=rail.resolution):
        in_units, logs = t_tests_by_class(used, rail.resolution, setting)
        kept, breached = _p_values_by_class(used, logs, rail=rail, setting=setting)
    elif not used.baseline.any():
        kept, breached = _p_values_of_nothing(used, rail=rail, setting=setting)
    else:
        kept, breached = _p_values(_at_the_margin(baseline, arm, used, rail=rail), rail=rail, setting=setting)
    return Guardrail(
        margin=rail.margin,
        outcome=outcome(kept, breached, alpha=setting.alpha),
        bound=None if logs is None else sensitivity.exponential(_bound(logs, rail=rail, setting=setting)),
        difference_bound=None if in_units is None else _bound(in_units, rail=rail, setting=setting),
        p_kept=kept,
        p_breached=breached,
    )


def outcome(kept: float, breached: float, *, alpha: float) -> Outcome:
    """By the two one-sided p values, of which at most one can be small."""
    if kept < alpha:
        return "kept"
    return "breached" if breached < alpha else "unclear"


def withheld(comparison: Comparison, changed: Outcome) -> Comparison:
    """The same comparison with another outcome of its guardrail, if it is one."""
    if comparison.guardrail is None:
        return comparison
    outcome_ = {"outcome": changed, "estimand": None}
    return comparison.model_copy(update={"guardrail": comparison.guardrail.model_copy(update=outcome_)})


def about(comparison: Comparison, *, better: Literal["higher", "lower"]) -> Comparison:
    """The same comparison, with what its guardrail's outcome is about."""
    guardrail, left = comparison.guardrail, comparison.mean
    if guardrail is None or guardrail.outcome in {"none", "unclear"}:
        return comparison
    estimand: Estimand = "typical"
    if left is not None and left.low is not None and left.high is not None and comparison.ratio.estimate is not None:
        rail = GuardrailRule(better=better, margin=guardrail.margin)
        bound = (1 + rail.margin) ** rail.worse
        below, above = left.high < bound, left.low > bound
        borne_out = below if (rail.worse > 0) == (guardrail.outcome == "kept") else above
        estimand = "mean" if borne_out else "typical"
    elif guardrail.outcome == "breached" and not comparison.typical_moves:
        estimand = "some"
    return comparison.model_copy(update={"guardrail": guardrail.model_copy(update={"estimand": estimand})})


def non_inferiority(tests: TTests, *, worse: int, bound: float) -> tuple[Values, Values]:
    """Gives p of "worse by the bound or more" and p of "worse by the bound at most" of many tests; 1 without."""
    beyond = (worse * tests.estimate - bound) / tests.standard_error
    kept, breached = special.stdtr(tests.df, beyond), special.stdtr(tests.df, -beyond)
    return np.where(np.isnan(kept), 1.0, kept), np.where(np.isnan(breached), 1.0, breached)


def _at_the_margin(baseline: ArmValues, arm: ArmValues, used: ArmPair, *, rail: GuardrailRule) -> ArmPair | None:
    """The arm against the baseline made worse by the margin: of logarithms, or a difference that is linear in both.

    A baseline whose mean is not positive has no share; nothing is claimed of it.
    """
    if baseline.positive and arm.positive:
        return used.logarithms.moved(baseline=rail.worse * math.log1p(rail.margin))
    if float(np.mean(used.baseline)) <= 0:
        return None
    return ArmPair(baseline=(1 + rail.margin) ** rail.worse * used.baseline, arm=used.arm)


def _p_values(moved: ArmPair | None, *, rail: GuardrailRule, setting: ComparisonOptions) -> tuple[float, float]:
    """Of kept and of breached, as ranks and the exchange of arms leave them; by these alone where nothing varies."""
    if moved is None:
        return 1.0, 1.0
    test = t_test(moved, setting)
    if test is None:
        return _by_exchange(moved, rail=rail, setting=setting)
    by_t = (float(p) for p in non_inferiority(test.many, worse=rail.worse, bound=0.0))
    sides = (moved.exchanged, moved) if rail.worse > 0 else (moved, moved.exchanged)
    kept, breached = (
        confirmed_above(p, side, setting=setting, level=setting.alpha) for p, side in zip(by_t, sides, strict=True)
    )
    return kept, breached


def _p_values_by_class(
    used: ArmPair, logs: TTest | None, *, rail: GuardrailRule, setting: ComparisonOptions
) -> tuple[float, float]:
    """The same of the least favourable true values that classes allow; 1 where values have no logarithms."""
    if logs is None:
        return 1.0, 1.0
    width = abs(math.log1p(-rail.resolution))
    moved = used.logarithms.moved(baseline=rail.worse * math.log1p(rail.margin))
    beyond = rail.worse * logs.estimate - math.log1p(rail.margin)
    worst, best = moved.moved(arm=rail.worse * width), moved.moved(arm=-rail.worse * width)
    sides = (worst.exchanged, best) if rail.worse > 0 else (worst, best.exchanged)
    by_t = (float(special.stdtr(logs.df, each / logs.standard_error)) for each in (beyond + width, width - beyond))
    kept, breached = (
        confirmed_above(p, side, setting=setting, level=setting.alpha) for p, side in zip(by_t, sides, strict=True)
    )
    return kept, breached


def _by_exchange(moved: ArmPair, *, rail: GuardrailRule, setting: ComparisonOptions) -> tuple[float, float]:
    kept, breached = (exchanged_beyond(moved, setting, sign=sign * rail.worse) for sign in (-1, 1))
    return kept, breached


def _p_values_of_nothing(used: ArmPair, *, rail: GuardrailRule, setting: ComparisonOptions) -> tuple[float, float]:
    """A share of nothing is nothing: kept where no value of the arm is worse than it, breached where they rise."""
    none_worse = not (rail.worse * used.arm > 0).any()
    kept = _by_exchange(used.moved(baseline=rail.worse), rail=rail, setting=setting)[0] if none_worse else 1.0
    return kept, _by_exchange(used, rail=rail, setting=setting)[1]


def _bound(test: TTest, *, rail: GuardrailRule, setting: ComparisonOptions) -> float:
    """The end in the worse direction of the one-sided interval."""
    reach = rail.worse * t_tests.quantile(setting.confidence, test.df) * test.standard_error
    return test.estimate + reach + (test.above if rail.worse > 0 else -test.below)
