"""From p values to verdicts: each role's family adjusted in its own way, then one rule for all.

Primary metrics are claims: Holm, and Dunnett within a cell where several arms share its baseline. Secondary metrics are
a screening: Benjamini-Hochberg, exploratory. Guardrails are no family (`guardrails` says why).

The rule, first that applies (docs/decisions/inference.md, 0010 says why): none, where the run is
unfinished or an expectation failed; undecided, where no exact test of so few trials could claim; equivalent; faster
or slower; undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from fairtrial.analyse.inference import families, guardrails
from fairtrial.analyse.inference.comparing import ComparisonOptions
from fairtrial.analyse.inference.guardrails import withheld
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.models import Adjustment, Comparison, Estimand, Role
from fairtrial.analyse.result import Verdict
from fairtrial.study.catalogue import MetricDefinition

CLAIMS: Final = ("faster", "slower", "equivalent")
NOTHING_MISSING: Final[Mapping[Role, int]] = MappingProxyType({})


def judge(
    comparisons: Sequence[Comparison],
    *,
    metrics: Mapping[str, MetricDefinition],
    setting: ComparisonOptions,
    without_verdict: Callable[[Comparison], bool],
    missing: Mapping[Role, int] = NOTHING_MISSING,
) -> list[Comparison]:
    """Adjusts comparisons within their role's family and gives every comparison its verdict, in order.

    Claims of a difference keep their familywise error at the setting's level, and so do claims of equivalence; of a
    screening both keep the share of false ones. A comparison that could not be tested stays in its family with p = 1,
    so that losing data never makes the others easier to claim; so do the `missing` ones of each role without any data.
    """
    judged = list(comparisons)
    for role, adjust in _FAMILIES.items():
        family = [index for index, each in enumerate(comparisons) if each.role == role]
        of_role = [comparisons[index] for index in family]
        adjusted = adjust(of_role, missing.get(role, 0), setting.once) if family else []
        for index, changed in zip(family, adjusted, strict=True):
            judged[index] = changed
    return [
        _with_verdict(each, metrics[each.metric], setting=setting, withhold=without_verdict(each)) for each in judged
    ]


def _with_verdict(
    comparison: Comparison, definition: MetricDefinition, *, setting: ComparisonOptions, withhold: bool
) -> Comparison:
    if withhold:
        return withheld(comparison.model_copy(update={"verdict": "none"}), "none")
    if not comparison.claimable:
        return withheld(comparison.model_copy(update={"verdict": "undecided"}), "unclear")
    decision = verdict(comparison, definition, alpha=setting.alpha)
    about = comparison.model_copy(update={"verdict": decision, "estimand": _estimand(comparison, decision)})
    return guardrails.about(about, better=definition.better)


def _estimand(comparison: Comparison, decision: Verdict) -> Estimand | None:
    """What a claim is about: the mean, too, where what is left open of it bears the claim out.

    Only some trials where the typical one is the baseline's: stalls in six of 24 trials are a claim about no other.
    """
    if decision not in CLAIMS:
        return None
    if decision != "equivalent" and not comparison.typical_moves:
        return "some"
    left = comparison.mean
    if left is None or left.low is None or left.high is None:
        return "typical"
    if decision == "equivalent":
        within = 1 / (1 + comparison.margin) < left.low and left.high < 1 + comparison.margin
        return "mean" if within else "typical"
    nothing = 0.0 if comparison.ratio.estimate is None else 1.0
    rise = left.low > nothing if rises(comparison) else left.high < nothing
    return "mean" if rise else "typical"


def _claims(family: Sequence[Comparison], missing: int, once: bool) -> list[Comparison]:  # noqa: FBT001 - of a table
    """Rules that look often stop by Holm alone, so their verdicts are Holm's."""
    groups = [(each.cell, each.metric, "" if once else each.arm) for each in family]
    places = list(dict.fromkeys(groups))
    members = [[index for index, group in enumerate(groups) if group == place] for place in places]
    width = max(map(len, members))
    p, shares = np.full((2, len(places) + missing, width), np.nan)
    shares[:] = 0.0
    p[len(places) :, 0] = 1.0  # what has no data is a group of its own
    for row, indices in enumerate(members):
        p[row, : len(indices)] = [family[index].p for index in indices]
        shares[row, : len(indices)] = [family[index].baseline_share for index in indices]
    p_adjusted = families.step_down(p, shares)
    differs = np.empty(len(family))
    for row, indices in enumerate(members):
        differs[indices] = p_adjusted[row, : len(indices)]
    same = families.holm(_equivalences(family, missing))
    return _adjusted(family, differs, same, adjustment="holm" if width == 1 else "dunnett")


def _screening(family: Sequence[Comparison], missing: int, _once: bool) -> list[Comparison]:  # noqa: FBT001
    differs = families.benjamini_hochberg(np.array([each.p for each in family] + [1.0] * missing))
    same = families.benjamini_hochberg(_equivalences(family, missing))
    return _adjusted(family, differs, same, adjustment="benjamini_hochberg")


def _equivalences(family: Sequence[Comparison], missing: int) -> Values:
    return np.array([1.0 if each.p_equivalence is None else each.p_equivalence for each in family] + [1.0] * missing)


def _adjusted(
    family: Sequence[Comparison], differs: Values, same: Values, *, adjustment: Adjustment
) -> list[Comparison]:
    return [
        each.model_copy(
            update={
                "p_adjusted": float(p),
                "p_equivalence_adjusted": None if each.p_equivalence is None else float(equal),
                "adjustment": adjustment,
            }
        )
        for each, p, equal in zip(family, differs, same, strict=False)  # the missing come last and are nobody's
    ]


def verdict(comparison: Comparison, definition: MetricDefinition, *, alpha: float) -> Verdict:
    """One comparison's verdict, by its adjusted p values where it is of a family, else by its own."""
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


_FAMILIES: Final[Mapping[Role, Callable[[Sequence[Comparison], int, bool], list[Comparison]]]] = MappingProxyType(
    {"primary": _claims, "secondary": _screening}
)
