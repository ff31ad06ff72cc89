"""A comparison as the analysis would give it, from SciPy's own tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from fairtrial.analyse.inference import ranks
from fairtrial.analyse.models import (
    Comparison,
    Guardrail,
    Interval,
    RankOpinion,
    Role,
    Stalls,
    Summary,
    Welch,
)
from fairtrial.analyse.result import Verdict


def compared(baseline: Summary, arm: Summary, *, metric: str, cell: str, role: Role) -> Comparison:
    """Paired over blocks on log ratios, with every opinion beside it."""
    a, b = (dict(zip(each.blocks, each.values, strict=True)) for each in (baseline, arm))
    logs = stats.ttest_1samp([np.log(b[block] / a[block]) for block in a], 0)
    raw = stats.ttest_1samp([b[block] - a[block] for block in a], 0)
    welch = stats.ttest_ind(arm.values, baseline.values, equal_var=False)
    p_adjusted = min(1.0, 2 * logs.pvalue) if role == "primary" else None
    faster = (logs.statistic > 0) == metric.startswith("throughput")
    significant = (logs.pvalue if p_adjusted is None else p_adjusted) < 0.05
    verdict: Verdict = ("faster" if faster else "slower") if significant else "undecided"
    level = 0.05 / 2 if role == "primary" else 0.05
    share = 1 - level ** (1 / len(a))  # of an arm's trials, that may stall unseen
    ends = logs.confidence_interval(1 - level)
    low, high = (float(np.exp(end) * 0.85**by) for end, by in ((ends.low, share), (ends.high, -share)))
    return Comparison(
        metric=metric,
        role=role,
        cell=cell,
        baseline=baseline.arm,
        arm=arm.arm,
        method="paired t on log ratios over blocks",
        n=len(a),
        confidence=0.95,
        ratio=_interval(logs, np.exp),
        mean=Interval(estimate=float(np.exp((ends.low + ends.high) / 2)), low=low, high=high),
        difference=_interval(raw, float),
        welch=Welch(
            t=welch.statistic,
            df=welch.df,
            p=welch.pvalue,
            difference=Interval(
                estimate=arm.mean - baseline.mean,
                low=welch.confidence_interval(0.95).low,
                high=welch.confidence_interval(0.95).high,
            ),
        ),
        p=logs.pvalue,
        p_adjusted=p_adjusted,
        margin=0.02,
        p_equivalence=0.4,
        family_size=2 if role == "primary" else 0,
        verdict=verdict,
        estimand=None if verdict == "undecided" else "mean" if low > 1 or high < 1 else "typical",
        stalls=Stalls(share=share, depth=0.15, worth=1 - 0.85**share),
        smallest_effect=0.034,
        adjustment="holm" if role == "primary" else "none",
        rank=_rank(np.array([np.log(b[block] / a[block]) for block in a])),
        guardrail=_guarded(logs) if role == "guardrail" else None,
        assumptions=("log ratios are nearly normal",),
    )


def _rank(log_ratios: np.ndarray) -> RankOpinion:
    test = ranks.signed_rank(log_ratios, confidence=0.95)
    assert test is not None
    low, high = (None if end is None else float(np.exp(end)) for end in (test.low, test.high))
    return RankOpinion(
        method="Wilcoxon signed rank over blocks",
        scale="ratio",
        shift=Interval(estimate=float(np.exp(test.estimate)), low=low, high=high),
        p=test.p,
        smallest_p=test.smallest_p,
        exact=True,
        tied=test.tied,
    )


def _guarded(test: Any) -> Guardrail:
    """Lower is better: both one-sided p values at a margin of 2 %, by the noncentral shift of the test's own t."""
    error = (test.confidence_interval(0.9).high - test.confidence_interval(0.9).low) / 2
    error /= stats.t.ppf(0.95, test.df)
    beyond = test.statistic - math.log(1.02) / error
    kept, breached = stats.t.cdf(beyond, test.df), stats.t.sf(beyond, test.df)
    return Guardrail(
        margin=0.02,
        outcome="kept" if kept < 0.05 else "breached" if breached < 0.05 else "unclear",
        bound=math.exp(test.confidence_interval(0.9).high),
        difference_bound=None,
        p_kept=kept,
        p_breached=breached,
    )


def _interval(test: Any, transformed: Any) -> Interval:
    """The interval of a one-sample t test, its middle being the mean."""
    low, high = test.confidence_interval(0.95)
    return Interval(estimate=transformed((low + high) / 2), low=transformed(low), high=transformed(high))
