"""Comparisons of a run that could stop early: p values, intervals and detectable effects that looking leaves valid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairtrial.analyse.doubts import comparisons as doubts
from fairtrial.analyse.inference import guardrails, sensitivity, spreads
from fairtrial.analyse.inference.comparing import PAIRED_LOGS, PAIRED_UNITS
from fairtrial.analyse.inference.judging import CLAIMS
from fairtrial.analyse.models import Comparison, Doubt, Guardrail, Interval, Stopping
from fairtrial.analyse.sequential import guarding
from fairtrial.analyse.sequential.following import InterimData, Pairs, SequentialRun
from fairtrial.analyse.sequential.rule import Rule, one_sided_reach, reach
from fairtrial.record.models import Plan
from fairtrial.study.catalogue import MetricDefinition

# The boundary of a look is near p = 0.01; the signs of n blocks allow no exact p below 2 / 2ⁿ, which n = 8 reaches.
BLOCKS_FOR_EXACT: Final = 8
STUDENTS: Final = (PAIRED_LOGS, PAIRED_UNITS)
_SPENDING: Final[Mapping[str, str]] = {"pocock": "Pocock", "obrien_fleming": "O'Brien–Fleming"}


def in_words(rule: Rule) -> str:
    """How p values and intervals were adjusted, as part of a method's name."""
    if rule.kind == "anytime":
        return "always valid (normal mixture)"
    spent = f"adjusted for looks from {rule.first} to {rule.last} blocks ({_SPENDING[rule.spending]} spending)"
    return f"interval widened for stopping by its width, p {spent}" if rule.kind == "precision" else spent


def adjusted(
    comparisons: Sequence[Comparison], run: SequentialRun, metrics: Mapping[str, MetricDefinition]
) -> list[Comparison]:
    """The same comparisons, in order, as they stand after all the looks that a run had."""
    index = {pair.key: number for number, pair in enumerate(run.pairs)}
    results = []
    for each in comparisons:
        number = index[each.cell, each.metric, each.arm]
        guardrail = _guardrail(each, run.pairs[number], metrics[each.metric], rule=run.rule)
        results.append(_adjusted(each, run, number).model_copy(update={"guardrail": guardrail}))
    return results


def stopping(plan: Plan, run: SequentialRun | None) -> Stopping | None:
    """What `Analysis.stopping` holds; None for a design that runs all blocks."""
    if run is None:
        return None
    stops = tuple(run.stops[cell.name] for cell in plan.cells if cell.name in run.stops)
    fewest = {cell.name: 0 for cell in plan.cells}
    for pair, blocks in zip(run.pairs, run.standing.latest.n.tolist(), strict=True):
        fewest[pair.key[0]] = max(fewest.get(pair.key[0], 0), blocks)
    return Stopping(
        rule=in_words(run.rule),
        first=run.rule.first,
        last=run.rule.last,
        cells=stops,
        share=sum(fewest.values()) / (run.rule.last * len(plan.cells)),
    )


def rests_on_normality(comparison: Comparison) -> Iterator[Doubt]:
    """Says where a claim was made with too few blocks for any exact test to make it. Counts, never a false alarm."""
    if comparison.verdict in CLAIMS and comparison.n < BLOCKS_FOR_EXACT:
        yield doubts.of(
            comparison,
            code="rests_on_normality",
            message=f"the claim comes from {comparison.n} blocks: no exact test can reach its level with fewer than "
            f"{BLOCKS_FOR_EXACT}, so it rests on log ratios being roughly normal",
            advice=f"set `trials.min_blocks: {BLOCKS_FOR_EXACT}` if this metric can jump between modes",
        )


def _adjusted(comparison: Comparison, run: SequentialRun, index: int) -> Comparison:
    pair, standing, rule = run.pairs[index], run.standing, run.rule
    away = reach(comparison.n, level=rule.alpha, rule=rule)
    low, high = _interval(pair.whole, away=away)
    below, above = _interval(pair.in_units, away=away)
    within = _within(comparison, pair, rule)
    p, same = float(standing.p[index]), float(standing.same[index])
    p_equivalence = None if comparison.p_equivalence is None else same
    ratio = spreads.ratio(comparison.ratio.estimate, low, high) if pair.whole.logs else comparison.ratio
    difference = Interval(estimate=comparison.difference.estimate, low=below, high=above)
    if not _looked_at_as_tested(comparison):
        p = max(p, comparison.p)
        p_equivalence = None if comparison.p_equivalence is None else max(same, comparison.p_equivalence)
        ratio, difference = _wider(ratio, comparison.ratio), _wider(difference, comparison.difference)
        if within is not None and comparison.equivalence_interval is not None:
            within = _wider(within, comparison.equivalence_interval)
    return comparison.model_copy(
        update={
            "method": f"{comparison.method}, {in_words(rule)}",
            "p_once": comparison.p,
            "p": p,
            "p_equivalence": p_equivalence,
            "ratio": ratio,
            "mean": _mean_interval(comparison, pair, rule),
            "equivalence_interval": within,
            "difference": difference,
            "smallest_effect": _smallest_effect(pair, comparison, run),
        }
    )


def _guardrail(comparison: Comparison, pair: Pairs, definition: MetricDefinition, *, rule: Rule) -> Guardrail | None:
    if comparison.guardrail is None:
        return None
    on_logs = pair.whole.mean() if pair.whole.logs else (0.0, math.inf)
    once = comparison.guardrail
    worse = guardrails.GuardrailRule(better=definition.better, margin=once.margin).worse
    looked = guarding.looked_at(once, n=comparison.n, rule=rule, worse=worse, means=(on_logs, pair.in_units.mean()))
    return looked if _looked_at_as_tested(comparison) else guarding.no_better(looked, once, worse=worse)


def _mean_interval(comparison: Comparison, pair: Pairs, rule: Rule) -> Interval | None:
    """What is left open of the mean, at the level that the family's hardest step asks for at this look."""
    if comparison.mean is None:
        return None
    level = rule.alpha / max(1, comparison.family_size)
    whole = pair.whole
    low, high = _interval(whole, away=reach(comparison.n, level=level, rule=rule))
    if low is None or high is None:
        return None
    mean = whole.mean()[0], low, high
    interval = spreads.mean_interval(mean, n=comparison.n, level=level, size=None if whole.logs else whole.used.size)
    return interval if interval is None or _looked_at_as_tested(comparison) else _wider(interval, comparison.mean)


def _looked_at_as_tested(comparison: Comparison) -> bool:
    """Whether looks, which are Student's, test what the comparison does.

    Values that are known by class, or heaped at zero, have a test of their own, which must agree with a claim.
    """
    return comparison.method in STUDENTS


def _interval(data: InterimData, *, away: float) -> tuple[float | None, float | None]:
    middle, error = data.mean()
    if not (math.isfinite(error) and math.isfinite(away)):
        return None, None
    return middle - away * error, middle + away * error


def _within(comparison: Comparison, pair: Pairs, rule: Rule) -> Interval | None:
    """The interval of the one-sided tests of equivalence."""
    if comparison.equivalence_interval is None:
        return None
    low, high = _interval(pair.whole, away=one_sided_reach(comparison.n, level=rule.alpha, rule=rule))
    return None if low is None else spreads.ratio(comparison.equivalence_interval.estimate, low, high)


def _wider(adjusted: Interval, once: Interval) -> Interval:
    """The adjusted interval, and as far as that of one look reaches further: over classes it may."""
    if adjusted.low is None or adjusted.high is None or once.low is None or once.high is None:
        return Interval(estimate=adjusted.estimate, low=None, high=None)
    return Interval(estimate=adjusted.estimate, low=min(adjusted.low, once.low), high=max(adjusted.high, once.high))


def _smallest_effect(pair: Pairs, comparison: Comparison, run: SequentialRun) -> float | None:
    """What these blocks would have found at this look, with the boundary that Holm's hardest step asks for."""
    error = pair.whole.mean()[1]
    level = run.rule.alpha / max(1, comparison.family_size)
    critical = reach(comparison.n, level=level, rule=run.rule)
    if not (pair.whole.logs and math.isfinite(error) and math.isfinite(critical)):
        return None
    return sensitivity.share(sensitivity.shift_beyond(critical, df=comparison.n - 1) * error)
