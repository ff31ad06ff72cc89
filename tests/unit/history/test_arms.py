"""A gate within a run: the verdicts of its report, one check for each cell, arm and metric."""

from __future__ import annotations

import numpy as np
import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis, Comparison, Guardrail, Outcome
from fairtrial.history.arms import by_arms
from fairtrial.record.models import TrialRecord

BLOCKS = 12


def analysis(*, factor: float, noise: float = 0.002, blocks: int = BLOCKS, valued: str = "ab") -> Analysis:
    """Of a run whose arm b takes `factor` times as long."""
    plan = tiny_plan()
    design = plan.design.model_copy(update={"blocks": blocks})
    plan = plan.model_copy(
        update={"design": design, "trials": [planned(block, arm) for block in range(1, blocks + 1) for arm in "ab"]}
    )
    random = np.random.default_rng(1)
    return analyse(
        plan, [_trial(each.block, each.arm, factor, random.normal(0, noise), valued) for each in plan.trials]
    )


def _trial(block: int, arm: str, factor: float, noise: float, valued: str) -> TrialRecord:  # noqa: PLR0917
    value = (factor if arm == "b" else 1.0) * float(np.exp(noise))
    trial = trial_record(planned(block, arm))
    return trial.model_copy(update={"scalars": {"elapsed_s": value} if arm in valued else {}})


@pytest.mark.parametrize(
    ("factor", "noise", "status", "outcome"),
    [
        (1.05, 0.002, "failed", "failed"),
        (0.95, 0.002, "passed", "passed"),
        (1.001, 0.002, "passed", "passed"),
        (1.0, 0.3, "undecided", "undecided"),
    ],
)
def test_a_verdict_becomes_a_check(*, factor: float, noise: float, status: str, outcome: str) -> None:
    found = by_arms(analysis(factor=factor, noise=noise), metrics=["elapsed_s"])
    assert (found.against, found.outcome) == ("a", outcome)
    assert [(each.series, each.metric, each.status) for each in found.checks] == [("b", "elapsed_s", status)]


def test_a_check_says_how_much_worse_and_with_which_interval() -> None:
    (check,) = by_arms(analysis(factor=1.05), metrics=["elapsed_s"]).checks
    assert check.worse_by == pytest.approx(0.05, abs=0.005)
    assert check.message.startswith("+5.") or check.message.startswith("+4.9")
    assert check.message.endswith("] at 95 %: slower")
    (same,) = by_arms(analysis(factor=1.0), metrics=["elapsed_s"]).checks
    assert same.message.endswith("] at 90 %: equivalent (within 2 %)")
    (vague,) = by_arms(analysis(factor=1.0, noise=0.3), metrics=["elapsed_s"]).checks
    assert "would have been found with a probability of 80 %" in vague.message


def test_too_few_blocks_decide_nothing() -> None:
    (check,) = by_arms(analysis(factor=2.0, blocks=3), metrics=["elapsed_s"]).checks
    assert check.status == "undecided"
    assert "3 blocks are too few for a verdict" in check.message


@pytest.mark.parametrize(("valued", "status"), [("a", "failed"), ("b", "skipped"), ("", "failed")])
def test_an_arm_without_a_value_fails_and_a_baseline_without_one_checks_nothing(valued: str, status: str) -> None:
    found = by_arms(analysis(factor=1.0, valued=valued), metrics=["elapsed_s"])
    assert [each.status for each in found.checks] == [status]
    assert found.outcome == "failed"  # a gate that checked nothing is shut


def test_a_cell_that_missed_its_expectation_is_undecided_beside_one_that_did_not() -> None:
    found = analysis(factor=1.0)
    (cell,) = found.cells
    (same,) = cell.comparisons["elapsed_s"]
    kept = guarded(same, "kept")
    for missed in (same.model_copy(update={"verdict": "none"}), guarded(same, "none")):
        for met in (same, kept):
            cells = tuple(
                cell.model_copy(update={"cell": name, "comparisons": {"elapsed_s": (each,)}})
                for name, each in (("small", missed), ("large", met))
            )
            gate = by_arms(found.model_copy(update={"cells": cells}), metrics=["elapsed_s"])
            assert [each.status for each in gate.checks] == ["undecided", "passed"]
            assert gate.outcome == "undecided"


def guarded(comparison: Comparison, outcome: Outcome) -> Comparison:
    guardrail = Guardrail(margin=0.02, outcome=outcome, bound=1.0, difference_bound=0.0, p_kept=0.01, p_breached=1.0)
    return comparison.model_copy(update={"role": "guardrail", "guardrail": guardrail})
