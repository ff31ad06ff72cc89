"""Comparisons over several hosts: what holds for these, for hosts like these, and for neither."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.hosts.models import OverHosts
from fairtrial.analyse.inference.hosts import host_means
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.record.models import Plan, TrialRecord

KERNELS = {"kernel": ("a", "b")}
SPEEDS = (1.0, 1.7, 0.6, 3.0, 1.2, 0.9, 2.2, 0.8)

Effect = Callable[[int], float]  # of arm `b` on a host, as a logarithm


def on_hosts(case: Case, effect: Effect, *, hosts: int, spread: float = 0.01, seed: int = 1) -> list[TrialRecord]:
    """Block i on host i modulo `hosts`, each with a speed of its own, the arm's effect there and noise of 1 %."""
    random = np.random.default_rng(seed)

    def value(levels: Mapping[str, str], block: int) -> float:
        at = (block - 1) % hosts
        moved = effect(at) if levels["kernel"] == "b" else 0.0
        return 1000 * SPEEDS[at % len(SPEEDS)] * math.exp(moved + random.normal(0, spread))

    trials = case.trials(tpm=value)
    return [each.model_copy(update={"host": f"node-{(each.trial.block - 1) % hosts + 1}"}) for each in trials]


def only(analysis: Analysis, metric: str = "tpm") -> tuple[Comparison, OverHosts]:
    (comparison,) = analysis.cells[0].comparisons[metric]
    assert comparison.over_hosts is not None
    return comparison, comparison.over_hosts


def log_ratios(trials: Sequence[TrialRecord]) -> dict[str, list[float]]:
    """By host, in the order of blocks."""
    values = {(each.trial.block, each.trial.arm): math.log(each.scalars["tpm"]) for each in trials}
    by_host: dict[str, list[float]] = {}
    for each in trials:
        if each.trial.arm == "b":
            block = each.trial.block
            by_host.setdefault(each.host, []).append(values[block, "b"] - values[block, "a"])
    return by_host


def test_a_run_of_one_place_says_nothing_of_hosts() -> None:
    case = Case(KERNELS, blocks=8)
    trials = [each.model_copy(update={"host": ""}) for each in on_hosts(case, lambda _: 0.05, hosts=4)]
    (comparison,) = analyse(case.plan(), trials).cells[0].comparisons["tpm"]
    assert comparison.over_hosts is None


def test_hosts_are_counted_and_their_speeds_cancel() -> None:
    case = Case(KERNELS, blocks=17)
    trials = on_hosts(case, lambda _: math.log(1.1), hosts=5)
    comparison, over = only(analyse(case.plan(), trials))
    assert [(each.host, each.blocks) for each in over.hosts] == [
        ("node-1", 4),
        ("node-2", 4),
        ("node-3", 3),
        ("node-4", 3),
        ("node-5", 3),
    ]
    by_host = log_ratios(trials)
    for each in over.hosts:
        assert each.ratio == pytest.approx(math.exp(np.mean(by_host[each.host])))
        assert None not in (each.low, each.high)
        assert each.low < each.ratio < each.high  # type: ignore[operator]
    assert (comparison.verdict, over.verdict, over.reason) == ("faster", "faster", "")
    assert over.p_adjusted is not None
    assert over.p_adjusted >= comparison.p  # what is not shown of these hosts is not shown of others


def test_the_figures_are_those_of_the_random_effects() -> None:
    case = Case(KERNELS, blocks=16)
    trials = on_hosts(case, lambda at: 0.02 * at, hosts=6)
    _, over = only(analyse(case.plan(), trials))
    means = host_means([np.array(each) for each in log_ratios(trials).values()])
    known = over.heterogeneity
    assert known is not None
    assert (known.df_between, known.df_within) == (5, 10)
    assert [known.tau**2, known.q, known.p, known.i2] == pytest.approx(
        [float(each) for each in (means.tau2, means.q(), means.p, means.i2)]
    )
    assert known.tau_low < known.tau < known.tau_high
    assert over.ratio is not None
    ends = (float(means.mean) + sign * float(means.reach(0.95)) for sign in (-1, 1))
    assert [over.low, over.high] == pytest.approx([math.exp(end) for end in ends])
    noise = float(means.variances[0]) * 3 / 2  # a further host would have the median of 3, 3, 3, 3, 2 and 2 blocks: 3
    ahead = float(means.prediction_reach(0.95, noise=noise * 2 / 3))
    assert over.prediction_blocks == 3
    assert over.prediction_high == pytest.approx(math.exp(float(means.mean) + ahead))


def test_hosts_that_differ_much_leave_hosts_like_these_undecided() -> None:
    """Blocks on these hosts are many and agree; five hosts are few and do not."""
    case = Case(KERNELS, blocks=40)
    comparison, over = only(analyse(case.plan(), on_hosts(case, lambda at: 0.03 * at - 0.01, hosts=5)))
    assert (comparison.verdict, over.verdict) == ("faster", "undecided")
    assert comparison.ratio.low is not None
    assert over.low is not None
    assert over.low < 1 < comparison.ratio.low
    assert over.prediction_low is not None
    assert over.prediction_low < over.low


@pytest.mark.parametrize(("hosts", "reason"), [(1, "one_host"), (2, "few_hosts"), (4, "few_hosts"), (5, "")])
def test_below_five_hosts_there_is_no_verdict_for_others(hosts: int, reason: str) -> None:
    case = Case(KERNELS, blocks=12)
    comparison, over = only(analyse(case.plan(), on_hosts(case, lambda _: 0.1, hosts=hosts)))
    assert comparison.verdict == "faster"
    assert over.reason == reason
    assert (over.verdict, over.p_adjusted is None) == (("faster", False) if hosts == 5 else (None, True))
    assert (over.ratio is None) == (hosts == 1)


def test_equal_arms_are_equivalent_on_hosts_like_these() -> None:
    case = Case(KERNELS, blocks=20)
    comparison, over = only(analyse(case.plan(), on_hosts(case, lambda _: 0.0, hosts=5)))
    assert (comparison.verdict, over.verdict) == ("equivalent", "equivalent")


def test_with_one_block_per_host_both_are_the_same_t_test() -> None:
    """The noise of blocks is then part of what differs between hosts, and cannot be told from it."""
    case = Case(KERNELS, blocks=8)
    comparison, over = only(analyse(case.plan(), on_hosts(case, lambda _: 0.02, hosts=8)))
    assert over.heterogeneity is None
    assert (over.prediction_low, over.prediction_high, over.prediction_blocks) == (None, None, None)
    assert {each.low for each in over.hosts} == {None}
    assert over.ratio == pytest.approx(comparison.ratio.estimate)
    assert (over.low, over.high) == pytest.approx((comparison.ratio.low, comparison.ratio.high))
    assert over.p == pytest.approx(comparison.p)
    assert over.p_equivalence == pytest.approx(comparison.p_equivalence)


def test_claims_about_hosts_like_these_are_judged_together() -> None:
    cells = [f"load-{number}" for number in range(4)]
    case = Case({**KERNELS, "load": cells}, blocks=10)
    analysis = analyse(case.plan(), on_hosts(case, lambda at: 0.04 + 0.01 * at, hosts=5))
    found = [comparison.over_hosts for cell in analysis.cells for comparison in cell.comparisons["tpm"]]
    p = sorted(over.p for over in found if over is not None and over.p is not None)
    smallest = min((over for over in found if over is not None), key=lambda over: over.p or 1)
    assert len(p) == 4
    assert smallest.p_adjusted == pytest.approx(4 * p[0])


def test_secondary_metrics_are_screened_and_guardrails_get_no_verdict() -> None:
    case = Case(KERNELS, blocks=10, roles={"primary": ["tpm"], "secondary": ["p95"], "guardrails": ["p99"]})
    plan = case.plan()
    definitions = {
        **plan.metrics.definitions,
        "p95": plan.metrics.definitions["p99"].model_copy(update={"name": "p95"}),
    }
    plan = plan.model_copy(update={"metrics": plan.metrics.model_copy(update={"definitions": definitions})})
    trials = [
        each.model_copy(update={"scalars": dict.fromkeys(("tpm", "p95", "p99"), each.scalars["tpm"])})
        for each in on_hosts(case, lambda _: 0.1, hosts=5)
    ]
    analysis = analyse(plan, trials)
    _, screened = only(analysis, "p95")
    _, guarded = only(analysis, "p99")
    assert (screened.verdict, screened.p_adjusted) == ("slower", screened.p)
    assert (guarded.verdict, guarded.reason) == (None, "guardrail")
    assert guarded.ratio == screened.ratio


def test_an_unfinished_run_has_no_verdict_for_hosts_like_these_either() -> None:
    case = Case(KERNELS, blocks=10)
    _, over = only(analyse(case.plan(), on_hosts(case, lambda _: 0.1, hosts=5), finished=False))
    assert over.verdict == "none"


def test_five_blocks_claim_nothing_of_any_host() -> None:
    case = Case(KERNELS, blocks=5)
    comparison, over = only(analyse(case.plan(), on_hosts(case, lambda _: 0.1, hosts=5)))
    assert over.p is not None
    assert over.p < 0.05
    assert (comparison.verdict, over.verdict) == ("undecided", "undecided")


def test_without_pairs_without_logarithms_and_without_spread_hosts_are_counted_only() -> None:
    usual = Case(KERNELS, blocks=10)
    unpaired = Case(KERNELS, blocks=10, order="sequential")
    trials = on_hosts(usual, lambda _: 0.1, hosts=5)
    negative = [each.model_copy(update={"scalars": {"tpm": -each.scalars["tpm"]}}) for each in trials]
    constant = [each.model_copy(update={"scalars": {"tpm": 5.0}}) for each in trials]
    for case, measured, reason in (
        (unpaired, trials, "not_paired"),
        (usual, negative, "no_ratio"),
        (usual, constant, "no_ratio"),
    ):
        _, over = only(analyse(case.plan(), measured))
        assert (over.reason, over.ratio, over.verdict) == (reason, None, None)
        assert [each.blocks for each in over.hosts] == [2] * 5


@pytest.mark.parametrize("adjust", [False, True])
def test_where_covariates_decide_there_is_no_verdict_of_plain_ratios_for_hosts_like_these(*, adjust: bool) -> None:
    """The arm moves the covariate, which hides that it is slower."""
    case, random = Case(KERNELS, blocks=24), np.random.default_rng(4)
    loops = {(arm, block): random.normal(52 if arm == "b" else 50, 1) for arm in ("a", "b") for block in range(1, 25)}

    def value(levels: Mapping[str, str], block: int) -> float:
        moved = 0.05 * (loops[levels["kernel"], block] - 50) - (0.05 if levels["kernel"] == "b" else 0.0)
        return 100 * math.exp(moved + random.normal(0, 0.003))

    measured = case.trials(tpm=value, calibration_loop_ns=lambda levels, block: loops[levels["kernel"], block])
    trials = [each.model_copy(update={"host": f"node-{each.trial.block % 6}"}) for each in measured]
    plan = case.plan()
    metrics = plan.metrics.model_copy(update={"covariates": ["calibration_loop_ns"], "adjust": adjust})
    analysis = analyse(plan.model_copy(update={"metrics": metrics}), trials)
    comparison, over = only(analysis)
    assert over.ratio == pytest.approx(1.05, abs=0.02)
    assert over.heterogeneity is not None
    if adjust:
        assert (comparison.verdict, over.verdict, over.reason, over.p) == ("slower", None, "adjusted", None)
    else:
        assert (comparison.verdict, over.verdict, over.reason) == ("faster", "faster", "")


def test_pairs_between_hosts_are_doubted_and_give_no_estimate() -> None:
    """Another factor's levels meet by block number, and the blocks of two cells may have run on different hosts."""
    case = Case({**KERNELS, "load": ("low", "high")}, blocks=6)
    trials = on_hosts(case, lambda _: 0.1, hosts=3)
    moved = [
        each.model_copy(update={"host": "node-9"}) if each.trial.cell == "high" and each.trial.block > 2 else each
        for each in trials
    ]
    _, over = only(analyse(case.plan(), moved))
    assert (over.reason, over.mixed) == ("few_hosts", 0)
    comparison, over = only(analyse(case.plan(), moved, contrast="load"))
    assert (over.reason, over.mixed, over.ratio) == ("between_hosts", 4, None)
    (doubt,) = (each for each in comparison.doubts if each.code == "hosts_mixed")
    assert "in 4 of 6 pairs" in doubt.message


def test_hosts_of_opposite_sign_are_doubted_and_noise_about_nothing_is_not() -> None:
    case = Case(KERNELS, blocks=24)
    comparison, over = only(analyse(case.plan(), on_hosts(case, lambda at: 0.05 * (-1) ** at, hosts=6)))
    (doubt,) = (each for each in comparison.doubts if each.code == "hosts_disagree")
    assert over.heterogeneity is not None
    assert over.heterogeneity.p_one_sign < 0.001
    assert "node-" in doubt.message
    calm, over = only(analyse(case.plan(), on_hosts(case, lambda _: 0.0, hosts=6)))
    assert {each.ratio is not None and each.ratio > 1 for each in over.hosts} == {True, False}
    assert "hosts_disagree" not in {each.code for each in calm.doubts}


def sequential(plan: Plan, **changed: Any) -> Plan:
    rule = {"stop": "sequential", "min_blocks": 4, "spending": "pocock", "futility": True, "equivalence": True}
    return plan.model_copy(update={"design": plan.design.model_copy(update={**rule, **changed})})


def test_a_run_that_could_stop_early_asks_more_of_hosts_like_these() -> None:
    """It stops at its first look; a design of as many blocks looks once."""
    case = Case(KERNELS, blocks=12)
    trials = on_hosts(case, lambda at: 0.04 + 0.01 * at, hosts=5)
    _, once = only(analyse(case.plan(), trials))
    _, looked = only(analyse(sequential(case.plan(), min_blocks=12, blocks=20), trials))
    assert looked.ratio == once.ratio
    assert once.p is not None
    assert looked.p is not None
    assert once.p < looked.p
    assert None not in (once.low, once.high, looked.low, looked.high)
    assert looked.low < once.low < once.high < looked.high  # type: ignore[operator]
    assert None not in (looked.prediction_low, once.prediction_low)
    assert looked.prediction_low < once.prediction_low  # type: ignore[operator]
    assert looked.hosts == once.hosts


def test_before_the_first_look_there_is_neither_interval_nor_claim() -> None:
    case = Case(KERNELS, blocks=20)
    plan = sequential(case.plan(), min_blocks=12)
    few = replace(case, blocks=10)
    _, over = only(analyse(plan, on_hosts(few, lambda _: 0.1, hosts=5)))
    assert (over.low, over.high, over.p, over.p_equivalence) == (None, None, 1.0, 1.0)
    assert over.verdict == "undecided"
