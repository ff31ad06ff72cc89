"""Reasons to trust one comparison less: what its own values show. Each check says how often it cries wolf.

Owns the checks that look at two arms on one metric in one cell. What shows only across a run is in `run_doubts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from fairtrial.analyse.inference import sensitivity, t_tests
from fairtrial.analyse.inference.censoring import DISTINCT_SHARE, SMALLEST_N_TO_TIE
from fairtrial.analyse.inference.comparing import (
    CENSORED,
    EXCHANGED,
    PAIRED_LOGS,
    PAIRED_UNITS,
    WELCH_LOGS,
    ComparisonOptions,
    arm_pair,
    t_test,
)
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison, Doubt

# Paired and Welch's test disagree if one is below the level and the other above this many times the level: without
# the gap, p values of 0.049 and 0.051 would be a finding.
DISAGREEMENT_FACTOR: Final = 2
SPREADS_LEVEL: Final = 0.01  # false alarms per comparison of arms whose spreads are equal


def about(comparison: Comparison, baseline: ArmValues, arm: ArmValues, *, alpha: float) -> Iterator[Doubt]:
    """Every doubt about one comparison, in a fixed order."""
    place = {"cell": comparison.cell, "metric": comparison.metric}
    yield from _missing(baseline, place)
    yield from _missing(arm, place)
    yield from _unequal(comparison, baseline, arm)
    if comparison.method.endswith(CENSORED):
        yield from _interval_censored(comparison, baseline, arm)
        yield from _non_positive(comparison, baseline, arm)
        return
    if _all_equal(baseline, arm):
        yield _nothing_varies(baseline, arm, place)
        return
    yield from _not_computable(comparison)
    for each in (baseline, arm):
        yield from zero_variance(each, place)
        yield from quantised(each, place)
    yield from _non_positive(comparison, baseline, arm)
    yield from _disagreement(comparison, alpha=alpha)
    yield from _rank_disagreement(comparison, alpha=alpha)
    yield from _spreads_differ(comparison)
    yield from _thin_tails(comparison, alpha=alpha)


def _missing(each: ArmValues, place: dict[str, str]) -> Iterator[Doubt]:
    """Never a false alarm: it counts."""
    if each.absent:
        yield Doubt(
            code="missing",
            message=f"{each.absent} of {each.absent + len(each.values)} used trials have no finite value",
            advice="look into those trials: the reason why the metric is missing may depend on the arm",
            arm=each.arm,
            **place,
        )


def of(comparison: Comparison, *, code: str, message: str, advice: str) -> Doubt:
    """A doubt about one comparison, with its place."""
    return Doubt(
        code=code, message=message, advice=advice, cell=comparison.cell, metric=comparison.metric, arm=comparison.arm
    )


def _unequal(comparison: Comparison, baseline: ArmValues, arm: ArmValues) -> Iterator[Doubt]:
    """Never a false alarm: it counts."""
    sizes = len(baseline.values), len(arm.values)
    if comparison.method.startswith("paired"):
        alone = sum(sizes) - 2 * comparison.n
        if alone:
            yield of(
                comparison,
                code="unequal_n",
                message=f"{alone} trials have no partner in their block and are left out of the comparison: "
                f"{sizes[0]} of {baseline.arm}, {sizes[1]} of {arm.arm}, {comparison.n} pairs",
                advice="the means of the arms include them; prefer the ratio, which does not",
            )
    elif sizes[0] != sizes[1]:
        yield of(
            comparison,
            code="unequal_n",
            message=f"{sizes[0]} trials of {baseline.arm} but {sizes[1]} of {arm.arm}",
            advice="find out why trials are missing in one arm: if they failed, the arms are not comparable",
        )


def _not_computable(comparison: Comparison) -> Iterator[Doubt]:
    """Never a false alarm: without an interval there was no t test, or its bounds are too far apart for any number."""
    deciding = comparison.difference if comparison.ratio.estimate is None else comparison.ratio
    if deciding.low is not None:
        return
    if comparison.n < t_tests.SMALLEST_N:
        message = f"no test can be computed (n = {comparison.n}); p = 1 stands in for it"
        advice = "add blocks"
    elif comparison.method in EXCHANGED:
        message = (
            "the values have no spread: there is no interval, and p is that of exchanging arms, 1 in a run that may "
            "stop early"
        )
        advice = "report the values as they are; if the metric is not an exact count, measure more finely"
    else:
        message = f"the interval of the ratio is wider than any number (n = {comparison.n}): the data say nothing of it"
        advice = "find out why single values are thousands of times larger than others, and add blocks"
    yield of(comparison, code="not_computable", message=message, advice=advice)


def _all_equal(baseline: ArmValues, arm: ArmValues) -> bool:
    values = np.concatenate([baseline.values, arm.values])
    return len(values) > 2 and np.ptp(values) == 0  # noqa: PLR2004 - two equal values are no pattern


def _nothing_varies(baseline: ArmValues, arm: ArmValues, place: dict[str, str]) -> Doubt:
    """One doubt for what would be four: a count of failures that is always 0 is the usual case, and a good one."""
    count = len(baseline.values) + len(arm.values)
    return Doubt(
        code="zero_variance",
        message=f"all {count} values of both arms are {arm.values[0]:g}: nothing tells the arms apart",
        advice="fine for a count of events that never happened; otherwise the metric is too coarse",
        arm=arm.arm,
        **place,
    )


def zero_variance(each: ArmValues, place: dict[str, str]) -> Iterator[Doubt]:
    """Never a false alarm for continuous values."""
    if len(each.values) > 1 and np.ptp(each.values) == 0:
        yield Doubt(
            code="zero_variance",
            message=f"all {len(each.values)} values are {each.values[0]:g}",
            advice="fine for an exact count; otherwise the metric is too coarse, and its spread is unknown",
            arm=each.arm,
            **place,
        )


def quantised(each: ArmValues, place: dict[str, str]) -> Iterator[Doubt]:
    """See `DISTINCT_SHARE` for how often it cries wolf."""
    n, distinct = len(each.values), np.unique(each.values)
    if n >= SMALLEST_N_TO_TIE and 1 < len(distinct) <= DISTINCT_SHARE * n:
        step = float(np.diff(distinct).min())
        share = step / t_tests.spread(each.values)
        yield Doubt(
            code="quantised",
            message=f"only {len(distinct)} distinct values among {n}; the closest are {step:g} apart, "
            f"{share:.2g} standard deviations",
            advice="the metric is rounded (histogram bins, timer ticks): spreads and intervals are approximate",
            arm=each.arm,
            **place,
        )


def _interval_censored(comparison: Comparison, baseline: ArmValues, arm: ArmValues) -> Iterator[Doubt]:
    """Only of metrics whose definition tells their resolution; for those never a false alarm."""
    distinct = [len(np.unique(each.values)) for each in (baseline, arm)]
    classes = "classes of searched rates" if comparison.metric.endswith("_per_s") else "histogram classes"
    yield of(
        comparison,
        code="interval_censored",
        message=f"{len(baseline.values)} values of {baseline.arm} fall into {distinct[0]} {classes}, "
        f"{len(arm.values)} of {arm.arm} into {distinct[1]}: the variation within a class is unknown, so the interval "
        "includes the widths of the classes and p is the largest they allow",
        advice="differences finer than a class cannot be seen: measure longer, or judge a finer metric",
    )


def _non_positive(comparison: Comparison, baseline: ArmValues, arm: ArmValues) -> Iterator[Doubt]:
    """Never a false alarm: it counts."""
    if comparison.ratio.estimate is None:
        count = sum(int((each.values <= 0).sum()) for each in (baseline, arm))
        yield of(
            comparison,
            code="non_positive",
            message=f"{count} of {len(baseline.values) + len(arm.values)} values are zero or negative and have no "
            "logarithm: differences are compared instead, there is no ratio and equivalence cannot be shown",
            advice="judge the difference in the metric's unit, or choose a metric that is never zero",
        )


def _disagreement(comparison: Comparison, *, alpha: float) -> Iterator[Doubt]:
    """In about 7 of 1,000 comparisons of equal arms whose blocks do not matter (tests simulate it).

    Of the two t tests: what covariates, exact tests or exchanges make of p has causes other than pairing.
    """
    welch, by_t = comparison.welch, _by_t(comparison)
    if (
        comparison.method not in (PAIRED_LOGS, PAIRED_UNITS)
        or welch is None
        or not _disagree(by_t, welch.p, alpha=alpha)
    ):
        return
    figures = f"paired p = {by_t:.3g}, Welch's p = {welch.p:.3g}"
    if by_t < welch.p:
        message = f"only the paired test finds a difference ({figures}): blocks differ more than arms"
        advice = "this is the purpose of blocks; check for drift before quoting the arms' own intervals"
    else:
        message = f"only Welch's test finds a difference ({figures}): pairing adds noise instead of removing it"
        advice = "look for single blocks in which the arms change places; do not quote Welch's result instead"
    yield of(comparison, code="disagreement", message=message, advice=advice)


def _rank_disagreement(comparison: Comparison, *, alpha: float) -> Iterator[Doubt]:
    """In about 1 of 100 comparisons of equal arms with normal noise (tests simulate it).

    Not where n is too small for the rank test to find anything: `few_blocks` says that.
    """
    rank, by_t = comparison.rank, _by_t(comparison)
    if rank is None or rank.smallest_p >= alpha or not _disagree(by_t, rank.p, alpha=alpha):
        return
    figures = f"t test's p = {by_t:.3g}, {rank.method}'s p = {rank.p:.3g}"
    if by_t < rank.p:
        message = f"only the t test finds a difference ({figures}): single values carry it"
        advice = "look at the trials one by one: the mean may differ while the typical trial does not"
    else:
        message = f"only the rank test finds a difference ({figures}): single values hide it from the mean"
        advice = "find out why single trials are so different; the Hodges-Lehmann estimate is the shift of most trials"
    yield of(comparison, code="disagreement", message=message, advice=advice)


def _by_t(comparison: Comparison) -> float:
    """The t test's own p, whatever exact tests made of it."""
    return comparison.p if comparison.p_by_t is None else comparison.p_by_t


def _disagree(first: float, second: float, *, alpha: float) -> bool:
    return min(first, second) < alpha and max(first, second) > DISAGREEMENT_FACTOR * alpha


def _spreads_differ(comparison: Comparison) -> Iterator[Doubt]:
    """False alarms: `SPREADS_LEVEL` per comparison, whatever the shape of noise that arms share."""
    spreads = comparison.spreads
    if spreads is not None and spreads.p < SPREADS_LEVEL:
        yield of(
            comparison,
            code="spreads_differ",
            message=f"values of {comparison.arm} scatter {spreads.ratio:.2g} times as much as those of "
            f"{comparison.baseline} (p = {spreads.p:.2g}): the noise depends on the arm",
            advice="the ratio of means then differs from the ratio of typical trials: look at the trials one by one, "
            "and say which of the two you mean",
        )


def _thin_tails(comparison: Comparison, *, alpha: float) -> Iterator[Doubt]:
    """In about 3 of 1,000 comparisons of equal arms with normal noise and 10 blocks (tests simulate it)."""
    by_t, rank = comparison.p_by_t, comparison.rank
    if by_t is None or not by_t < alpha <= comparison.p or (rank and rank.p > DISAGREEMENT_FACTOR * alpha):
        return
    yield of(
        comparison,
        code="thin_tails",
        message=f"Student's t alone gives p = {by_t:.3g}, and exact tests of the same trials give "
        f"{comparison.p:.3g}: the interval excludes a difference of zero although p does not reach the level",
        advice="check whether trials fall into two groups, and find out what decides between them; add blocks",
    )


def little_power(
    comparison: Comparison, baseline: ArmValues, arm: ArmValues, *, setting: ComparisonOptions
) -> Iterator[Doubt]:
    """About a claimed difference that may be as small as the margin, where so small a one is seldom found.

    Computed from the trials' own spread, so it is as uncertain as that. Not where the interval leaves the margin out:
    then the difference is no chance find of a small one. Only where a t test of logarithms decided.
    """
    on_logs = comparison.method in (PAIRED_LOGS, WELCH_LOGS)
    if comparison.verdict not in ("faster", "slower") or not on_logs or not comparison.margin:
        return
    test = t_test(arm_pair(baseline, arm, paired=setting.paired).logarithms, setting)
    if test is None:
        return
    level = setting.level(comparison.role)
    margin = math.log1p(comparison.margin)
    low, high = test.interval(confidence=comparison.confidence)
    nearer = low if test.estimate > 0 else -high
    critical, noncentrality = t_tests.quantile(1 - level / 2, test.df), margin / test.standard_error
    power = sensitivity.power(test.df, critical=critical, noncentrality=noncentrality)
    if power >= sensitivity.POWER or nearer >= margin:
        return
    more = sensitivity.exaggeration(test.df, critical=critical, noncentrality=noncentrality) - 1
    yield of(
        comparison,
        code="little_power",
        message=f"if the true difference equals the margin, {_percent(comparison.margin)}, such a study finds it with "
        f"probability {_percent(power)}, and significant estimates are exaggerated by {_percent(more)} on average",
        advice="do not plan with this effect size: it is more likely too large than too small; determine it with more "
        "trials, or with another run of the same size",
    )


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2g} %" if percent < 10 else f"{percent:,.0f} %"  # noqa: PLR2004 - two digits tell enough
