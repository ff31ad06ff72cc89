"""Slow shutdowns that were cut off are told by arm, and nothing is claimed of them that a longer one would deny."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts import shutdowns as shutdown_doubts
from fairtrial.analyse.lower_bounds import bounded
from fairtrial.analyse.models import DOUBT_CODES, Comparison
from fairtrial.metrics.telemetry import shutdown as shutdowns
from fairtrial.record.models import TrialRecord
from fairtrial.report import r_script

TEN_BLOCKS: Mapping[str, Any] = MappingProxyType({"blocks": 10})


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


def compared(
    baseline_s: float, arm_s: float, *, cut: str, role: str, design: Mapping[str, Any] = TEN_BLOCKS
) -> Comparison:
    """Of blocks of which one arm's shutdowns were all cut off; each lasts a little longer than the one before."""
    case = Case({"kernel": ("a", "b")}, blocks=design["blocks"], roles={"primary": ["tpm"], role: ["slow_shutdown_s"]})
    metrics = case.plan().metrics
    definitions = metrics.definitions | shutdowns.DEFINITIONS
    plan = case.plan().model_copy(update={"metrics": metrics.model_copy(update={"definitions": definitions})})
    plan = plan.model_copy(update={"design": plan.design.model_copy(update=design)})
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
    assert {guardrail.bound is None, guardrail.difference_bound is None} == {cut == "b"}  # a longer one has no worst


def test_a_guardrail_of_too_few_looked_at_blocks_stays_unclear() -> None:
    """Cut off or not: `breached` is a claim, too."""
    stops = {"blocks": 4, "min_blocks": 2, "stop": "sequential", "spending": "pocock", "equivalence": True}
    for cut in ("neither", "b"):
        guardrail = compared(300, 600, cut=cut, role="guardrails", design=stops).guardrail
        assert guardrail is not None
        assert (guardrail.outcome, guardrail.p_breached < 0.05) == ("unclear", True)


def test_the_direction_is_that_of_the_scale_that_decides() -> None:
    """The mean of an arm may be higher by one long shutdown though the geometric mean is lower."""
    found = compared(300, 200, cut="a", role="secondary")
    higher = found.model_copy(update={"p": 0.001, "difference": found.difference.model_copy(update={"estimate": 9.0})})
    assert [bounded(higher, arm=arm, baseline=not arm).p for arm in (True, False)] == [1.0, 0.001]


@pytest.mark.parametrize(("cut", "reason"), [(False, ""), (True, "no_ratio")])
def test_conditions_are_not_told_apart_by_shutdowns_that_were_cut_off(*, cut: bool, reason: str) -> None:
    case = Case({"kernel": ("a", "b"), "load": ("low", "high")}, blocks=10, roles={"primary": ["slow_shutdown_s"]})
    metrics = case.plan().metrics.model_copy(update={"definitions": shutdowns.DEFINITIONS})

    def lasted(levels: Mapping[str, str], block: int) -> float:
        slower = 2.0 if levels == {"kernel": "b", "load": "high"} else 1.0
        return slower * (100 + block % 3 + 0.1 * (block % (4 if levels["kernel"] == "a" else 5)))

    trials = case.trials(
        slow_shutdown_s=lasted,
        slow_shutdown_censored=lambda levels, block: float(levels["load"] == "low" and block == 1 and cut),
    )
    analysis = analyse(case.plan().model_copy(update={"metrics": metrics}), trials)
    (found,) = analysis.interactions
    assert (found.p < 0.05, found.reason) == (not cut, reason)
    assert ("# R takes all values as they are." in r_script.render(analysis)) is cut
