"""Guardrails of a run that could stop early: non-inferiority that holds although one looked often.

The blocks at which a run stops were chosen by its primary metrics, which a guardrail may move with. So its two tests
are those of a sequential rule of one side, read at the look at which its cell stopped.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from fairtrial.analyse.inference import guardrails, sensitivity
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.models import Guardrail
from fairtrial.analyse.sequential import anytime
from fairtrial.analyse.sequential.rule import Rule, one_sided_reach

Mean = tuple[float, float]  # and its standard error, infinite where there is none


def p_looked_at(p: Values, n: int, rule: Rule) -> Values:
    """Student's one-sided p values after n blocks, as all looks before leave them; 1 where the rule does not look."""
    if n not in rule.looks:
        return np.ones_like(p)
    if rule.kind == "anytime":
        t = special.stdtrit(n - 1, p)
        return np.where(t < 0, anytime.p(t, n), 1.0)
    return rule.boundaries(1).sequential_p(p, n)


def may_claim(n: int, rule: Rule) -> bool:
    """Whether an exact test of so few blocks could: with fewer, two modes look like certainty too often."""
    return n >= rule.enough


def no_better(looked: Guardrail, once: Guardrail, *, worse: int) -> Guardrail:
    """The guardrail after looks, and its bounds as far as those of one look reach further: over classes they may."""
    further = max if worse > 0 else min
    both = (looked.bound, once.bound), (looked.difference_bound, once.difference_bound)
    bounds = [own if own is None or other is None else further(own, other) for own, other in both]
    return looked.model_copy(update={"bound": bounds[0], "difference_bound": bounds[1]})


def looked_at(once: Guardrail, *, n: int, rule: Rule, worse: int, means: tuple[Mean, Mean]) -> Guardrail:
    """The guardrail of a comparison of n blocks; `worse` is 1 where larger values are, else -1.

    `once` is the guardrail had nobody looked before, `means` are of log ratios and of differences.
    """
    kept, breached = p_looked_at(np.array([once.p_kept, once.p_breached]), n, rule).tolist()
    away = worse * one_sided_reach(n, level=rule.alpha, rule=rule)
    on_logs, in_units = (mean + away * error for mean, error in means)
    known = once.bound is not None and math.isfinite(on_logs)
    return once.model_copy(
        update={
            "p_kept": kept,
            "p_breached": breached,
            "outcome": guardrails.outcome(kept, breached, alpha=rule.alpha) if may_claim(n, rule) else "unclear",
            "bound": sensitivity.exponential(on_logs) if known else None,
            "difference_bound": in_units if math.isfinite(in_units) else None,
        }
    )
