"""A gate within one run: each arm against the baseline that ran in turn with it, by the verdicts of its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairtrial.analyse.models import Analysis, CellResult, Comparison
from fairtrial.analyse.result import Verdict
from fairtrial.history.gating import (
    OF_GUARDRAIL,
    Gate,
    GateCheck,
    Status,
    interval_in_words,
    named,
    size_in_words,
    worse_by,
)
from fairtrial.metrics.fidelity import Fidelity
from fairtrial.report import numbers
from fairtrial.report.concerns import concerns, doubts
from fairtrial.report.tables import decided, verdict
from fairtrial.study.catalogue import MetricDefinition

_OF_VERDICT: Final[dict[Verdict, Status]] = {
    "faster": "passed",
    "equivalent": "passed",
    "slower": "failed",
    "undecided": "undecided",
    "none": "undecided",
}


def by_arms(analysis: Analysis, *, metrics: Sequence[str], drew: Iterable[Fidelity] = ()) -> Gate:
    """Fails where an arm is slower than the baseline in a cell, breaches a guardrail, or has no value.

    Args:
        analysis: of a finished run.
        metrics: names of those to check.
        drew: as `concerns.doubts` takes it.
    """
    baseline, *arms = analysis.levels
    judged = [doubt for doubt in doubts(analysis, drew) if doubt.metric in ("", *metrics)]
    return Gate(
        against=baseline,
        checks=tuple(
            _check(analysis, cell, arm=arm, metric=metric)
            for metric in metrics
            for cell in analysis.cells
            for arm in arms
        ),
        notes=tuple(
            f"doubt{f' {each.where}' if each.where else ''}: {each.message} {each.advice}" for each in concerns(judged)
        ),
    )


def _check(analysis: Analysis, cell: CellResult, *, arm: str, metric: str) -> GateCheck:
    found = next((each for each in cell.comparisons.get(metric, ()) if each.arm == arm), None)
    if found is None:
        has_value = any(summary.arm == arm for summary in cell.summaries.get(metric, ()))
        message = f"{analysis.levels[0]} has no value beside it" if has_value else f"{arm} has no value"
        status: Status = "skipped" if has_value else "failed"
        return GateCheck(series=named(cell.cell, arm), metric=metric, status=status, message=message)
    definition = analysis.metrics[metric]
    return GateCheck(
        series=named(cell.cell, arm),
        metric=metric,
        status=_OF_VERDICT[found.verdict] if found.guardrail is None else OF_GUARDRAIL[found.guardrail.outcome],
        message="".join(_words(found, definition, margin=analysis.margin)),
        worse_by=worse_by(found.ratio, definition.better),
    )


def _words(found: Comparison, definition: MetricDefinition, *, margin: float) -> Iterator[str]:
    interval, confidence = decided(found)
    yield size_in_words(found.ratio.estimate, found.difference.estimate or 0.0, definition.unit)
    if words := interval_in_words(interval):
        yield f"{words} at {numbers.percent(confidence)}"
    yield f": {verdict(found, definition, margin=margin)}"
    if not found.claimable:
        yield f", because {found.n} blocks are too few for a verdict"
    elif found.verdict == "undecided" and found.smallest_effect is not None:
        change = numbers.percents(found.smallest_effect)
        yield f"; a change of {change} would have been found with a probability of 80 %"
