"""Whether a metric that must not get worse did not: non-inferiority against a margin, not a missing significance.

A difference that is not significant says nothing of a guardrail: three noisy trials show no difference either. So each
guardrail is tested on both sides of its margin, one-sided at the study's level. Guardrails are not adjusted for each
other: a claim that all are kept needs every one of these tests, which can only lower its error (Berger 1982).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from fairtrial.analyse import t_tests
from fairtrial.analyse.comparing import Matched, Setting, matched
from fairtrial.analyse.measured import Measured
from fairtrial.analyse.models import Comparison, Guardrail, Outcome
from fairtrial.analyse.t_tests import TTest, TTests, Values


@dataclass(frozen=True)
class Rail:
    """One guardrail's rule: which direction is worse, and how far is too far, as a share."""

    better: Literal["higher", "lower"]
    margin: float

    @property
    def worse(self) -> int:
        """1 where larger values are worse, else -1."""
        return 1 if self.better == "lower" else -1


def guarded(baseline: Measured, arm: Measured, *, rail: Rail, setting: Setting) -> Guardrail:
    """Tests one arm on one guardrail; the outcome is `judging`'s to withhold."""
    used = matched(baseline, arm, paired=setting.paired)
    in_units = _test(used, setting=setting)
    difference = None if in_units is None else _bound(in_units, rail=rail, setting=setting)
    if baseline.positive and arm.positive:
        on_logs = _test(Matched(baseline=np.log(used.baseline), arm=np.log(used.arm)), setting=setting)
        kept, breached = (1.0, 1.0) if on_logs is None else _on_logs(on_logs, rail=rail)
        bound = None if on_logs is None else _exponential(_bound(on_logs, rail=rail, setting=setting))
    else:
        kept, breached = _on_values(used, rail=rail, setting=setting)
        bound = None
    return Guardrail(
        margin=rail.margin,
        outcome=outcome(kept, breached, alpha=setting.alpha),
        bound=bound,
        difference_bound=difference,
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
    return comparison.model_copy(update={"guardrail": comparison.guardrail.model_copy(update={"outcome": changed})})


def non_inferiority(tests: TTests, *, worse: int, bound: float) -> tuple[Values, Values]:
    """Gives p of "worse by the bound or more" and p of "worse by the bound at most" of many tests; 1 without."""
    beyond = (worse * tests.estimate - bound) / tests.standard_error
    kept, breached = special.stdtr(tests.df, beyond), special.stdtr(tests.df, -beyond)
    return np.where(np.isnan(kept), 1.0, kept), np.where(np.isnan(breached), 1.0, breached)


def _on_logs(test: TTest, *, rail: Rail) -> tuple[float, float]:
    kept, breached = non_inferiority(test.many, worse=rail.worse, bound=math.log1p(rail.margin))
    return float(kept), float(breached)


def _on_values(used: Matched, *, rail: Rail, setting: Setting) -> tuple[float, float]:
    """Values without logarithm: the arm against the baseline times the margin, a difference that is linear in both.

    A baseline whose mean is not positive has no share; nothing is claimed of it.
    """
    if float(np.mean(used.baseline)) <= 0:
        return 1.0, 1.0
    allowed = (1 + rail.margin) ** rail.worse
    test = _test(Matched(baseline=allowed * used.baseline, arm=used.arm), setting=setting)
    if test is None:
        return 1.0, 1.0
    kept, breached = non_inferiority(test.many, worse=rail.worse, bound=0.0)
    return float(kept), float(breached)


def _test(used: Matched, *, setting: Setting) -> TTest | None:
    test = t_tests.paired if setting.paired else t_tests.welch
    return test(used.baseline, used.arm, confidence=setting.confidence)


def _bound(test: TTest, *, rail: Rail, setting: Setting) -> float:
    """The end in the worse direction of the one-sided interval."""
    return test.estimate + rail.worse * t_tests.quantile(setting.confidence, test.df) * test.standard_error


def _exponential(logarithm: float) -> float | None:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return None
