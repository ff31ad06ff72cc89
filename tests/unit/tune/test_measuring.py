from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.tune import measuring


def definition(name: str, better: str) -> MetricDefinition:
    return MetricDefinition.model_validate(
        {"name": name, "label": name, "unit": "", "better": better, "kind": "wall_clock"}
    )


def record(trials: Sequence[TrialRecord]) -> Record:
    plan = tiny_plan()
    metrics = plan.metrics.model_copy(
        update={
            "primary": ["elapsed"],
            "guardrails": ["rate", "errors"],
            "guardrail_margins": {"rate": 0.1},
            "definitions": {
                "elapsed": definition("elapsed", "lower"),
                "rate": definition("rate", "higher"),
                "errors": definition("errors", "lower"),
            },
        }
    )
    factors = {plan.arm: ["default", "p001", "p002"]}
    found = Record(Path(), plan.model_copy(update={"metrics": metrics, "factors": factors}), ())
    vars(found)["trials"] = tuple(trials)
    return found


def trial(block: int, arm: str, *, valid: bool = True, **scalars: float) -> TrialRecord:
    values = {"elapsed": 1.0, "rate": 100.0, "errors": 0.0, **scalars}
    return trial_record(planned(block, arm), valid=valid).model_copy(update={"scalars": values})


def test_a_gain_is_the_ratio_to_the_default_of_the_same_block_in_the_objectives_direction() -> None:
    trials = [
        trial(1, "p001", elapsed=0.5),
        trial(1, "default", elapsed=1.0),
        trial(2, "default", elapsed=4.0),
        trial(2, "p001", elapsed=5.0, rate=80.0),
        trial(2, "p002", elapsed=0.0, errors=1.0),
        trial(3, "default", valid=False),
        trial(3, "p001"),
    ]
    found = measuring.pairs(record(trials))
    assert [pair.gain for pair in found["p001"]] == [pytest.approx(math.log(2)), pytest.approx(-math.log(1.25))]
    first, second = found["p001"]
    assert first.excess == {"rate": pytest.approx(-math.log(1.1)), "errors": pytest.approx(-math.log1p(0.02), abs=0.1)}
    assert second.excess["rate"] == pytest.approx(math.log(1.25) - math.log(1.1))
    assert [(pair.gain, pair.excess["errors"]) for pair in found["p002"]] == [(None, measuring.ALL_OF_IT)]
    assert dict(measuring.gains(found)).keys() == {"p001"}
    assert list(measuring.breached(found)) == ["p001", "p002"]


@pytest.mark.parametrize("rate", [None, math.nan])
def test_a_guardrail_without_a_value_is_not_kept(rate: float | None) -> None:
    unmeasured = trial(1, "p001", elapsed=0.5)
    scalars = {**unmeasured.scalars, "rate": rate}
    if rate is None:
        del scalars["rate"]
    found = measuring.pairs(record([trial(1, "default"), unmeasured.model_copy(update={"scalars": scalars})]))
    told = measuring.told(1, found["p001"], reason="")
    assert (told.state, told.reason) == ("infeasible", "rate")


def test_what_is_told_of_a_block() -> None:
    pair = measuring.Pair(gain=0.1, excess={"rate": -0.1, "errors": 0.2})
    told = measuring.told(3, [pair], reason="")
    assert (told.state, told.gain, told.reason) == ("infeasible", 0.1, "errors")
    assert measuring.told(3, [measuring.Pair(0.1, {"rate": 0.0})], reason="").state == "measured"
    assert measuring.told(3, [measuring.Pair(None, {})], reason="").reason == "the objective has no ratio"
    assert measuring.told(3, [], reason="lost").reason == "lost"


def test_trials_of_one_boot_are_one_value() -> None:
    first, again = trial(1, "p001", elapsed=0.5), trial(1, "p001", elapsed=1.5)
    again = again.model_copy(update={"trial": again.trial.model_copy(update={"repeat": 2})})
    (pair,) = measuring.pairs(record([first, trial(1, "default", elapsed=2.0), again]))["p001"]
    assert pair.gain == pytest.approx(math.log(2))
