"""From p values to verdicts: Holm over the family of primary comparisons, then one rule for all.

The rule, first that applies (docs/decisions/0010-equivalence-before-significance.md says why):
none, where the run is unfinished or an expectation failed; equivalent; faster or slower; undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statsmodels.stats.multitest import multipletests

from fairtrial.analyse.models import Comparison, Verdict
from fairtrial.study.catalogue import MetricDefinition


def holm(values: Sequence[float]) -> list[float]:
    """Adjusted p values, in order. Source: Holm (1979); R's `p.adjust(method = "holm")`."""
    if not values:
        return []
    return [float(p) for p in multipletests(values, method="holm")[1]]


def judge(
    comparisons: Sequence[Comparison],
    *,
    metrics: Mapping[str, MetricDefinition],
    alpha: float,
    without_verdict: Callable[[Comparison], bool],
    missing: int = 0,
) -> list[Comparison]:
    """Adjusts the primary comparisons together and gives every comparison its verdict, in order.

    Claims of a difference keep their familywise error at `alpha`, and so do claims of equivalence. A comparison that
    could not be tested stays in the family with p = 1, so that losing data never makes the others easier to claim;
    so do the `missing` ones that have no data at all.
    """
    family = [index for index, comparison in enumerate(comparisons) if comparison.role == "primary"]
    lost = [1.0] * missing
    differs = holm([comparisons[index].p for index in family] + lost)[: len(family)]
    same = holm([_or_one(comparisons[index].p_equivalence) for index in family] + lost)[: len(family)]
    judged = list(comparisons)
    for index, p_differs, p_same in zip(family, differs, same, strict=True):
        known = comparisons[index].p_equivalence is not None
        judged[index] = comparisons[index].model_copy(
            update={"p_adjusted": p_differs, "p_equivalence_adjusted": p_same if known else None}
        )
    return [
        each.model_copy(
            update={"verdict": "none" if without_verdict(each) else verdict(each, metrics[each.metric], alpha=alpha)}
        )
        for each in judged
    ]


def verdict(comparison: Comparison, definition: MetricDefinition, *, alpha: float) -> Verdict:
    """One comparison's verdict, by its adjusted p values where it is of the family, else by its own."""
    p = comparison.p if comparison.p_adjusted is None else comparison.p_adjusted
    same = comparison.p_equivalence if comparison.p_adjusted is None else comparison.p_equivalence_adjusted
    if same is not None and same < alpha:
        return "equivalent"
    if p >= alpha:
        return "undecided"
    return "faster" if rises(comparison) == (definition.better == "higher") else "slower"


def rises(comparison: Comparison) -> bool:
    """Whether the arm's values are above the baseline's, on the scale that decided."""
    if comparison.ratio.estimate is not None:
        return comparison.ratio.estimate > 1
    return comparison.difference.estimate is not None and comparison.difference.estimate > 0


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p
