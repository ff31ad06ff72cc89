"""Slow shutdowns that were cut off are told by arm, and nothing is claimed of them that a longer one would deny."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts import shutdowns as shutdown_doubts
from fairtrial.analyse.models import DOUBT_CODES, Comparison
from fairtrial.metrics.telemetry import shutdown as shutdowns
from fairtrial.record.models import TrialRecord


def trials(*given: tuple[str, dict[str, float]]) -> list[TrialRecord]:
    made: list[Any] = [SimpleNamespace(trial=SimpleNamespace(arm=arm), scalars=scalars) for arm, scalars in given]
    return cast("list[TrialRecord]", made)


def shutdown(censored: float) -> dict[str, float]:
    return {"slow_shutdown_s": 3.0, "slow_shutdown_censored": censored}


def test_trials_without_one_or_that_were_waited_for_raise_none() -> None:
    assert list(shutdown_doubts.about(trials(("a", {}), ("b", {"throughput_tps": 1.0})))) == []
    assert list(shutdown_doubts.about(trials(("a", shutdown(0.0)), ("b", shutdown(0.0))))) == []


def test_those_that_were_cut_off_are_counted_by_arm() -> None:
    given = trials(("a", shutdown(1.0)), ("b", shutdown(0.0)), ("a", shutdown(1.0)), ("b", shutdown(1.0)), ("b", {}))
    (found,) = shutdown_doubts.about(given)
    assert found.code == "censored_shutdown"
    assert found.code in DOUBT_CODES
    assert found.message == "3 of 4 slow shutdowns had not finished at their limit (2 of a, 1 of b)"
    assert "lower bounds" in found.advice


def compared(baseline_s: float, arm_s: float, *, cut: str, role: str) -> Comparison:
    """Of ten blocks of which one arm's shutdowns were all cut off; each lasts a little longer than the one before."""
    case = Case({"kernel": ("a", "b")}, blocks=10, roles={"primary": ["tpm"], role: ["slow_shutdown_s"]})
    metrics = case.plan().metrics
    definitions = metrics.definitions | shutdowns.DEFINITIONS
    plan = case.plan().model_copy(update={"metrics": metrics.model_copy(update={"definitions": definitions})})
    seconds = {"a": baseline_s, "b": arm_s}

    def lasted(levels: Mapping[str, str], block: int) -> float:
        return seconds[levels["kernel"]] + 0.1 * (block % 3 if levels["kernel"] == "a" else block % 4)

    trials = case.trials(
        tpm=lambda _levels, block: 100.0 + block,
        slow_shutdown_s=lasted,
        slow_shutdown_censored=lambda levels, _block: float(levels["kernel"] == cut),
    )
    (found,) = analyse(plan, trials).cells[0].comparisons["slow_shutdown_s"]
    return found


@pytest.mark.parametrize(
    ("seconds", "cut", "verdict"),
    [
        ((597, 600), "neither", "equivalent"),
        ((597, 600), "b", "slower"),  # by an hour, perhaps
        ((597, 600), "a", "undecided"),
        ((300, 600), "b", "slower"),  # and would have been slower still
        ((600, 300), "b", "undecided"),  # the limit of this arm was lower
        ((600, 300), "a", "faster"),
        ((300, 600), "a", "undecided"),
    ],
)
def test_a_verdict_holds_for_any_longer_shutdown(seconds: tuple[float, float], cut: str, verdict: str) -> None:
    found = compared(*seconds, cut=cut, role="secondary")
    assert found.verdict == verdict
    assert found.method.endswith("cut off at a limit") == (cut != "neither")


@pytest.mark.parametrize(
    ("seconds", "cut", "outcome"),
    [
        ((597, 600), "neither", "kept"),
        ((597, 600), "b", "unclear"),
        ((597, 600), "a", "kept"),
        ((300, 600), "b", "breached"),
        ((300, 600), "a", "unclear"),
    ],
)
def test_a_guardrail_holds_for_any_longer_shutdown(seconds: tuple[float, float], cut: str, outcome: str) -> None:
    guardrail = compared(*seconds, cut=cut, role="guardrails").guardrail
    assert guardrail is not None
    assert guardrail.outcome == outcome
