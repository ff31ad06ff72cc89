"""Slow shutdowns that were cut off are told by arm; those that were waited for raise no doubt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from fairtrial.analyse.doubts import shutdowns as shutdown_doubts
from fairtrial.analyse.models import DOUBT_CODES
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
