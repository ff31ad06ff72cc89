"""Claims that hold whatever the true values are where some were cut off at a limit, and are lower bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fairtrial.analyse.inference.guardrails import outcome
from fairtrial.analyse.models import Comparison, Guardrail
from fairtrial.analyse.selection import ContrastCell
from fairtrial.metrics.telemetry.shutdown import CENSORED, TIME

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


def heeded(
    compared: Iterable[Comparison], cut: Collection[tuple[str, str, str]], *, alpha: float
) -> Iterator[Comparison]:
    """Comparisons without claims that larger values could deny: the arm is lower, or as high, or kept."""
    for each in compared:
        arm, baseline = ((each.cell, each.metric, level) in cut for level in (each.arm, each.baseline))
        yield _heeded(each, arm=arm, baseline=baseline, alpha=alpha) if arm or baseline else each


def _heeded(comparison: Comparison, *, arm: bool, baseline: bool, alpha: float) -> Comparison:
    moved = comparison.difference.estimate or 0.0
    denied = arm if moved < 0 else baseline
    return comparison.model_copy(
        update={
            "method": comparison.method + CUT_OFF,
            "p": 1.0 if denied else comparison.p,
            "p_equivalence": None if comparison.p_equivalence is None else 1.0,
            "guardrail": _guardrail(comparison.guardrail, arm=arm, baseline=baseline, alpha=alpha),
        }
    )


def _guardrail(guardrail: Guardrail | None, *, arm: bool, baseline: bool, alpha: float) -> Guardrail | None:
    """Of a metric whose larger values are worse."""
    if guardrail is None:
        return None
    kept = 1.0 if arm else guardrail.p_kept
    breached = 1.0 if baseline else guardrail.p_breached
    return guardrail.model_copy(
        update={"p_kept": kept, "p_breached": breached, "outcome": outcome(kept, breached, alpha=alpha)}
    )
