"""A cell stops when its verdict can be given: by the metric's own test, not by Student's alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.inference.analysis_cases import Case, Value

from fairtrial.analyse import analyse
from fairtrial.analyse.inference.comparing import ArmPair, Subject
from fairtrial.analyse.sequential import agreeing, follow, following
from fairtrial.record.models import Plan, TrialRecord

STOPS: Mapping[str, Any] = {"stop": "sequential", "spending": "pocock", "futility": True, "equivalence": True}
ARMS = Case({"kernel": ("a", "b")}, blocks=12)


def planned(stops_by: str, *, resolution: float = 0.0) -> Plan:
    plan = ARMS.plan()
    definition = plan.metrics.definitions["tpm"].model_copy(update={"resolution": resolution})
    metrics = plan.metrics.model_copy(update={"definitions": {"tpm": definition}})
    design = plan.design.model_copy(update={**STOPS, "min_blocks": 3, "stops_by": stops_by})
    return plan.model_copy(update={"design": design, "metrics": metrics})


def stalls(levels: Mapping[str, str], block: int) -> float:
    """Seconds: hardly any of the baseline, and about ten of the arm."""
    return float(block % 3 == 0) if levels["kernel"] == "a" else 10.0 + block % 2


def classes(levels: Mapping[str, str], block: int) -> float:
    """The arm is higher by three or four classes of a percentile, which are known to a hundredth."""
    return 1000.0 if levels["kernel"] == "a" else 1010.0 + 10 * (block % 2) + 10 * (block > 4)


def stopped(plan: Plan, value: Value) -> tuple[str, int, str]:
    """Why and when the run stopped, and the verdict of what it measured by then."""
    trials: list[TrialRecord] = []
    for round_ in range(1, 13):
        trials += [each for each in ARMS.trials(tpm=value) if each.trial.round == round_]
        run = follow(plan, trials)
        assert run is not None
        if run.stops:
            stop = run.stops["all"]
            verdict = analyse(plan, trials).cells[0].comparisons["tpm"][0].verdict
            return stop.reason, stop.blocks, verdict
    raise AssertionError("it ran all its blocks and was never stopped")


@pytest.mark.parametrize(("value", "resolution"), [(stalls, 0.0), (classes, 0.01)])
def test_a_difference_stops_a_cell_once_the_metrics_own_test_claims_it(value: Value, resolution: float) -> None:
    reason, blocks, verdict = stopped(planned("verdict", resolution=resolution), value)
    assert reason == "difference"
    assert verdict in {"faster", "slower"}
    early, fewer, undecided = stopped(planned("student", resolution=resolution), value)
    assert (early, undecided) == ("difference", "undecided"), "as plans of before say, whose decisions stand"
    assert fewer < blocks


def test_equivalence_stops_a_cell_once_classes_allow_it() -> None:
    def alike(levels: Mapping[str, str], block: int) -> float:
        return 1000.0 + (8.0 if levels["kernel"] == "b" and block % 4 == 0 else 0.0)

    reason, blocks, verdict = stopped(planned("verdict", resolution=0.01), alike)
    assert (reason, verdict) == ("equivalence", "equivalent")
    early, fewer, undecided = stopped(planned("student", resolution=0.01), alike)
    assert (early, undecided) == ("equivalence", "undecided")
    assert fewer < blocks


def test_a_cell_stops_for_precision_once_its_own_interval_is_as_narrow() -> None:
    def value(levels: Mapping[str, str], block: int) -> float:
        return 1004.0 if levels["kernel"] == "b" and block % 4 == 0 else 1000.0

    ends = []
    for stops_by in ("student", "verdict"):
        plan = planned(stops_by, resolution=0.004)
        design = plan.design.model_copy(update={"stop": "precision", "precision": 0.01, "min_blocks": 4})
        plan = plan.model_copy(update={"design": design})
        run = follow(plan, ARMS.trials(tpm=value))
        assert run is not None
        assert run.stops["all"].reason == "precision"
        ends.append(run.stops["all"].blocks)
        trials = [each for each in ARMS.trials(tpm=value) if each.trial.round <= ends[-1]]
        ratio = analyse(plan, trials).cells[0].comparisons["tpm"][0].ratio
        reaches = [math.log(each / ratio.estimate) for each in (ratio.low, ratio.high) if each and ratio.estimate]
        assert (max(map(abs, reaches)) <= math.log(1.01)) is (stops_by == "verdict")
    assert ends[0] < ends[1] < 12


def test_other_metrics_are_looked_at_as_before() -> None:
    drawn = np.random.default_rng(3).normal(0, 0.01, (2, 12))

    def value(levels: Mapping[str, str], block: int) -> float:
        return 1000 * float(np.exp(drawn["ab".index(levels["kernel"])][block - 1] + 0.1 * (levels["kernel"] == "b")))

    by_verdict, by_student = (follow(planned(test), ARMS.trials(tpm=value)) for test in ("verdict", "student"))
    assert by_verdict is not None
    assert by_student is not None
    assert by_verdict.looks == by_student.looks


def test_a_cell_that_stopped_is_not_tested_again_at_the_looks_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange of hundreds of blocks takes a third of a second."""
    case = Case({"kernel": ("a", "b"), "load": ("low", "high")}, blocks=12)
    plan = case.plan()
    plan = plan.model_copy(update={"design": planned("verdict").design})
    asked: list[str] = []

    def own_test(used: ArmPair, subject: Subject, **how: Any) -> tuple[float, float, float]:
        asked.append(subject.cell)
        return agreeing.own_test(used, subject, **how)

    def value(levels: Mapping[str, str], block: int) -> float:
        return stalls(levels, block) if levels["load"] == "low" else float(block % 2) + 1000 * block

    monkeypatch.setattr(following, "agreeing", SimpleNamespace(own_test=own_test, AGREES=agreeing.AGREES))
    whole = case.trials(tpm=value)
    run = follow(plan, [each for each in whole if each.trial.cell == "high" or each.trial.round <= 7])
    assert run is not None
    assert run.stops["low"].blocks == 7
    assert (asked.count("low"), asked.count("high")) == (7, 12)
