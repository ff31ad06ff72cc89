"""What is in the family and what is not; what takes a verdict away; what another contrast pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from support.inference.analysis_cases import Case, invalid
from support.inference.exchanged import by_t

from fairtrial.analyse import analyse
from fairtrial.analyse.inference.guardrails import withheld
from fairtrial.analyse.models import Analysis, Comparison, Doubt
from fairtrial.record.models import RangeExpectation

FACTORS = {"kernel": ["base", "patched"], "memory": ["under", "over"]}
WOBBLE = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)  # percent; the same in every study, so that figures can be checked by hand


def gain(percent: float, *, blocks_matter: float = 0.0):  # noqa: ANN201 - a closure's type says nothing here
    """Values whose patched arm is better by so much, give or take the wobble."""

    def value(levels: Mapping[str, str], block: int) -> float:
        patched = levels["kernel"] == "patched"
        return 100 * (1 + blocks_matter * block) * math.exp((percent + WOBBLE[block - 1]) / 100 if patched else 0)

    return value


def of(analysis: Analysis, cell: str, metric: str) -> Comparison:
    (found,) = next(each for each in analysis.cells if each.cell == cell).comparisons[metric]
    return found


def expecting(low: float | None, high: float | None, *, metric: str = "p99") -> RangeExpectation:
    return RangeExpectation(factor="memory", level="over", metric=metric, low=low, high=high, text="as said")


@pytest.mark.parametrize("role", ["secondary", "guardrails"])
def test_what_stands_outside_the_family_changes_nothing_inside(role: str) -> None:
    """However strong or weak the other metric is, the primary's family, p and verdict are the same."""
    alone = Case(FACTORS, blocks=6)
    beside = Case(FACTORS, blocks=6, roles={"primary": ["tpm"], role: ["p99"]})
    expected = analyse(alone.plan(), alone.trials(tpm=gain(3)))
    for other in (0, 50):
        found = analyse(beside.plan(), beside.trials(tpm=gain(3), p99=gain(other)))
        for cell in ("under", "over"):
            assert of(found, cell, "tpm") == of(expected, cell, "tpm")
            assert of(found, cell, "p99").family_size == (2 if role == "secondary" else 0)
            assert (of(found, cell, "p99").p_adjusted is None) == (role == "guardrails")
    assert of(expected, "over", "tpm").family_size == 2


def test_a_guardrail_is_judged_by_its_own_p_which_the_family_would_not_have_let_pass() -> None:
    """p = 0.035 alone is a finding; two cells in a family make 0.07 of it."""
    guarded = Case(FACTORS, blocks=6, roles={"primary": ["tpm"], "guardrails": ["p99"]})
    primary = Case(FACTORS, blocks=6, roles={"primary": ["p99"]})
    latency = gain(1.75)
    kept = of(analyse(guarded.plan(), guarded.trials(tpm=gain(0), p99=latency)), "over", "p99")
    family = of(analyse(primary.plan(), primary.trials(p99=latency)), "over", "p99")
    assert by_t(kept) == by_t(family)
    assert 0.025 < family.p <= kept.p < 0.05
    assert (kept.verdict, family.verdict) == ("slower", "undecided")
    assert family.p_adjusted == pytest.approx(2 * family.p)


def test_two_primary_metrics_are_one_family() -> None:
    case = Case(FACTORS, blocks=6, roles={"primary": ["tpm", "p99"]})
    analysis = analyse(case.plan(), case.trials(tpm=gain(3), p99=gain(1)))
    assert {of(analysis, cell, metric).family_size for cell in ("under", "over") for metric in ("tpm", "p99")} == {4}


@pytest.mark.parametrize(
    ("low", "high", "met"),
    [
        (100, 100, True),  # both ends belong to the range
        (None, 100, True),
        (100, None, True),
        (None, None, True),
        (100.001, None, False),
        (None, 99.999, False),
        (101, 200, False),
        (-5, 5, False),
    ],
)
def test_an_expectation_takes_the_verdict_of_its_own_cell_and_leaves_the_numbers(
    low: float | None, high: float | None, *, met: bool
) -> None:
    roles = {"primary": ["tpm"]}
    case = Case(FACTORS, blocks=6, roles=roles, expectations=[expecting(low, high)])
    plain = Case(FACTORS, blocks=6, roles=roles)
    constant = {"tpm": gain(8), "p99": lambda _levels, _block: 100.0}
    found, expected = (analyse(each.plan(), each.trials(**constant)) for each in (case, plain))
    over = of(found, "over", "tpm")
    assert of(expected, "over", "tpm").verdict == "faster"
    claimed = of(expected, "over", "tpm")
    assert over == (claimed if met else claimed.model_copy(update={"verdict": "none", "estimand": None}))
    assert of(found, "under", "tpm") == of(expected, "under", "tpm")
    (result,) = next(each for each in found.cells if each.cell == "over").expectations
    assert (result.met, result.mean, result.n) == (met, 100.0, 6)
    assert ("expectation_failed" in {doubt.code for doubt in found.doubts}) is not met


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_expectation_without_a_finite_value_is_not_met_even_by_an_open_range(value: float) -> None:
    case = Case(FACTORS, blocks=6, expectations=[expecting(None, None)])
    found = analyse(case.plan(), case.trials(tpm=gain(8), p99=lambda _levels, _block: value))
    assert of(found, "over", "tpm").verdict == "none"
    assert "no valid trial of" in next(doubt.message for doubt in found.doubts if doubt.code == "expectation_failed")


def test_a_metric_nobody_measures_fails_its_expectation() -> None:
    case = Case(FACTORS, blocks=6, expectations=[expecting(0, None, metric="absent")])
    found = analyse(case.plan(), case.trials(tpm=gain(8)))
    assert (of(found, "over", "tpm").verdict, of(found, "under", "tpm").verdict) == ("none", "faster")


def by_kernel(base: float, patched: float):  # noqa: ANN201 - a closure's type says nothing here
    return lambda levels, _block: patched if levels["kernel"] == "patched" else base


def left(analysis: Analysis) -> list[Doubt]:
    return [doubt for doubt in analysis.doubts if doubt.code == "arm_leaves_condition"]


def test_an_expectation_is_the_baseline_s_not_the_mean_of_both_arms() -> None:
    """Base 90, patched 110: the mean of both is 100, and neither arm is near it."""
    case = Case(FACTORS, blocks=6, expectations=[expecting(99, 101)])
    found = analyse(case.plan(), case.trials(tpm=gain(8), p99=by_kernel(90, 110)))
    assert of(found, "over", "tpm").verdict == "none"
    (doubt,) = [doubt for doubt in found.doubts if doubt.code == "expectation_failed"]
    assert doubt.message == "expected as said, but the mean of 6 trials of base is 90"
    assert left(found) == [], "nobody leaves a condition that was never there"


def test_an_arm_that_changes_the_condition_keeps_its_verdict_and_is_doubted() -> None:
    case = Case(FACTORS, blocks=6, expectations=[expecting(99, 101)])
    found = analyse(case.plan(), case.trials(tpm=gain(8), p99=by_kernel(100, 7)))
    assert of(found, "over", "tpm").verdict == "faster"
    (doubt,) = left(found)
    assert (doubt.cell, doubt.metric, doubt.arm) == ("over", "p99", "patched")
    assert doubt.message == "in over the mean p99 is 100 with base, as expected (as said), but 7 with patched"


def test_a_condition_is_the_arm_s_baseline_s_whatever_is_compared() -> None:
    case = Case(FACTORS, blocks=6, expectations=[expecting(99, 101)])
    trials = case.trials(
        tpm=lambda levels, block: 100.0 + block + 50 * (levels["memory"] == "over"), p99=by_kernel(100, 7)
    )
    found = analyse(case.plan(), trials, contrast="memory")
    assert {of(found, cell, "tpm").verdict for cell in ("base", "patched")} == {"faster"}
    assert [(doubt.cell, doubt.arm) for doubt in left(found)] == [("over", "patched")]


def test_two_labels_of_one_baseline_leave_no_condition() -> None:
    """An A/A run is judged by its first label; that the other lies outside is noise."""
    case = Case({**FACTORS, "kernel": ["base", "base-again"]}, blocks=6, expectations=[expecting(99, 101)])
    trials = case.trials(tpm=gain(0), p99=lambda levels, _: 102.0 if levels["kernel"] == "base-again" else 101.0)
    found = analyse(case.plan().model_copy(update={"against_itself": True}), trials)
    (result,) = next(each for each in found.cells if each.cell == "over").expectations
    assert (result.met, result.mean, [each.inside for each in result.by_arm]) == (True, 101.0, [True, False])
    assert of(found, "over", "tpm").verdict != "none"
    assert left(found) == []


def test_an_unfinished_run_has_the_same_numbers_and_no_verdict() -> None:
    case = Case(FACTORS, blocks=6, roles={"primary": ["tpm"], "guardrails": ["p99"]})
    trials = case.trials(tpm=gain(8), p99=gain(-8))
    finished, cut = analyse(case.plan(), trials), analyse(case.plan(), trials, finished=False)
    for cell in ("under", "over"):
        for metric in ("tpm", "p99"):
            whole = of(finished, cell, metric)
            assert whole.verdict == "faster"
            assert of(cut, cell, metric) == withheld(
                whole.model_copy(update={"verdict": "none", "estimand": None}), "none"
            )
    assert next(doubt.code for doubt in cut.doubts) == "unfinished"


def test_another_contrast_pairs_trials_of_one_block_of_one_arm() -> None:
    """Memory within a kernel: the same block of two planned cells. Blocks rise by 50 %: only right pairs agree.

    `over` is 3 % better, with no noise but block 2's; the ratio of every pair is 1.03, and 1.04 in block 2.
    """
    case = Case(FACTORS, blocks=4)

    def value(levels: Mapping[str, str], block: int) -> float:
        over = 1.04 if block == 2 else 1.03
        return (
            1000 * 1.5**block * (over if levels["memory"] == "over" else 1) * (2 if levels["kernel"] != "base" else 1)
        )

    found = analyse(case.plan(), case.trials(tpm=value), contrast="memory")
    for cell in ("base", "patched"):
        each = of(found, cell, "tpm")
        assert (each.baseline, each.arm, each.n) == ("under", "over", 4)
        assert each.ratio.estimate == pytest.approx((1.03**3 * 1.04) ** 0.25)
        assert each.ratio.high is not None
        assert each.ratio.high < 1.05


def test_an_invalid_trial_and_its_replacement_change_counts_only() -> None:
    """The voided block is kept in the record and has no part in any number."""
    case = Case(FACTORS, blocks=6, roles={"primary": ["tpm"], "secondary": ["p99"]})
    trials = case.trials(tpm=gain(2), p99=gain(1))
    planned_as_7 = [
        each.model_copy(update={"trial": each.trial.model_copy(update={"block": 7})})
        if (each.trial.cell, each.trial.block) == ("over", 3)
        else each
        for each in trials
    ]
    broken = [
        invalid(each).model_copy(update={"scalars": {"tpm": 1e9, "p99": 1e-9}})
        if each.trial.arm == "base"
        else each.model_copy(update={"scalars": {"tpm": 5.0, "p99": 1e12}})
        for each in trials
        if (each.trial.cell, each.trial.block) == ("over", 3)
    ]
    expected, found = analyse(case.plan(), trials), analyse(case.plan(), [*planned_as_7, *broken])
    for cell in ("under", "over"):
        for metric in ("tpm", "p99"):
            assert of(found, cell, metric) == of(expected, cell, metric)
    assert found.counts.model_dump() == expected.counts.model_dump() | {
        "finished": 26, "valid": 25, "invalid": 1, "blocks_voided": 1, "blocks_replaced": 1
    }  # fmt: skip
    assert {doubt.code for doubt in found.doubts} - {doubt.code for doubt in expected.doubts} == {"voided"}
