"""The rule from p values to verdicts, case by case."""

import pytest
from support.inference.analysis_cases import LATENCY, THROUGHPUT

from fairtrial.analyse.inference.comparing import ComparisonOptions
from fairtrial.analyse.inference.judging import judge, verdict
from fairtrial.analyse.models import Comparison, Guardrail, Interval, Outcome, Role
from fairtrial.analyse.result import Verdict
from fairtrial.study.catalogue import MetricDefinition

SETTING = ComparisonOptions(paired=True, confidence=0.95, margin=0.02, family_size=1)


def comparison(
    p: float, same: float | None, *, ratio: float | None = 1.1, difference: float = 10.0, role: Role = "primary"
) -> Comparison:
    """One of a cell of its own."""
    return Comparison(
        metric="tpm",
        role=role,
        cell=f"cell {p} {same}",
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
    return judge(comparisons, metrics={"tpm": THROUGHPUT}, setting=SETTING, without_verdict=lambda _comparison: False)


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


def test_secondary_metrics_are_a_family_of_their_own_by_benjamini_and_hochberg() -> None:
    screened = [comparison(p, 0.9, role="secondary") for p in (0.01, 0.02, 0.03, 0.9)]
    found = judged(comparison(0.04, 0.9), *screened)
    assert found[0].p_adjusted == 0.04
    assert [each.p_adjusted for each in found[1:]] == pytest.approx([0.04, 0.04, 0.04, 0.9])
    assert [each.verdict for each in found[1:]] == ["faster"] * 3 + ["undecided"]
    assert {each.adjustment for each in found[1:]} == {"benjamini_hochberg"}


def test_arms_of_one_cell_share_its_baseline_and_pay_less_than_holm_asks() -> None:
    arms = [
        comparison(p, 0.9).model_copy(update={"cell": "all", "arm": arm, "baseline_share": 0.5})
        for arm, p in (("b", 0.026), ("c", 0.6))
    ]
    first, second = judged(*arms)
    assert first.adjustment == "dunnett"
    assert first.p_adjusted is not None
    assert 0.026 < first.p_adjusted < 0.05 < 2 * 0.026  # Holm would leave it undecided
    assert (first.verdict, second.verdict) == ("faster", "undecided")
    independent = judged(*(each.model_copy(update={"baseline_share": 0.0}) for each in arms))
    assert independent[0].p_adjusted == pytest.approx(1 - (1 - 0.026) ** 2)


def test_too_few_trials_claim_nothing_and_keep_no_guardrail() -> None:
    kept = Guardrail(margin=0.02, outcome="kept", bound=1.0, difference_bound=1.0, p_kept=0.001, p_breached=0.999)
    few = comparison(0.001, 0.9, role="guardrail").model_copy(update={"claimable": False, "guardrail": kept})
    (found,) = judged(few)
    assert found.guardrail is not None
    assert (found.verdict, found.guardrail.outcome) == ("undecided", "unclear")


def test_what_a_role_has_lost_makes_nothing_easier() -> None:
    whole = judge(
        [comparison(0.02, 0.9), comparison(0.01, 0.9, role="secondary")],
        metrics={"tpm": THROUGHPUT},
        setting=SETTING,
        without_verdict=lambda _comparison: False,
        missing={"primary": 2, "secondary": 3},
    )
    assert [each.p_adjusted for each in whole] == pytest.approx([0.06, 0.04])


def test_a_withheld_verdict_is_withheld_whatever_the_p() -> None:
    (found,) = judge(
        [comparison(0.0001, 0.0001)],
        metrics={"tpm": THROUGHPUT},
        setting=SETTING,
        without_verdict=lambda _comparison: True,
    )
    assert (found.verdict, found.p_adjusted) == ("none", 0.0001)


def test_an_empty_family_is_no_mistake() -> None:
    assert judged() == []


@pytest.mark.parametrize(
    ("p", "same", "left", "estimand"),
    [
        (0.01, 0.9, (1.02, 1.2), "mean"),
        (0.01, 0.9, (0.99, 1.2), "typical"),
        (0.01, 0.9, (0.8, 0.99), "typical"),  # on the other side than the claim
        (0.01, 0.9, None, "typical"),
        (0.5, 0.01, (0.985, 1.015), "mean"),
        (0.5, 0.01, (0.97, 1.015), "typical"),
        (0.5, 0.01, (0.985, 1.03), "typical"),
        (0.5, 0.5, (1.02, 1.2), None),
    ],
)
def test_a_claim_is_about_the_mean_where_what_is_left_open_of_it_bears_it_out(
    *, p: float, same: float, left: tuple[float, float] | None, estimand: str | None
) -> None:
    mean = None if left is None else Interval(estimate=1.1, low=left[0], high=left[1])
    (found,) = judged(comparison(p, same).model_copy(update={"mean": mean, "margin": 0.02}))
    assert found.estimand == estimand


@pytest.mark.parametrize(("low", "high", "estimand"), [(2.0, 18.0, "mean"), (-1.0, 21.0, "typical")])
def test_of_differences_the_mean_is_held_against_zero(low: float, high: float, estimand: str) -> None:
    mean = Interval(estimate=10.0, low=low, high=high)
    (found,) = judged(comparison(0.01, None, ratio=None).model_copy(update={"mean": mean}))
    assert (found.verdict, found.estimand) == ("faster", estimand)


@pytest.mark.parametrize(
    ("outcome", "left", "estimand"),
    [
        ("kept", (0.99, 1.05), "mean"),  # higher is better, and the margin 2 %
        ("kept", (0.97, 1.05), "typical"),
        ("breached", (0.9, 0.975), "mean"),
        ("breached", (0.9, 0.985), "typical"),
        ("unclear", (0.9, 0.975), None),
    ],
)
def test_a_guardrail_is_kept_in_the_mean_where_even_unseen_stalls_keep_it(
    *, outcome: Outcome, left: tuple[float, float], estimand: str | None
) -> None:
    rail = Guardrail(margin=0.02, outcome=outcome, bound=1.0, difference_bound=None, p_kept=0.01, p_breached=0.9)
    mean = Interval(estimate=1.0, low=left[0], high=left[1])
    given = comparison(0.5, 0.5, role="guardrail").model_copy(update={"guardrail": rail, "mean": mean})
    (found,) = judged(given)
    assert found.guardrail is not None
    assert found.guardrail.estimand == estimand
