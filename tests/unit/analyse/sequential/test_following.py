"""A run followed round by round: decisions do not depend on what came later, and what is reported stays valid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from support.inference.analysis_cases import Case, Value

from fairtrial.analyse import analyse
from fairtrial.analyse.inference import spreads
from fairtrial.analyse.models import Comparison
from fairtrial.analyse.sequential import follow
from fairtrial.record.models import Plan, TrialRecord

CELLS = {"kernel": ("a", "b"), "load": ("low", "high")}
STOPS: Mapping[str, Any] = {"stop": "sequential", "min_blocks": 3, "spending": "pocock", "futility": True}


def plan_of(case: Case, **design: Any) -> Plan:
    plan = case.plan()
    changed = {**STOPS, "equivalence": True, **design}
    return plan.model_copy(update={"design": plan.design.model_copy(update=changed)})


def noisy(effect: Mapping[str, float], *, spread: float = 0.01) -> Value:
    """Values with an effect of `b` by load, and noise of its own for every trial."""

    def value(levels: Mapping[str, str], block: int) -> float:
        seed = [block, *(ord(character) for text in levels.values() for character in text)]
        noise = float(np.random.default_rng(seed).normal(0, spread))
        return 1000 * math.exp(noise + (effect[levels["load"]] if levels["kernel"] == "b" else 0.0))

    return value


def run_of(case: Case, plan: Plan, value: Value) -> list[TrialRecord]:
    """The trials that a run would have had: a cell that is decided has none in later rounds."""
    kept: list[TrialRecord] = []
    decided: set[str] = set()
    whole = case.trials(tpm=value)
    for round_ in range(1, case.blocks + 1):
        kept += [each for each in whole if each.trial.round == round_ and each.trial.cell not in decided]
        run = follow(plan, kept)
        assert run is not None
        decided = set(run.stops)
    return kept


def only(plan: Plan, trials: list[TrialRecord], cell: str) -> Comparison:
    found = next(each for each in analyse(plan, trials).cells if each.cell == cell)
    return found.comparisons["tpm"][0]


def test_a_clear_cell_stops_and_the_other_goes_on() -> None:
    case = Case(CELLS, blocks=10)
    plan = plan_of(case, futility=False)
    trials = run_of(case, plan, noisy({"low": 0.3, "high": 0.004}, spread=0.03))
    analysis = analyse(plan, trials)
    assert analysis.stopping is not None
    stops = {each.cell: each for each in analysis.stopping.cells}
    assert stops["low"].reason == "difference"
    assert stops["low"].blocks < 10
    assert (stops["high"].reason, stops["high"].blocks) == ("blocks", 10)
    assert analysis.stopping.share == (stops["low"].blocks + 10) / 20
    assert only(plan, trials, "low").verdict == "faster"


def test_what_a_look_said_does_not_depend_on_later_rounds() -> None:
    """A resumed run, and whoever recomputes it, looks at more trials than the run had at the time."""
    case = Case(CELLS, blocks=10)
    plan = plan_of(case)
    trials = run_of(case, plan, noisy({"low": 0.05, "high": 0.0}, spread=0.03))
    whole = follow(plan, trials)
    assert whole is not None
    for round_ in range(1, len(whole.looks) + 1):
        until = follow(plan, [each for each in trials if each.trial.round <= round_])
        assert until is not None
        assert until.looks[-1] == whole.looks[round_ - 1]


@pytest.mark.parametrize(
    ("neighbours", "contrast", "in_step"),
    [("cells", "kernel", False), ("boots", "kernel", True), ("cells", "load", True)],
)
def test_a_run_is_followed_as_one_whose_cells_share_boots_or_trials(
    *, neighbours: str, contrast: str, in_step: bool
) -> None:
    case = Case(CELLS, blocks=6)
    plan = plan_of(case, reboot="between_blocks", neighbours=neighbours)
    run = follow(plan, case.trials(tpm=noisy({"low": 0.0, "high": 0.0})), contrast=contrast)
    assert run is not None
    assert run.standing.in_step is in_step


def test_a_record_is_decided_by_the_rule_that_its_plan_was_made_under() -> None:
    """Three cells whose neighbouring boots are alike wait at the first look, and as one they do not."""
    case = Case({"kernel": ("a", "b"), "load": ("low", "mid", "high")}, blocks=12)
    before = plan_of(case, min_blocks=8, reboot="between_blocks")
    assert "neighbours" not in before.model_dump_json(), "as plans were written before they had it"
    boots = np.random.default_rng(8).normal((0, 0.012), 0.01, size=(13, 2))

    def value(levels: Mapping[str, str], block: int) -> float:
        new = levels["kernel"] == "b"
        own = np.random.default_rng([8, block, new, *levels["load"].encode()]).normal(0, 0.003)
        return 1000 * math.exp(boots[block, int(new)] + own)

    for plan, blocks in ((before, 12), (plan_of(case, **before.design.model_dump() | {"neighbours": "boots"}), 8)):
        run = follow(plan, run_of(case, plan, value))
        assert run is not None
        assert {stop.blocks for stop in run.stops.values()} == {blocks}


@pytest.mark.parametrize("nothing", ["a", "b"])
def test_a_value_without_logarithm_changes_no_earlier_look(nothing: str) -> None:
    """Counts that are 0 in one trial late in a run: until then looks were of ratios, from then on of differences."""
    case = Case(CELLS, blocks=8)
    plan = plan_of(case, futility=False)
    usual = noisy({"low": 0.3, "high": 0.3}, spread=0.5)

    def value(levels: Mapping[str, str], block: int) -> float:
        return 0.0 if block == 5 and levels["kernel"] == nothing else usual(levels, block)

    trials = run_of(case, plan, value)
    whole = follow(plan, trials)
    assert whole is not None
    assert len(whole.looks) == 8
    for round_ in range(1, 9):
        until = follow(plan, [each for each in trials if each.trial.round <= round_])
        assert until is not None
        assert until.looks[-1] == whole.looks[round_ - 1], f"round {round_}"
    estimates = [look[0].comparisons[0].estimate for look in whole.looks]
    assert max(abs(each) for each in estimates[:4]) < 3, "log ratios"
    assert min(abs(each) for each in estimates[4:]) > 3, "transactions per minute"


def test_the_order_in_which_trials_are_read_does_not_matter() -> None:
    case = Case(CELLS, blocks=10)
    plan = plan_of(case)
    trials = run_of(case, plan, noisy({"low": 0.05, "high": 0.0}))
    assert analyse(plan, trials[::-1]) == analyse(plan, trials)


def test_p_and_interval_are_those_of_the_boundary_and_wider_than_of_a_single_look() -> None:
    case = Case(CELLS, blocks=6)
    plan, fixed = plan_of(case, futility=False, equivalence=False), case.plan()
    value = noisy({"low": 0.02, "high": 0.0}, spread=0.03)
    trials = case.trials(tpm=value)
    looked, once = only(plan, trials, "high"), only(fixed, trials, "high")
    assert looked.p_once == once.p
    assert looked.p > once.p
    assert looked.ratio.estimate == once.ratio.estimate
    assert None not in (looked.ratio.low, looked.ratio.high, once.ratio.low, once.ratio.high)
    assert looked.ratio.low < once.ratio.low < once.ratio.high < looked.ratio.high  # type: ignore[operator]
    assert looked.difference.low < once.difference.low  # type: ignore[operator]
    assert looked.smallest_effect > once.smallest_effect  # type: ignore[operator]
    assert looked.welch == once.welch
    assert "Pocock" in looked.method


def test_secondary_metrics_are_followed_but_decide_nothing() -> None:
    case = Case(CELLS, blocks=6, roles={"primary": ["tpm"], "secondary": ["p99"]})
    plan = plan_of(case)
    trials = case.trials(tpm=noisy({"low": 0.5, "high": 0.5}))
    other = [
        each.model_copy(update={"scalars": {**each.scalars, "p99": 100.0 + each.trial.block % 2 + each.trial.position}})
        for each in trials
    ]
    without, beside = follow(plan, trials), follow(plan, other)
    assert without is not None
    assert beside is not None
    assert without.stops == beside.stops
    found = next(iter(analyse(plan, other).cells)).comparisons["p99"][0]
    assert found.adjustment == "benjamini_hochberg"
    assert found.p_once is not None


def test_values_without_spread_decide_nothing() -> None:
    case = Case(CELLS, blocks=5)
    plan = plan_of(case)
    trials = case.trials(tpm=lambda levels, _block: 10.0 if levels["kernel"] == "a" else 20.0)
    analysis = analyse(plan, trials)
    assert analysis.stopping is not None
    assert {each.reason for each in analysis.stopping.cells} == {"blocks"}
    assert only(plan, trials, "low").p == 1.0
    assert only(plan, trials, "low").verdict == "undecided"


def test_differences_are_followed_where_a_value_has_no_logarithm() -> None:
    case = Case(CELLS, blocks=6)
    plan = plan_of(case)
    base = noisy({"low": 0.3, "high": 0.3})
    trials = case.trials(tpm=lambda levels, block: base(levels, block) - 5000)
    found = only(plan, trials, "low")
    assert found.ratio.estimate is None
    assert found.p_equivalence is None
    assert found.verdict == "faster"
    assert found.mean is not None
    stalls = spreads.stalls(found.n, level=0.05).worth
    assert (found.difference.low or 0) - (found.mean.low or 0) > stalls * 3600  # of the values, not of their difference


def test_a_claim_from_few_blocks_rests_on_normality_and_says_so() -> None:
    case = Case(CELLS, blocks=10)
    early, late = plan_of(case), plan_of(case, min_blocks=8)
    value = noisy({"low": 0.3, "high": 0.3})
    codes = [{doubt.code for doubt in analyse(plan, run_of(case, plan, value)).doubts} for plan in (early, late)]
    assert "rests_on_normality" in codes[0]
    assert "rests_on_normality" not in codes[1]
    assert not {"few_blocks"} & (codes[0] | codes[1])


def test_an_unfinished_run_has_no_verdict_whatever_its_boundaries_say() -> None:
    case = Case(CELLS, blocks=10)
    plan = plan_of(case)
    trials = run_of(case, plan, noisy({"low": 0.3, "high": 0.3}))
    found = analyse(plan, trials, finished=False)
    assert {each.verdict for cell in found.cells for each in cell.comparisons["tpm"]} == {"none"}


def test_the_time_budget_lets_no_round_begin_that_would_not_end_in_it() -> None:
    case = Case(CELLS, blocks=10)
    plan = plan_of(case, futility=False, time_budget_s=18.0)  # a trial takes a second, a round four
    trials = [
        each.model_copy(update={"started": "2026-01-01T00:00:00.000Z", "finished": "2026-01-01T00:00:01.000Z"})
        for each in case.trials(tpm=noisy({"low": 0.0, "high": 0.0}, spread=0.2))
    ]
    run = follow(plan, trials)
    assert run is not None
    assert {(stop.reason, stop.round) for stop in run.stops.values()} == {("time_budget", 4)}


def test_the_width_of_the_interval_stops_a_cell() -> None:
    case = Case(CELLS, blocks=30)
    plan = plan_of(case, stop="precision", min_blocks=8, spending=None, futility=None, equivalence=None, precision=0.02)
    trials = run_of(case, plan, noisy({"low": 0.3, "high": 0.0}, spread=0.02))
    analysis = analyse(plan, trials)
    assert analysis.stopping is not None
    assert {each.reason for each in analysis.stopping.cells} == {"precision"}
    for cell in analysis.cells:
        interval = cell.comparisons["tpm"][0].ratio
        assert interval.high / interval.estimate <= 1.02 + 1e-9  # type: ignore[operator]


def test_arms_that_share_a_baseline_are_adjusted_as_they_were_stopped() -> None:
    case = Case({"kernel": ("a", "b", "c")}, blocks=6)
    plan = plan_of(case)
    drawn = np.random.default_rng(3).normal(0, 0.01, (3, 7))

    def value(levels: Mapping[str, str], block: int) -> float:
        arm = "abc".index(levels["kernel"])
        return 1000 * math.exp(0.03 * arm + drawn[arm, block])

    found = analyse(plan, run_of(case, plan, value)).cells[0].comparisons["tpm"]
    least, most = sorted(found, key=lambda each: each.p)
    assert least.adjustment == "holm"
    assert least.p_adjusted == min(1.0, 2 * least.p)
    assert most.p_adjusted == max(most.p, 2 * least.p)


def test_another_contrast_gets_valid_p_values_and_no_decisions() -> None:
    case = Case(CELLS, blocks=6)
    plan = plan_of(case)
    trials = run_of(case, plan, noisy({"low": 0.3, "high": 0.3}))
    found = analyse(plan, trials, contrast="load")
    assert found.stopping is None
    assert all(each.p_once is not None for cell in found.cells for each in cell.comparisons["tpm"])


@pytest.mark.parametrize("stop", ["sequential", "anytime", "precision"])
def test_one_block_decides_nothing(stop: str) -> None:
    """As a small size of a study may have it."""
    case = Case(CELLS, blocks=1)
    plan = plan_of(case, stop=stop, min_blocks=1, precision=0.05 if stop == "precision" else None)
    trials = case.trials(tpm=noisy({"low": 0.3, "high": 0.0}))
    run = follow(plan, trials)
    assert run is not None
    assert {each.reason for each in run.stops.values()} == {"blocks"}
    assert [only(plan, trials, cell).verdict for cell in ("low", "high")] == ["undecided"] * 2
    assert [only(plan, trials, cell).p for cell in ("low", "high")] == [1, 1]


@pytest.mark.parametrize("kind", ["sequential", "anytime"])
def test_a_fixed_design_is_not_followed(kind: str) -> None:
    case = Case(CELLS, blocks=4)
    trials = case.trials(tpm=noisy({"low": 0.0, "high": 0.0}))
    assert follow(case.plan(), trials) is None
    assert follow(plan_of(case, stop=kind), trials) is not None
    assert analyse(case.plan(), trials).stopping is None


def coarse(plan: Plan, resolution: float, *, metric: str = "tpm") -> Plan:
    """The same plan, of a metric that is known by classes."""
    definition = plan.metrics.definitions[metric].model_copy(update={"resolution": resolution})
    metrics = plan.metrics.model_copy(update={"definitions": plan.metrics.definitions | {metric: definition}})
    return plan.model_copy(update={"metrics": metrics})


def test_values_known_by_class_claim_no_more_than_their_classes_allow() -> None:
    """Seven of eight blocks differ by one class: Student's t is certain, and what the classes hide is not."""
    case = Case({"kernel": ("a", "b")}, blocks=8)
    plan = plan_of(case, futility=False)

    def value(levels: Mapping[str, str], block: int) -> float:
        return 1000.0 if levels["kernel"] == "a" else 1016.0 if block == 8 else 1008.0

    trials = case.trials(tpm=value)
    fine, found = only(plan, trials, "all"), only(coarse(plan, 0.01), trials, "all")
    assert fine.p < 0.01, "were they exact, they would differ"
    assert found.method.startswith("paired t on log ratios over blocks, values known by class")
    assert found.p >= (found.p_once or 0.0) > 0.05
    assert (found.p_equivalence or 0.0) > (fine.p_equivalence or 0.0)
    assert found.ratio.low is not None
    assert found.ratio.high is not None
    assert found.ratio.low < 1 < found.ratio.high
    assert found.verdict == "undecided"


def test_a_guardrail_known_by_class_is_kept_and_bounded_as_its_classes_allow() -> None:
    case = Case({"kernel": ("a", "b")}, blocks=8, roles={"primary": ["tpm"], "guardrails": ["p99"]})
    plan = plan_of(case, futility=False)

    def latency(levels: Mapping[str, str], block: int) -> float:
        return 1000.0 if levels["kernel"] == "a" else 1016.0 if block == 8 else 1008.0

    trials = case.trials(tpm=lambda _levels, block: 100.0 + block, p99=latency)
    fine, found = (
        analyse(each, trials).cells[0].comparisons["p99"][0].guardrail
        for each in (plan, coarse(plan, 0.015, metric="p99"))
    )
    assert fine is not None
    assert found is not None
    assert (fine.outcome, found.outcome) == ("kept", "unclear")
    assert (found.bound or 0.0) > 1.02 > (fine.bound or 0.0)


def test_heaps_of_zeros_claim_no_more_than_their_exchange_allows() -> None:
    case = Case({"kernel": ("a", "b")}, blocks=8)
    plan = plan_of(case, futility=False)
    stalls = {1: 4.0, 2: 4.1, 3: 3.9, 4: 4.2, 5: 4.0}

    def value(levels: Mapping[str, str], block: int) -> float:
        return 0.0 if levels["kernel"] == "a" else stalls.get(block, 0.0)

    found = only(plan, case.trials(tpm=value), "all")
    assert found.method.startswith("paired permutation of differences over blocks")
    assert found.p_once == pytest.approx(2 / 32), "five signs"
    assert found.p >= found.p_once


def test_an_early_claim_that_later_blocks_deny_is_none() -> None:
    """P is of the blocks that the interval beside it is of, although they were measured for other cells' sake."""
    case = Case({"kernel": ("a", "b")}, blocks=10)
    plan = plan_of(case, futility=False, equivalence=False)
    drawn = np.random.default_rng(11).normal(0, 0.002, 10)

    def value(levels: Mapping[str, str], block: int) -> float:
        late = 0.15 if block > 5 and block % 2 else 0.0
        return 1000 * math.exp((0.05 - late + drawn[block - 1]) if levels["kernel"] == "b" else 0.0)

    trials = case.trials(tpm=value)
    early = only(plan, [each for each in trials if each.trial.round <= 5], "all")
    found = only(plan, trials, "all")
    assert early.p < 0.05
    assert found.ratio.low is not None
    assert found.ratio.high is not None
    assert found.ratio.low < 1 < found.ratio.high
    assert found.p > 0.05
    assert found.verdict == "undecided"


def test_a_guardrail_of_a_run_that_looked_is_tested_more_strictly_than_one_of_a_fixed_number_of_blocks() -> None:
    case = Case(CELLS, blocks=10, roles={"primary": ["tpm"], "guardrails": ["p99"]})
    latency = noisy({"low": 0.0, "high": 0.0}, spread=0.008)
    trials = case.trials(tpm=noisy({"low": 0.3, "high": 0.3}), p99=latency)
    looked, fixed = (
        analyse(plan, trials).cells[0].comparisons["p99"][0].guardrail for plan in (plan_of(case), case.plan())
    )
    assert looked is not None
    assert fixed is not None
    assert fixed.outcome == looked.outcome == "kept"
    assert fixed.p_kept < looked.p_kept
    assert looked.bound is not None
    assert fixed.bound is not None
    assert fixed.bound < looked.bound < 1.02
