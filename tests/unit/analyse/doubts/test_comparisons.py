"""Every doubt: when it is raised, what it says, and how often it cries wolf."""

import inspect
import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from scipy import stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse, within
from fairtrial.analyse.doubts import clients as client_doubts
from fairtrial.analyse.doubts import comparisons as doubts
from fairtrial.analyse.doubts import contents as content_doubts
from fairtrial.analyse.doubts import course, covariates, curves, existing, fitness, layouts
from fairtrial.analyse.doubts import failures as failure_doubts
from fairtrial.analyse.doubts import files as file_doubts
from fairtrial.analyse.doubts import hosts as host_doubts
from fairtrial.analyse.doubts import order as order_doubts
from fairtrial.analyse.doubts import page as page_doubts
from fairtrial.analyse.doubts import readings as reading_doubts
from fairtrial.analyse.doubts import rules as rule_doubts
from fairtrial.analyse.doubts import runs as run_doubts
from fairtrial.analyse.doubts import shutdowns as shutdown_doubts
from fairtrial.analyse.doubts import work as work_doubts
from fairtrial.analyse.inference import spreads
from fairtrial.analyse.inference.comparing import ComparisonOptions, Subject, compare
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import DOUBT_CODES, Analysis, Doubt
from fairtrial.analyse.sequential import adjusting
from fairtrial.imports import asking, gathering, reader
from fairtrial.record.models import SettleResult, TrialData

FACTORS = {"kernel": ["base", "patched"]}
PLACE = {"cell": "all", "metric": "tpm"}


def arm(values: Values, *, start: int = 0, step: int = 1) -> ArmValues:
    n = len(values)
    positions = tuple(range(start, start + n * step, step))
    return ArmValues(arm="base", values=np.asarray(values), blocks=tuple(range(n)), positions=positions, absent=0)


def raised(analysis: Analysis) -> dict[str, Doubt]:
    every = [each for cell in analysis.cells for found in cell.comparisons.values() for each in found]
    return {doubt.code: doubt for doubt in (*analysis.doubts, *(d for each in every for d in each.doubts))}


def analysed(value: Callable[[str, int], float], *, blocks: int = 10, order: str = "randomised_blocks") -> Analysis:
    case = Case(FACTORS, blocks=blocks, order=order)
    return analyse(case.plan(), case.trials(tpm=lambda levels, block: value(levels["kernel"], block)))


def noise(name: str, block: int, sd: float = 10.0) -> float:
    return float(np.random.default_rng([block, len(name)]).normal(0, sd))


def test_quiet_data_raise_no_doubt() -> None:
    assert raised(analysed(lambda name, block: 1000 + noise(name, block))) == {}


def test_an_arm_without_spread() -> None:
    found = raised(analysed(lambda name, block: 15008.0 if name == "patched" else 25000 + noise(name, block)))
    assert found["zero_variance"].arm == "patched"
    assert found["zero_variance"].message == "all 10 values are 15008"


def test_a_count_of_what_never_happened_is_one_doubt_and_no_claim() -> None:
    analysis = analysed(lambda _name, _block: 0.0)
    (comparison,) = analysis.cells[0].comparisons["tpm"]
    assert [doubt.code for doubt in comparison.doubts] == ["zero_variance"]
    assert comparison.doubts[0].message.startswith("all 20 values of both arms are 0:")
    assert (comparison.p, comparison.verdict) == (1.0, "undecided")


def test_comparisons_that_cannot_be_made_are_named() -> None:
    case = Case({"kernel": ["base", "patched"], "memory": ["under", "over"]}, blocks=6)

    def value(levels: Mapping[str, str], block: int) -> float:
        lost = levels["memory"] == "over" and (block < 4) == (levels["kernel"] == "base")
        return float("nan") if lost else 1000 + noise("".join(levels.values()), block)

    analysis = analyse(case.plan(), case.trials(tpm=value))
    assert analysis.cells[1].comparisons["tpm"] == ()
    (doubt,) = [doubt for doubt in analysis.doubts if doubt.code == "missing"]
    assert doubt.message.startswith("1 of 2 comparisons cannot be made")
    assert doubt.message.endswith("block with the baseline: over, tpm, patched")


def test_values_from_histogram_bins() -> None:
    found = raised(analysed(lambda name, block: 131 * round((14550 + noise(name, block, 60)) / 131)))
    assert "the closest are 131 apart" in found["quantised"].message


def test_missing_values_are_counted_and_the_pair_is_left_out() -> None:
    found = raised(
        analysed(lambda name, block: float("nan") if (name, block) == ("base", 4) else 1000 + noise(name, block))
    )
    assert found["missing"].message == "1 of 10 used trials have no finite value"
    assert "9 of base, 10 of patched, 9 pairs" in found["unequal_n"].message


def test_unequal_arms_without_blocks() -> None:
    found = raised(
        analysed(
            lambda name, block: float("inf") if (name, block) == ("base", 4) else 1000 + noise(name, block),
            order="sequential",
        )
    )
    assert found["unequal_n"].message == "9 trials of base but 10 of patched"


def test_drift_is_stated_as_a_share_of_the_mean() -> None:
    found = raised(analysed(lambda name, block: 1000 * 1.01**block + noise(name, block, 2)))
    assert found["drift"].message.startswith("values drift by +9.")
    assert "protected" in found["drift"].advice


def test_drift_where_arms_ran_one_after_the_other_is_worse() -> None:
    found = raised(analysed(lambda name, block: 1000 * 1.01**block + noise(name, block, 2), order="sequential"))
    assert "may be the difference" in found["drift"].advice


def test_abba_balances_the_arm_only() -> None:
    case = Case({"kernel": ["base", "patched"], "memory": ["under", "over"]}, blocks=6, order="abba")
    trials = case.trials(tpm=lambda levels, block: 1000 + noise("".join(levels.values()), block))
    assert "not_randomised" not in raised(analyse(case.plan(), trials))
    assert "balances kernel only" in raised(analyse(case.plan(), trials, contrast="memory"))["not_randomised"].message


def test_values_sorted_in_every_cell_are_pasted_data() -> None:
    found = raised(analysed(lambda name, block: 1000 + block**1.5 + len(name)))
    assert "in 2 of 2 groups (all base, all patched)" in found["sorted"].message


@pytest.mark.parametrize(("blocks", "doubted"), [(2, True), (3, True), (5, True), (6, False), (10, False)])
def test_too_few_blocks_for_any_exact_test(blocks: int, *, doubted: bool) -> None:
    found = raised(analysed(lambda name, block: 1000 + 500 * (name == "base") + noise(name, block), blocks=blocks))
    assert ("few_blocks" in found) == doubted
    if blocks == 3:
        said = "1 of 1 comparison rests on as few as 3 blocks, 0 with a claim; no exact test can go below p = 0.25"
        assert said in found["few_blocks"].message


def test_a_family_asks_for_more_blocks_than_one_comparison() -> None:
    """Six blocks reach 0.031: enough for one comparison, not for Holm's first of ten."""
    memory = [f"m{number}" for number in range(10)]
    case = Case({"kernel": ["base", "patched"], "memory": memory}, blocks=6)
    trials = case.trials(tpm=lambda levels, block: 1000 + noise("".join(levels.values()), block))
    doubt = raised(analyse(case.plan(), trials))["few_blocks"]
    assert "10 of 10 comparisons rest on as few as 6 blocks" in doubt.message
    assert doubt.message.endswith("below p = 0.031 there, and 0.005 is needed")
    assert doubt.advice.endswith("run at least 9 blocks")


def test_trials_that_began_on_a_busy_disk_are_counted() -> None:
    case = Case(FACTORS, blocks=10)
    trials = case.trials(tpm=lambda levels, block: 1000 + noise(levels["kernel"], block))
    busy = []
    for number, each in enumerate(trials):
        settled = SettleResult(dirty_bytes=2**20 * number, dropped=False, waited_s=0.0, at_rest=number < 18)
        busy.append(each.model_copy(update={"data": TrialData(settled=settled)}))
    doubt = raised(analyse(case.plan(), busy))["not_at_rest"]
    assert doubt.message.startswith("2 of 20 used trials began while the kernel was still writing pages")
    assert doubt.message.endswith(f"{busy[19].trial.id} with 19 MiB")
    assert "not_at_rest" not in raised(analyse(case.plan(), busy[:18]))


def test_trials_that_found_the_page_cache_of_those_before_them_are_counted_by_arm() -> None:
    case = Case(FACTORS, blocks=3)
    trials = []
    for number, each in enumerate(case.trials(tpm=lambda _levels, block: 1000 + block)):
        settled = SettleResult(dirty_bytes=0, dropped=number % 3 > 0, waited_s=0.0)
        trials.append(each.model_copy(update={"data": TrialData(settled=settled)}))
    kept = [each.trial.arm for each in trials if each.data.settled and not each.data.settled.dropped]
    doubt = raised(analyse(case.plan(), trials))["cache_kept"]
    assert "before 2 of 6 used trials" in doubt.message
    assert all(f"{kept.count(name)} of {name}" in doubt.message for name in kept)
    assert "cache_kept" not in raised(analyse(case.plan(), trials[1:3]))


def test_programs_that_trials_left_running_are_counted_and_named() -> None:
    case = Case(FACTORS, blocks=3)
    trials = case.trials(tpm=lambda _levels, block: 1000 + block)
    left = [each.model_copy(update={"left_running": ["bench", "sh"]}) for each in trials[:2]]
    doubt = raised(analyse(case.plan(), [*left, *trials[2:]]))["left_running"]
    assert doubt.message.startswith(
        "in 2 of 6 used trials the server or the load had left programs running (bench, sh)"
    )
    assert "left_running" not in raised(analyse(case.plan(), trials))


def test_trials_whose_client_had_no_pause_are_counted() -> None:
    case = Case(FACTORS, blocks=10)
    trials = case.trials(tpm=lambda levels, block: 1000 + noise(levels["kernel"], block))
    shares = [0.5] * 17 + [0.91, 0.99, 0.95]
    busy = [
        each.model_copy(update={"scalars": each.scalars | {"client_busy_share": share}})
        for each, share in zip(trials, shares, strict=True)
    ]
    doubt = raised(analyse(case.plan(), busy))["client_saturated"]
    assert doubt.message.startswith("in 3 of 20 used trials")
    assert doubt.message.endswith(f"in {busy[18].trial.id} it was busy for 99 % of the time")
    assert "client_saturated" not in raised(analyse(case.plan(), busy[:17]))


def test_clocks_under_emulation_are_no_evidence_and_counts_are() -> None:
    case = Case(FACTORS, blocks=10)
    trials = case.trials(tpm=lambda levels, block: 1000 + noise(levels["kernel"], block))
    accelerators = ["kvm"] * 17 + ["tcg"] * 3
    emulated = [
        each.model_copy(update={"subject": {"accelerator": name}})
        for each, name in zip(trials, accelerators, strict=True)
    ]
    assert "emulated" not in raised(analyse(case.plan(), emulated)), "the case's own metric is a count"
    plan = case.plan()
    clock = plan.metrics.definitions["tpm"].model_copy(update={"kind": "wall_clock"})
    metrics = plan.metrics.model_copy(update={"definitions": plan.metrics.definitions | {"tpm": clock}})
    timed = plan.model_copy(update={"metrics": metrics})
    doubt = raised(analyse(timed, emulated))["emulated"]
    assert doubt.message == "3 of 20 used trials ran under software emulation, where tpm is not evidence"
    assert "emulated" not in raised(analyse(timed, emulated[:17]))


def test_trials_in_which_transactions_were_given_up_are_counted() -> None:
    case = Case(FACTORS, blocks=10)
    trials = case.trials(tpm=lambda levels, block: 1000 + noise(levels["kernel"], block))
    shares = [0.0] * 18 + [0.25, 0.125]
    left = [
        each.model_copy(update={"scalars": each.scalars | {"timed_out_share": share}})
        for each, share in zip(trials, shares, strict=True)
    ]
    doubt = raised(analyse(case.plan(), left))["timed_out"]
    assert doubt.message.startswith("in 2 of 20 used trials")
    assert doubt.message.endswith(f"in {left[18].trial.id} a share of 0.25 of those that were due")
    assert "timed_out" not in raised(analyse(case.plan(), left[:18]))


def test_latencies_beyond_the_histogram_are_counted() -> None:
    case = Case(FACTORS, blocks=10)
    trials = case.trials(tpm=lambda levels, block: 1000 + noise(levels["kernel"], block))
    counts = [0] * 18 + [4, 7]
    slow = [
        each.model_copy(update={"scalars": each.scalars | {"saturated_latencies": count}})
        for each, count in zip(trials, counts, strict=True)
    ]
    doubt = raised(analyse(case.plan(), slow))["latency_saturated"]
    assert doubt.message.startswith("11 transactions of 2 used trials took longer than an hour")
    assert doubt.message.endswith(f"7 of them in {slow[19].trial.id}")
    assert "latency_saturated" not in raised(analyse(case.plan(), slow[:18]))


def test_pairing_that_finds_what_welch_does_not_is_said() -> None:
    found = raised(
        analysed(lambda name, block: 1000 + 60 * ((block * 7) % 10) + 10 * (name == "base") + noise(name, block, 3))
    )
    assert "only the paired test finds a difference" in found["disagreement"].message


def test_welch_that_finds_what_pairing_does_not_is_said() -> None:
    def swapping(name: str, block: int) -> float:
        swing = 30 * ((block * 7) % 10 - 4.5)
        return 1000 + swing if name == "base" else 1100 - swing

    found = raised(analysed(swapping))
    assert "only Welch's test finds a difference" in found["disagreement"].message


SETTING = ComparisonOptions(paired=True, confidence=0.95, margin=0.02, family_size=1)
SUBJECT = Subject(metric="tpm", role="primary", cell="all")


def disagreements(baseline: Values, other: Values, *, covariates: Values | None = None) -> list[str]:
    pair = arm(baseline), arm(other)
    comparison = compare(*pair, subject=SUBJECT, setting=SETTING, covariates=covariates)
    found = doubts.about(comparison, *pair, alpha=0.05)
    return [doubt.message.split(" (")[0] for doubt in found if doubt.code == "disagreement"]


def test_two_groups_of_trials_are_not_said_to_be_noise_of_pairing() -> None:
    random = np.random.default_rng(25)
    base, other = 150 + random.normal(0, 1, (2, 10))
    other[random.random(10) < 0.4] *= 0.85
    comparison = compare(arm(base), arm(other), subject=SUBJECT, setting=SETTING)
    assert comparison.welch is not None
    assert comparison.p_by_t is not None
    assert max(comparison.p_by_t, comparison.welch.p) < 0.05
    assert comparison.p > 0.1, "exact tests raise it"
    assert disagreements(base, other) == ["only the t test finds a difference"]


def test_what_covariates_find_is_not_said_to_be_the_merit_of_pairing() -> None:
    random = np.random.default_rng(5)
    load, own = random.normal(0, 0.1, (2, 12)), random.normal(0, 0.01, (2, 12))
    base, other = np.exp(5 + np.array([[0.0], [0.02]]) - load + own)
    covariates = (load[1] - load[0])[None, :]
    assert compare(arm(base), arm(other), subject=SUBJECT, setting=SETTING, covariates=covariates).p < 0.05
    assert stats.ttest_rel(np.log(other), np.log(base)).pvalue > 0.1
    assert disagreements(base, other, covariates=covariates) == []


def test_exchanging_arms_is_not_said_to_be_noise_of_pairing() -> None:
    base, other = np.array([1.0, 0, 1, 0, 0, 0, 0, 0]), np.array([1.0, 2, 1, 2, 2, 1, 0, 0])
    comparison = compare(arm(base), arm(other), subject=SUBJECT, setting=SETTING)
    assert comparison.welch is not None
    assert max(stats.ttest_rel(other, base).pvalue, comparison.welch.p) < 0.05
    assert comparison.p > 0.1, "of exchanges"
    assert disagreements(base, other) == []


@pytest.mark.parametrize(
    ("values", "probability"),
    [([1, 2], 1.0), ([1, 2, 3], 1 / 3), ([1, 2, 2, 3], 2 * 2 / 24), ([5, 5, 5], 1.0), (list(range(10)), 2 / 3628800)],
)
def test_the_chance_of_sorted_values_by_counting_orders(values: list[float], probability: float) -> None:
    assert run_doubts.monotone_probability(np.array(values, float)) == pytest.approx(probability)


def test_the_chance_of_at_least_k_events_is_the_binomial_tail() -> None:
    assert run_doubts.at_least(0, [0.3, 0.3]) == pytest.approx(1)
    assert run_doubts.at_least(1, [0.3, 0.3]) == pytest.approx(1 - 0.49)
    assert run_doubts.at_least(2, [0.3, 0.5]) == pytest.approx(0.15)


def test_the_slope_is_the_regression_with_a_mean_for_each_group() -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(100, 1, 8), random.normal(200, 1, 9)
    found = run_doubts.slope([("a", arm(np.exp(first / 100))), ("b", arm(np.exp(second / 100), start=8))])
    design = np.zeros((17, 3))
    design[:8, 0] = design[8:, 1] = 1
    design[:, 2] = np.arange(17)
    beta, squares, *_ = np.linalg.lstsq(design, np.concatenate([first, second]) / 100, rcond=None)
    assert found is not None
    assert found.change == pytest.approx(np.expm1(beta[2] * 16))
    error = np.sqrt(squares[0] / 14 * np.linalg.inv(design.T @ design)[2, 2])
    assert found.p == pytest.approx(run_doubts.t_tests.two_sided_p(beta[2] / error, 14))


REPLICATES = 2000


def rate(check: Callable[[np.random.Generator], bool]) -> float:
    random = np.random.default_rng(1)
    return sum(check(random) for _ in range(REPLICATES)) / REPLICATES


def test_a_drift_larger_than_any_number_is_said_as_a_factor() -> None:
    rising = arm(10.0 ** np.arange(-320, 301, 62))
    (doubt,) = run_doubts.drift("tpm", [("all", rising)], unit="", advice="")
    assert "by a factor of 1.8e+308 from" in doubt.message


@pytest.mark.parametrize("exponent", [-1000, 990])
def test_the_slope_of_values_whose_squares_no_number_holds(exponent: int) -> None:
    values = np.random.default_rng(3).normal(0, 1, 8)
    found, other = (run_doubts.slope([("all", arm(np.ldexp(values, by)))]) for by in (0, exponent))
    assert found is not None
    assert other is not None
    assert (other.change, other.p) == (np.ldexp(found.change, exponent), found.p)


def test_false_alarms_of_the_drift_check() -> None:
    def drifts(random: np.random.Generator) -> bool:
        groups = [("a", arm(random.normal(100, 1, 6), start=start, step=2)) for start in (0, 1)]
        return any(run_doubts.drift("tpm", groups, unit="", advice=""))

    assert 0.003 < rate(drifts) < 0.018


def test_false_alarms_of_the_sorted_check() -> None:
    def sorts(random: np.random.Generator) -> bool:
        return any(run_doubts.sorted_values("tpm", [("a", arm(random.normal(100, 1, 4))) for _ in range(6)]))

    assert rate(sorts) < 0.003


def test_false_alarms_of_the_quantised_check_on_values_rounded_to_a_twentieth_of_their_spread() -> None:
    def ties(random: np.random.Generator) -> bool:
        return any(doubts.quantised(arm(np.round(random.normal(0, 20, 10)) + 1000), PLACE))

    assert rate(ties) < 0.02


def test_false_alarms_of_the_disagreement_check() -> None:
    def disagrees(random: np.random.Generator) -> bool:
        return bool(disagreements(random.normal(1000, 10, 10), random.normal(1000, 10, 10)))

    assert rate(disagrees) < 0.02


def test_every_doubt_of_the_package_has_a_known_code() -> None:
    modules = (
        doubts,
        run_doubts,
        course,
        adjusting,
        within,
        fitness,
        existing,
        file_doubts,
        shutdown_doubts,
        reading_doubts,
        work_doubts,
        client_doubts,
        failure_doubts,
        content_doubts,
        order_doubts,
        spreads,
        rule_doubts,
        page_doubts,
        host_doubts,
        covariates,
        curves,
        layouts,
    )
    source = "".join(inspect.getsource(module) for module in (*modules, asking, gathering, reader))
    assert set(re.findall(r'code="(\w+)"', source)) == set(DOUBT_CODES)
