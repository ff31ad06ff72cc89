"""Guardrails of runs that looked often: the boundary of the look that stopped them, and bounds that agree with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairtrial.analyse.inference import guardrails
from fairtrial.analyse.models import Guardrail
from fairtrial.analyse.sequential import Rule, guarding

RULE = Rule(first=4, last=10, alpha=0.05, bound=math.log1p(0.02))
ANYTIME = Rule(first=4, last=10, alpha=0.05, bound=math.log1p(0.02), kind="anytime")
MARGIN = 0.02


def once(ratios: np.ndarray, *, worse: int = 1, margin: float = MARGIN) -> Guardrail:
    """As one look at these log ratios finds it, by SciPy."""
    bound = worse * math.log1p(margin)
    kept, breached = (
        stats.ttest_1samp(ratios, bound, alternative=side).pvalue
        for side in (("less", "greater") if worse == 1 else ("greater", "less"))
    )
    return Guardrail(
        margin=margin,
        outcome=guardrails.outcome(kept, breached, alpha=0.05),
        bound=1.0,
        difference_bound=0.0,
        p_kept=kept,
        p_breached=breached,
    )


def looked_at(ratios: np.ndarray, *, rule: Rule = RULE, worse: int = 1) -> Guardrail:
    mean = float(ratios.mean()), float(ratios.std(ddof=1) / math.sqrt(len(ratios)))
    return guarding.looked_at(
        once(ratios, worse=worse), n=len(ratios), rule=rule, worse=worse, means=(mean, (1000 * mean[0], 1000 * mean[1]))
    )


def ratios(mean: float, *, n: int = 8, spread: float = 0.01) -> np.ndarray:
    """Exactly this mean and this standard deviation."""
    noise = np.random.default_rng(n).normal(size=n)
    noise -= noise.mean()
    return np.asarray(mean + spread * noise / noise.std(ddof=1))


@pytest.mark.parametrize("rule", [RULE, ANYTIME])
@pytest.mark.parametrize("n", [6, 8, 10])
@pytest.mark.parametrize("worse", [1, -1])
def test_it_is_kept_just_where_its_bound_stays_within_the_margin(rule: Rule, n: int, worse: int) -> None:
    """The test and the one-sided interval are two views of one boundary."""
    for mean in np.linspace(-0.02, 0.04, 61):
        found = looked_at(ratios(worse * mean, n=n), rule=rule, worse=worse)
        assert found.bound is not None
        within = found.bound < 1 + MARGIN if worse == 1 else found.bound > 1 / (1 + MARGIN)
        assert (found.outcome == "kept") == within, mean


def test_looking_often_asks_for_more_than_one_look() -> None:
    found, alone = looked_at(ratios(0.0)), once(ratios(0.0))
    assert alone.p_kept < found.p_kept < 0.05
    almost = ratios(0.0125)
    assert once(almost).outcome == "kept"
    assert looked_at(almost).outcome == "unclear"


def test_a_rule_that_holds_for_ever_asks_for_more_than_one_with_an_end() -> None:
    assert looked_at(ratios(0.0), rule=ANYTIME).p_kept > looked_at(ratios(0.0)).p_kept


def test_what_is_worse_by_far_is_breached_and_says_how_far_it_may_be() -> None:
    found = looked_at(ratios(0.08))
    assert found.outcome == "breached"
    assert found.p_breached < 0.05 < found.p_kept
    assert found.bound is not None
    assert found.bound > math.exp(0.08)


def test_the_worse_direction_is_downwards_where_more_is_better() -> None:
    assert looked_at(ratios(-0.08), worse=-1).outcome == "breached"
    assert looked_at(ratios(0.08), worse=-1).outcome == "kept"


@pytest.mark.parametrize(("n", "outcome"), [(5, "unclear"), (6, "kept")])
def test_so_few_blocks_that_no_exact_test_could_leave_it_unclear(n: int, outcome: str) -> None:
    assert looked_at(ratios(-0.05, n=n, spread=0.001)).outcome == outcome


def test_before_the_first_look_nothing_is_known() -> None:
    found = looked_at(ratios(-0.05, n=3, spread=0.001))
    assert (found.p_kept, found.p_breached, found.outcome) == (1.0, 1.0, "unclear")
    assert found.bound is None
    assert found.difference_bound is None


def test_what_has_no_logarithm_keeps_only_its_bound_in_units() -> None:
    seen = guarding.looked_at(
        once(ratios(0.0)).model_copy(update={"bound": None}),
        n=8,
        rule=RULE,
        worse=1,
        means=((0.0, math.inf), (2.0, 0.5)),
    )
    assert seen.bound is None
    assert seen.difference_bound is not None
    assert seen.difference_bound > 2.0


def test_a_bound_beyond_any_number_is_none() -> None:
    means = ((800.0, 1.0), (0.0, math.inf))
    seen = guarding.looked_at(once(ratios(0.0)), n=8, rule=RULE, worse=1, means=means)
    assert (seen.bound, seen.difference_bound) == (None, None)


def test_the_level_is_used_up_over_all_looks_together() -> None:
    """A guardrail at its margin that is looked at every time crosses its boundary in 5 of 100 runs."""
    noise = np.random.default_rng(5).normal(size=(20_000, RULE.last))
    crossed = np.zeros(len(noise), dtype=bool)
    for n in RULE.looks:
        t = noise[:, :n].mean(axis=1) / (noise[:, :n].std(axis=1, ddof=1) / math.sqrt(n))
        crossed |= guarding.p_looked_at(stats.t.cdf(t, n - 1), n, RULE) < RULE.alpha
    assert crossed.mean() == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / len(noise)))
