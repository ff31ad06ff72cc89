"""The rule from p values to verdicts, case by case."""

import pytest
from support.analysis_cases import LATENCY, THROUGHPUT

from fairtrial.analyse.judging import judge, verdict
from fairtrial.analyse.models import Comparison, Interval, Role, Verdict
from fairtrial.study.catalogue import MetricDefinition


def comparison(
    p: float, same: float | None, *, ratio: float | None = 1.1, difference: float = 10.0, role: Role = "primary"
) -> Comparison:
    return Comparison(
        metric="tpm",
        role=role,
        cell="all",
        baseline="a",
        arm="b",
        method="paired t on log ratios over blocks",
        n=10,
        confidence=0.95,
        ratio=Interval(estimate=ratio, low=None, high=None),
        difference=Interval(estimate=difference, low=None, high=None),
        welch=None,
        p=p,
        p_adjusted=None,
        p_equivalence=same,
        family_size=1,
        verdict="undecided",
        smallest_effect=None,
        assumptions=(),
    )


RULES: list[tuple[Comparison, MetricDefinition, Verdict]] = [
    (comparison(0.01, 0.9, ratio=1.1), THROUGHPUT, "faster"),
    (comparison(0.01, 0.9, ratio=0.9), THROUGHPUT, "slower"),
    (comparison(0.01, 0.9, ratio=1.1), LATENCY, "slower"),
    (comparison(0.01, 0.9, ratio=0.9), LATENCY, "faster"),
    (comparison(0.01, 0.01, ratio=1.001), THROUGHPUT, "equivalent"),
    (comparison(0.50, 0.01, ratio=1.001), THROUGHPUT, "equivalent"),
    (comparison(0.50, 0.50, ratio=1.1), THROUGHPUT, "undecided"),
    (comparison(0.05, 0.05, ratio=1.1), THROUGHPUT, "undecided"),  # at the level is not below it
    (comparison(0.01, None, ratio=None, difference=10.0), THROUGHPUT, "faster"),  # no ratio: the difference decides
    (comparison(0.01, None, ratio=None, difference=-10.0), THROUGHPUT, "slower"),
    (comparison(1.00, None, ratio=1.5), THROUGHPUT, "undecided"),
]


@pytest.mark.parametrize(("found", "definition", "expected"), RULES)
def test_the_rule(found: Comparison, definition: MetricDefinition, expected: Verdict) -> None:
    alone = found.model_copy(update={"role": "secondary"})
    assert verdict(alone, definition, alpha=0.05) == expected


def judged(*comparisons: Comparison) -> list[Comparison]:
    return judge(comparisons, metrics={"tpm": THROUGHPUT}, alpha=0.05, without_verdict=lambda _comparison: False)


def test_the_family_adjusts_differences_and_equivalences_apart() -> None:
    found = judged(comparison(0.01, 0.9), comparison(0.03, 0.02), comparison(0.9, 0.04))
    assert [each.p_adjusted for each in found] == pytest.approx([0.03, 0.06, 0.9])
    assert [each.p_equivalence_adjusted for each in found] == pytest.approx([0.9, 0.06, 0.08])
    assert [each.verdict for each in found] == ["faster", "undecided", "undecided"]


def test_a_comparison_without_a_test_still_counts_in_the_family() -> None:
    found = judged(comparison(0.03, 0.9), comparison(1.0, None))
    assert [each.p_adjusted for each in found] == pytest.approx([0.06, 1.0])
    assert found[1].p_equivalence_adjusted is None


def test_metrics_outside_the_family_neither_pay_nor_count() -> None:
    found = judged(comparison(0.04, 0.9), comparison(0.04, 0.9, role="guardrail"))
    assert [(each.p_adjusted, each.verdict) for each in found] == [(0.04, "faster"), (None, "faster")]


def test_a_withheld_verdict_is_withheld_whatever_the_p() -> None:
    (found,) = judge(
        [comparison(0.0001, 0.0001)], metrics={"tpm": THROUGHPUT}, alpha=0.05, without_verdict=lambda _comparison: True
    )
    assert (found.verdict, found.p_adjusted) == ("none", 0.0001)


def test_an_empty_family_is_no_mistake() -> None:
    assert judged() == []
