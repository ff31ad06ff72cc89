"""From a record's trials to gains: each arm's log ratio to the default of the same block, and guardrails. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.queries import log_ratio, whole_blocks
from fairtrial.record import Record
from fairtrial.record.models import PlannedMetrics, TrialRecord
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tuning import DEFAULT
from fairtrial.tune.events import Told

ALL_OF_IT: Final = 1.0  # excess where a guardrail was 0 and is not any more, or has no value: no ratio says by how much


@dataclass(frozen=True)
class Pair:
    """One arm of one block beside the default of that block.

    Attributes:
        gain: log ratio of the objective, above 0 if better; None without logarithms.
        excess: by guardrail, how much worse than its margin allows; above 0 is a breach.
    """

    gain: float | None
    excess: Mapping[str, float]


def pairs(record: Record) -> dict[str, list[Pair]]:
    """Of every arm but the default, its pairs in the order of blocks; blocks that lost a trial are left out."""
    plan = record.plan
    found: dict[str, list[Pair]] = {arm: [] for arm in plan.factors[plan.arm] if arm != DEFAULT}
    for arms in whole_blocks(record):
        for arm in found.keys() & arms.keys():
            if DEFAULT in arms:
                found[arm].append(_pair(plan.metrics, arms[DEFAULT], arms[arm], margin=plan.design.margin))
    return found


def _pair(metrics: PlannedMetrics, default: TrialRecord, other: TrialRecord, *, margin: float) -> Pair:
    (objective,) = metrics.primary
    ratio = log_ratio(default, other, metric=objective)
    excess: dict[str, float] = {}
    for name in metrics.guardrails:
        bound = math.log1p(metrics.guardrail_margins.get(name, margin))
        excess[name] = _excess(default, other, of=metrics.definitions[name], name=name, bound=bound)
    gain = None if ratio is None else ratio * sign(metrics.definitions[objective])
    return Pair(gain=gain, excess=excess)


def sign(of: MetricDefinition) -> int:
    """1 where more of a metric is better, else -1."""
    return 1 if of.better == "higher" else -1


def _excess(default: TrialRecord, other: TrialRecord, *, of: MetricDefinition, name: str, bound: float) -> float:
    ratio = log_ratio(default, other, metric=name)
    if ratio is not None:
        return -ratio * sign(of) - bound
    below, above = (trial.scalars.get(name, math.nan) for trial in (default, other))
    return -bound if (above - below) * sign(of) >= 0 else ALL_OF_IT


def told(number: int, found: Iterable[Pair], *, reason: str) -> Told:
    """What the search is told of a proposal.

    Args:
        number: of the proposal.
        found: its pairs, at most one.
        reason: why there is none.
    """
    for pair in found:
        if pair.gain is None:
            return Told(number=number, state="failed", gain=None, reason="the objective has no ratio")
        breached = [name for name, excess in pair.excess.items() if excess > 0]
        return Told(
            number=number,
            state="infeasible" if breached else "measured",
            gain=pair.gain,
            excess=dict(pair.excess),
            reason=", ".join(breached),
        )
    return Told(number=number, state="failed", gain=None, reason=reason)


def gains(found: Mapping[str, Sequence[Pair]]) -> Iterator[tuple[str, list[float]]]:
    """By arm, the gains of fresh blocks; arms with fewer than two have no spread and are left out."""
    for arm, every in found.items():
        values = [pair.gain for pair in every if pair.gain is not None]
        if len(values) > 1 and len(values) == len(every):
            yield arm, values


def breached(found: Mapping[str, Sequence[Pair]]) -> Iterator[str]:
    """Arms whose guardrails are worse than their margins on average."""
    for arm, every in found.items():
        names = every[0].excess if every else ()
        if any(math.fsum(pair.excess[name] for pair in every) > 0 for name in names):
            yield arm
