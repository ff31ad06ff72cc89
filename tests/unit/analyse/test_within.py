"""Trials that did not measure a steady state are counted by arm, and arms that differ in it are doubted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis

FACTORS = {"kernel": ["base", "new"], "memory": ["low", "high"]}
CALM = {
    "throughput_drift": 0.01,
    "throughput_drift_p": 0.4,
    "throughput_levels": 1.0,
    "settled_from_s": 0.0,
    "throughput_autocorrelation": 0.2,
    "throughput_effective_n": 40.0,
    "drifting": 0.0,
    "unsteady": 0.0,
}


def analysed(drifting: Mapping[str, int], *, unsteady: Mapping[str, int] | None = None, blocks: int = 8) -> Analysis:
    """The first blocks of each arm, in every cell, drift or change their level."""
    case = Case(FACTORS, blocks=blocks)
    trials = []
    for each in case.trials(tpm=lambda levels, block: 100.0 + block + len(levels["kernel"])):
        arm, block = each.levels["kernel"], each.trial.block
        found = {
            **CALM,
            "drifting": float(block <= drifting.get(arm, 0)),
            "unsteady": float(block > blocks - (unsteady or {}).get(arm, 0)),
        }
        trials.append(each.model_copy(update={"scalars": each.scalars | found}))
    return analyse(case.plan(), trials)


def codes(analysis: Analysis) -> list[str]:
    return [doubt.code for doubt in analysis.doubts if "stead" in doubt.code]


def test_every_used_trial_has_its_verdict_and_figures() -> None:
    analysis = analysed({"new": 2}, unsteady={"base": 1})
    assert len(analysis.steadiness) == 32
    verdicts = [(each.arm, each.verdict) for each in analysis.steadiness]
    assert verdicts.count(("new", "drifting")) == 4
    assert verdicts.count(("base", "unsteady")) == 2
    assert verdicts.count(("base", "steady")) == 14
    assert analysis.steadiness[0].effective_n == 40
    assert codes(analysis) == []


def test_more_than_half_of_an_arm_s_trials_in_a_cell_are_a_doubt_that_names_it() -> None:
    analysis = analysed({"new": 3, "base": 4}, unsteady={"new": 2})
    found = [doubt for doubt in analysis.doubts if doubt.code == "not_steady"]
    assert [(doubt.cell, doubt.arm) for doubt in found] == [("low", "new"), ("high", "new")]
    assert found[0].message.startswith("5 of 8 trials")
    assert "3 drift, 2 change their level" in found[0].message


def test_arms_that_differ_in_steadiness_are_a_doubt() -> None:
    analysis = analysed({"new": 4})
    assert codes(analysis) == ["steadiness_differs"]
    (doubt,) = [each for each in analysis.doubts if each.code == "steadiness_differs"]
    p = stats.hypergeom.sf(7, 32, 8, 16) * 2  # 8 of 8 unsteady trials in one of two arms of 16
    assert f"p = {p:.2g}" in doubt.message


def test_trials_that_were_never_judged_are_in_no_count() -> None:
    case = Case(FACTORS, blocks=4)
    analysis = analyse(case.plan(), case.trials(tpm=lambda _levels, block: 100.0 + block))
    assert analysis.steadiness == ()
    assert codes(analysis) == []


@given(st.integers(0, 8), st.integers(0, 8))
def test_equal_arms_never_differ_and_no_verdict_or_estimate_moves(new: int, base: int) -> None:
    analysis = analysed({"new": new, "base": base})
    if new == base:
        assert "steadiness_differs" not in codes(analysis)
    assert [cell.comparisons for cell in analysis.cells] == [cell.comparisons for cell in analysed({}).cells]


def test_a_percentile_on_few_observations_is_doubted_and_on_many_is_not() -> None:
    case = Case({"kernel": ["a", "b"]}, blocks=4, roles={"primary": ["tpm"], "secondary": ["latency_ns_p99"]})
    for count, wanted in ((9_000, ["few_exceedances"]), (90_000, [])):
        trials = case.trials(
            tpm=lambda _levels, block: 100.0 + block,
            latency_ns_p99=lambda _levels, block: 5e6 + block,
            latency_count=lambda _levels, block, count=count: count + block,
        )
        found = [doubt for doubt in analyse(case.plan(), trials).doubts if doubt.code == "few_exceedances"]
        assert [doubt.code for doubt in found] == wanted
        assert all("only 90 observations" in doubt.message for doubt in found)


@pytest.mark.parametrize("arms", [("base", "new"), ("new", "base")])
def test_it_is_found_whichever_arm_is_the_restless_one(arms: tuple[str, str]) -> None:
    assert "steadiness_differs" in codes(analysed({arms[0]: 4, arms[1]: 0}))
