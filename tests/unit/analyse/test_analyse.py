"""The whole analysis, from trials to verdicts."""

import math
import random as shuffling
import shutil
import subprocess
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.inference.analysis_cases import Case, Value, invalid, planned, trial
from support.inference.exchanged import by_t, raised

from fairtrial.analyse import analyse
from fairtrial.analyse.inference.families import holm
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.errors import InputError, RecordError
from fairtrial.record.models import RangeExpectation, TrialRecord
from fairtrial.study.service_counters import CounterMetric

FACTORS = {"kernel": ["base", "patched"], "memory": ["under", "over"]}


def noisy(effect: Mapping[tuple[str, str], float], *, sd: float = 0.01, seed: int = 7) -> Value:
    """1000 times the effect of (kernel, memory), times block and trial noise that only depend on the seed."""

    def value(levels: Mapping[str, str], block: int) -> float:
        shared = np.random.default_rng([seed, block]).normal(0, 5 * sd)
        own = np.random.default_rng([seed, block, *map(ord, "".join(levels.values()))]).normal(0, sd)
        return float(1000 * effect.get((levels["kernel"], levels["memory"]), 1.0) * math.exp(shared + own))

    return value


def only(analysis: Analysis, cell: str, metric: str = "tpm") -> Comparison:
    (comparison,) = next(each for each in analysis.cells if each.cell == cell).comparisons[metric]
    return comparison


CASE = Case(FACTORS, blocks=10)
TRIALS = CASE.trials(tpm=noisy({("patched", "over"): 1.08}))


def test_an_effect_is_found_where_it_is_and_equivalence_where_it_is_not() -> None:
    analysis = analyse(CASE.plan(), TRIALS)
    assert (only(analysis, "over").verdict, only(analysis, "under").verdict) == ("faster", "equivalent")
    assert only(analysis, "over").family_size == 2
    assert analysis.contrast == "kernel"
    assert analysis.levels == ("base", "patched")
    assert analysis.doubts == ()


def test_the_ratio_is_the_paired_t_of_log_ratios() -> None:
    comparison = only(analyse(CASE.plan(), TRIALS), "over")
    values = {(each.trial.arm, each.trial.block): each.scalars["tpm"] for each in TRIALS if each.trial.cell == "over"}
    logs = [math.log(values["patched", block] / values["base", block]) for block in range(1, 11)]
    theirs = stats.ttest_1samp(logs, 0)
    interval = theirs.confidence_interval(0.95)
    assert comparison.method == "paired t on log ratios over blocks"
    assert by_t(comparison) == pytest.approx(theirs.pvalue)
    assert comparison.p == pytest.approx(raised(theirs.pvalue, logs, family=comparison.family_size))
    found = (comparison.ratio.estimate, comparison.ratio.low, comparison.ratio.high)
    assert found == pytest.approx(tuple(map(math.exp, (np.mean(logs), interval.low, interval.high))))


def test_a_metric_where_lower_is_better_turns_the_verdict_not_the_ratio() -> None:
    case = Case(FACTORS, blocks=10, roles={"primary": ["p99"]})
    comparison = only(analyse(case.plan(), case.trials(p99=noisy({("patched", "over"): 1.08}))), "over", "p99")
    assert comparison.verdict == "slower"
    assert comparison.ratio.low is not None
    assert comparison.ratio.low > 1


def test_without_blocks_welch_on_logs_decides_and_the_order_is_doubted() -> None:
    case = Case(FACTORS, blocks=10, order="sequential")
    analysis = analyse(case.plan(), TRIALS)
    comparison = only(analysis, "over")
    logs = [
        np.log([each.scalars["tpm"] for each in TRIALS if (each.trial.cell, each.trial.arm) == ("over", arm)])
        for arm in FACTORS["kernel"]
    ]
    assert comparison.method == "Welch on logs"
    assert by_t(comparison) == pytest.approx(stats.ttest_ind(logs[1], logs[0], equal_var=False).pvalue)
    assert not analysis.paired
    assert "not_randomised" in {doubt.code for doubt in analysis.doubts}


def test_another_factor_is_compared_within_the_arms_of_the_same_record() -> None:
    analysis = analyse(CASE.plan(), TRIALS, contrast="memory")
    assert [cell.levels for cell in analysis.cells] == [{"kernel": "base"}, {"kernel": "patched"}]
    assert (only(analysis, "base").verdict, only(analysis, "patched").verdict) == ("equivalent", "faster")
    assert only(analysis, "patched").baseline == "under"


def test_comparing_an_unknown_factor_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"`disk` is not a factor of the study: expected one of kernel, memory"):
        analyse(CASE.plan(), TRIALS, contrast="disk")


def test_an_invalid_trial_takes_its_block_out_of_both_arms_and_a_new_block_in() -> None:
    plan = CASE.plan()
    broken = [invalid(each) if each.trial.id == "over.b03.base" else each for each in TRIALS]
    added = [
        trial(
            planned("over", arm, 11, position=40 + index),
            levels={"kernel": arm, "memory": "over"},
            scalars={"tpm": 1000.0 + index},
        )
        for index, arm in enumerate(FACTORS["kernel"])
    ]
    analysis = analyse(plan, [*broken, *added])
    cell = next(each for each in analysis.cells if each.cell == "over")
    assert [summary.blocks for summary in cell.summaries["tpm"]] == [(1, 2, 4, 5, 6, 7, 8, 9, 10, 11)] * 2
    assert analysis.counts.model_dump() == {
        "planned": 40,
        "finished": 42,
        "valid": 41,
        "invalid": 1,
        "diagnostic": 0,
        "late": 0,
        "used": 40,
        "blocks_voided": 1,
        "blocks_replaced": 1,
        "rows": 0,
    }
    (doubt,) = [doubt for doubt in analysis.doubts if doubt.code == "voided"]
    assert "1 block voided (1 of over), 1 replaced; 1 invalid trial; 2 finished trials excluded" in doubt.message


def test_a_block_replaced_in_one_cell_loses_its_partner_in_another_contrast_and_says_so() -> None:
    broken = [invalid(each) if each.trial.id == "over.b03.base" else each for each in TRIALS]
    comparison = only(analyse(CASE.plan(), broken, contrast="memory"), "base")
    assert comparison.n == 9
    assert [doubt.code for doubt in comparison.doubts if doubt.code == "unequal_n"]


def test_an_unfinished_run_has_estimates_and_no_verdict() -> None:
    analysis = analyse(CASE.plan(), TRIALS[:24], finished=False)
    assert {comparison.verdict for cell in analysis.cells for comparison in cell.comparisons["tpm"]} == {"none"}
    assert only(analysis, "over").n == 6
    assert analysis.doubts[0].message == "the run ended after 24 of 40 planned trials"


def test_no_trials_give_an_empty_analysis() -> None:
    analysis = analyse(CASE.plan(), [], finished=False)
    assert [(cell.summaries["tpm"], cell.comparisons["tpm"]) for cell in analysis.cells] == [((), ())] * 2


SWAPPED = RangeExpectation(factor="memory", level="over", metric="p99", low=8.0, high=12.0, text="p99: 8..12")


@pytest.mark.parametrize(("swapped", "verdict"), [(10.0, "faster"), (13.0, "none")])
def test_a_cell_that_is_not_what_its_name_says_gets_no_verdict(swapped: float, verdict: str) -> None:
    case = Case(FACTORS, blocks=10, expectations=[SWAPPED])
    trials = case.trials(tpm=noisy({("patched", "over"): 1.08}), p99=lambda _levels, _block: swapped)
    analysis = analyse(case.plan(), trials)
    assert only(analysis, "over").verdict == verdict
    assert only(analysis, "under").verdict == "equivalent"
    (result,) = analysis.cells[1].expectations
    assert (result.mean, result.n, result.met) == (swapped, 10, verdict == "faster")
    assert ("expectation_failed" in {doubt.code for doubt in analysis.doubts}) == (verdict == "none")


def test_a_failed_expectation_also_silences_contrasts_that_use_the_cell() -> None:
    case = Case(FACTORS, blocks=10, expectations=[SWAPPED])
    trials = case.trials(tpm=noisy({}), p99=lambda _levels, _block: 1.0)
    analysis = analyse(case.plan(), trials, contrast="memory")
    assert {only(analysis, cell).verdict for cell in ("base", "patched")} == {"none"}


def test_only_primary_metrics_are_of_the_family() -> None:
    case = Case(
        {"kernel": ["a", "b", "c"], "memory": ["x", "y"]}, blocks=8, roles={"primary": ["tpm"], "guardrails": ["p99"]}
    )
    analysis = analyse(case.plan(), case.trials(tpm=noisy({}), p99=noisy({}, seed=8)))
    every = [each for cell in analysis.cells for found in cell.comparisons.values() for each in found]
    assert [each.family_size for each in every if each.role == "primary"] == [4] * 4
    guardrails = [(each.family_size, each.p_adjusted) for each in every if each.role == "guardrail"]
    assert guardrails == [(0, None)] * 4
    adjusted = [each.p_adjusted for each in every if each.role == "primary"]
    assert adjusted == pytest.approx(holm([each.p for each in every if each.role == "primary"]))


def test_significance_that_the_family_takes_back_is_undecided() -> None:
    """p = 0.03 alone is a claim, among ten it is not."""
    levels = [f"m{number}" for number in range(10)]

    def value(found: Mapping[str, str], block: int) -> float:
        if found["memory"] == "m0" and found["kernel"] == "patched":
            return 1000 * math.exp(0.04 + 0.05 * ((block * 7) % 10 - 4.5) / 3.0277)
        return 1000 * math.exp(0.05 * ((block * 3 + len(found["kernel"])) % 10 - 4.5) / 3.0277)

    case = Case({"kernel": ["base", "patched"], "memory": levels[:1]}, blocks=10)
    alone = only(analyse(case.plan(), case.trials(tpm=value)), "m0")
    family = Case({"kernel": ["base", "patched"], "memory": levels}, blocks=10)
    among = only(analyse(family.plan(), family.trials(tpm=value)), "m0")
    assert 0.005 < alone.p < 0.05
    assert (alone.verdict, among.verdict) == ("faster", "undecided")


def test_a_small_sure_difference_within_the_margin_is_equivalent_and_keeps_its_p() -> None:
    comparison = only(analyse(CASE.plan(), CASE.trials(tpm=noisy({("patched", "over"): 1.005}, sd=0.001))), "over")
    assert comparison.p < 0.001
    assert comparison.verdict == "equivalent"


@pytest.mark.parametrize(
    ("order", "stop"), [("randomised_blocks", "fixed"), ("sequential", "fixed"), ("randomised_blocks", "sequential")]
)
def test_what_is_called_equivalent_has_its_interval_within_the_margin(order: str, stop: str) -> None:
    beyond = 0
    for seed in range(40):
        case = Case({"kernel": ["base", "patched"]}, blocks=8, order=order)
        random = np.random.default_rng(seed)
        trials = case.trials(tpm=lambda _levels, _block, random=random: float(np.exp(random.normal(0, 0.01))))
        plan = case.plan()
        design = plan.design.model_copy(update={"stop": stop, "min_blocks": 6, "equivalence": True})
        found = only(analyse(plan.model_copy(update={"design": design}), trials), "all")
        if found.verdict == "equivalent":
            assert found.equivalence_interval is not None
            low, high = found.equivalence_interval.low, found.equivalence_interval.high
            assert low is not None
            assert high is not None
            assert 1 / 1.02 <= low <= high <= 1.02
            assert found.ratio.low is not None
            assert found.ratio.high is not None
            assert stop != "fixed" or found.ratio.low < low < high < found.ratio.high
            beyond += not 1 / 1.02 <= found.ratio.low <= found.ratio.high <= 1.02
    assert beyond, "the two-sided interval may leave it, and is not what decided"


def test_zeros_have_no_ratio_and_are_compared_in_units() -> None:
    def failures(levels: Mapping[str, str], block: int) -> float:
        return (block * 7) % 5 / 10 + (3.0 + block / 10 if levels["kernel"] == "patched" else 0.0)

    case = Case(FACTORS, blocks=8, roles={"primary": ["p99"]})
    comparison = only(analyse(case.plan(), case.trials(p99=failures)), "over", "p99")
    assert comparison.method == "paired permutation of differences over blocks"
    assert (comparison.p, comparison.p_by_t) == (2 / 2**8, None)
    assert comparison.difference.estimate == pytest.approx(3.45)
    assert (comparison.ratio.estimate, comparison.p_equivalence, comparison.smallest_effect) == (None, None, None)
    assert comparison.verdict == "slower"
    (doubt,) = [doubt for doubt in comparison.doubts if doubt.code == "non_positive"]
    assert doubt.message.startswith("1 of 16 values are zero or negative")


@pytest.mark.parametrize(("blocks", "verdict"), [(1, "undecided"), (4, "undecided"), (7, "slower")])
@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e300])
def test_constants_are_held_against_the_exchange_of_arms(blocks: int, verdict: str, unit: float) -> None:
    case = Case(FACTORS, blocks=blocks, roles={"primary": ["p99"]})
    trials = case.trials(p99=lambda levels, _block: unit * (1.0 + 0.5 * (levels["kernel"] == "patched")))
    comparison = only(analyse(case.plan(), trials), "over", "p99")
    assert comparison.p == (1.0 if blocks == 1 else 2 / 2**blocks)
    assert comparison.p_adjusted == min(1.0, 2 * comparison.p)
    assert (comparison.verdict, comparison.ratio.estimate) == (verdict, pytest.approx(1.5))
    assert comparison.p_equivalence == (None if blocks == 1 else 1.0)
    assert (comparison.ratio.low, comparison.smallest_effect) == (None, None)
    (doubt,) = [doubt for doubt in comparison.doubts if doubt.code == "not_computable"]
    assert ("p = 1 stands in for it" in doubt.message) == (blocks == 1)


@pytest.mark.parametrize("exponent", [160, 170])
def test_a_ratio_that_no_number_holds_has_none(exponent: int) -> None:
    random = np.random.default_rng(3)
    case = Case({"kernel": ["base", "patched"]}, blocks=8)
    sign = {"base": -1, "patched": 1}
    trials = case.trials(tpm=lambda levels, _block: 10.0 ** (sign[levels["kernel"]] * exponent) * random.uniform(1, 2))
    ratio = only(analyse(case.plan(), trials), "all").ratio
    assert (ratio.low, ratio.high) == (None, None)


def test_constants_within_the_margin_are_equivalent() -> None:
    case = Case(FACTORS, blocks=7)
    trials = case.trials(tpm=lambda levels, _block: 1000.0 + (levels["kernel"] == "patched"))
    comparison = only(analyse(case.plan(), trials), "over")
    assert comparison.p_equivalence == 1 / 2**7
    assert comparison.verdict == "equivalent"


def test_a_difference_of_one_rounding_is_none() -> None:
    case = Case({"kernel": ["base", "patched"]}, blocks=8)
    trials = case.trials(tpm=lambda levels, _block: -0.3 if levels["kernel"] == "base" else -(0.1 + 0.2))
    comparison = only(analyse(case.plan(), trials), "all")
    assert (comparison.p, comparison.verdict) == (1.0, "undecided")


@pytest.mark.parametrize("zeros", [1, 2])
def test_a_zero_among_ten_values_changes_a_verdict_no_more_than_two_do(zeros: int) -> None:
    case = Case({"kernel": ["base", "patched"]}, blocks=10)
    trials = case.trials(
        tpm=lambda levels, block: 100.0 + block + 5 * (levels["kernel"] == "patched") if block > zeros else 0.0
    )
    comparison = only(analyse(case.plan(), trials), "all")
    assert comparison.method == "paired permutation of differences over blocks"
    assert comparison.verdict == "faster"


def test_two_trials_for_one_place_in_the_design_are_refused() -> None:
    with pytest.raises(RecordError, match="are both arm base in block 1 of cell under"):
        analyse(CASE.plan(), [*TRIALS, TRIALS[0]])


def scaled(trials: list[TrialRecord], factor: float) -> list[TrialRecord]:
    return [each.model_copy(update={"scalars": {"tpm": each.scalars["tpm"] * factor}}) for each in trials]


@settings(max_examples=20)
@given(st.floats(1e-6, 1e6))
def test_the_unit_changes_no_ratio_and_no_verdict(factor: float) -> None:
    one, other = (only(analyse(CASE.plan(), trials), "over") for trials in (TRIALS, scaled(TRIALS, factor)))
    assert one.verdict == other.verdict
    assert one.p == pytest.approx(other.p, rel=1e-6)
    pairs = zip(one.ratio.model_dump().values(), other.ratio.model_dump().values(), strict=True)
    assert all(left == pytest.approx(right, rel=1e-9) for left, right in pairs)


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_the_order_of_the_trials_in_the_call_changes_nothing(seed: int) -> None:
    mixed = list(TRIALS)
    shuffling.Random(seed).shuffle(mixed)
    assert analyse(CASE.plan(), mixed) == analyse(CASE.plan(), TRIALS)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(["randomised_blocks", "sequential"]))
def test_swapping_the_arms_inverts_ratio_and_verdict(seed: int, order: str) -> None:
    case = Case(FACTORS, blocks=6, order=order)
    turned = Case(FACTORS | {"kernel": ["patched", "base"]}, blocks=6, order=order)
    value = noisy({("patched", "over"): 1.03}, seed=seed)
    one = only(analyse(case.plan(), case.trials(tpm=value)), "over")
    other = only(analyse(turned.plan(), turned.trials(tpm=value)), "over")
    opposite = {"faster": "slower", "slower": "faster"}
    assert other.verdict == opposite.get(one.verdict, one.verdict)
    assert one.p == pytest.approx(other.p)
    assert one.p_equivalence == pytest.approx(other.p_equivalence)
    assert one.ratio.estimate is not None
    assert one.ratio.high is not None
    assert (other.ratio.estimate, other.ratio.low) == pytest.approx((1 / one.ratio.estimate, 1 / one.ratio.high))


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_never_lowers_a_p_and_keeps_their_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(p <= q <= 1 for p, q in zip(values, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(values, kind="stable")] == sorted(adjusted)


def test_growth_is_a_count_only_where_its_readings_leave_no_error() -> None:
    own = {"tpm": CounterMetric(prometheus="delta(a_total)", better="higher")}
    plan = CASE.plan()
    plan = plan.model_copy(update={"metrics": plan.metrics.model_copy(update={"own": own})})
    off = [each.model_copy(update={"scalars": {**each.scalars, "tpm_error": 1.0}}) for each in TRIALS[:1]]
    assert analyse(plan, TRIALS).metrics["tpm"].kind == "count"
    assert analyse(plan, [*off, *TRIALS[1:]]).metrics["tpm"].kind == "wall_clock"


@pytest.mark.servers
def test_r_adjusts_the_same() -> None:
    rscript = shutil.which("Rscript")
    assert rscript, "install r-base-core"
    values = [0.01, 0.04, 0.03, 0.005, 0.9, 0.02]
    script = f"cat(p.adjust(c({','.join(map(str, values))}), method = 'holm'))"
    printed = subprocess.run([rscript, "-e", script], check=True, capture_output=True, text=True).stdout
    assert holm(values) == pytest.approx([float(p) for p in printed.split()])
