"""Claims that hold whatever the true values are where some were cut off at a limit, and are lower bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fairtrial.analyse.inference.judging import rises
from fairtrial.analyse.models import Comparison, Guardrail
from fairtrial.analyse.selection import ContrastCell
from fairtrial.metrics.telemetry.shutdown import CENSORED, TIME
from fairtrial.record.models import TrialRecord

METRICS: Final = {TIME: CENSORED}  # and the scalar that says of a trial whether its value was cut off

CUT_OFF: Final = ", some of them cut off at a limit"  # what a method's name ends in

CutOff = frozenset[tuple[str, str, str]]  # cell, metric, level


def cut_off(cells: Iterable[ContrastCell]) -> CutOff:
    """Which levels of the contrast have a used trial whose value was cut off."""
    return frozenset(
        (cell.name, metric, level)
        for cell in cells
        for level, trials in cell.groups.items()
        for metric, mark in METRICS.items()
        if any(trial.scalars.get(mark) for trial in trials)
    )


def cut_off_of(trials: Iterable[TrialRecord]) -> set[tuple[str, str, str]]:
    """The cells, arms and metrics of which a value of these trials was cut off."""
    return {
        (trial.trial.cell, trial.trial.arm, metric)
        for trial in trials
        for metric, mark in METRICS.items()
        if trial.scalars.get(mark)
    }


def heeded(compared: Iterable[Comparison], cut: Collection[tuple[str, str, str]]) -> Iterator[Comparison]:
    """Comparisons of which each claims no more than `bounded` leaves it."""
    for each in compared:
        arm, baseline = ((each.cell, each.metric, level) in cut for level in (each.arm, each.baseline))
        yield bounded(each, arm=arm, baseline=baseline)


def bounded(comparison: Comparison, *, arm: bool, baseline: bool) -> Comparison:
    """Without claims that larger values of those of `arm` and `baseline` that were cut off could deny.

    That the arm is lower, or as high, or higher, and of a guardrail, whose larger values are worse, kept or breached.
    """
    if not (arm or baseline):
        return comparison
    denied = baseline if rises(comparison) else arm
    return comparison.model_copy(
        update={
            "method": comparison.method + CUT_OFF,
            "p": 1.0 if denied else comparison.p,
            "p_equivalence": None if comparison.p_equivalence is None else 1.0,
            "guardrail": _guardrail(comparison.guardrail, arm=arm, baseline=baseline),
        }
    )


def _guardrail(guardrail: Guardrail | None, *, arm: bool, baseline: bool) -> Guardrail | None:
    if guardrail is None:
        return None
    denied = (arm and guardrail.outcome == "kept") or (baseline and guardrail.outcome == "breached")
    return guardrail.model_copy(
        update={
            "p_kept": 1.0 if arm else guardrail.p_kept,
            "p_breached": 1.0 if baseline else guardrail.p_breached,
            "outcome": "unclear" if denied else guardrail.outcome,
            "bound": None if arm else guardrail.bound,
            "difference_bound": None if arm else guardrail.difference_bound,
        }
    )
