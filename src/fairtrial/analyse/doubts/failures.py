"""Whether latency leaves out transactions that failed or were skipped: who gives up soonest then looks fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.metrics.latency import percentiles
from fairtrial.record.models import Plan, TrialRecord

FEW: Final = 0.1  # of the share beyond a percentile: fewer hardly move it
FEW_OF_ALL: Final = 0.001
FAILED: Final = "failed_share"  # of those that ended
SKIPPED: Final = "skipped_share"  # of those that ended or never began


def about(plan: Plan, used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Asks what share of transactions has no latency, where a metric of the study is one."""
    named = dict.fromkeys((*plan.metrics.primary, *plan.metrics.secondary, *plan.metrics.guardrails))
    latencies = [name for name in named if percentiles.LATENCY in name]
    if not latencies:
        return
    by_trial = {trial.trial.id: _share(trial) for trial in used}
    few = min([FEW_OF_ALL, *(FEW * _beyond(name) for name in latencies)])
    left = [share for share in by_trial.values() if share > few]
    if not left:
        return
    by_arm: dict[str, list[float]] = {}
    for trial in used:
        by_arm.setdefault(trial.trial.arm, []).append(by_trial[trial.trial.id])
    shares = ", ".join(f"{fmean(of_arm):.2g} of {arm}" for arm, of_arm in by_arm.items())
    beyond = ", ".join(name for name in latencies if max(left) > _beyond(name))
    counted = {name for name in (FAILED, SKIPPED) for trial in used if trial.scalars.get(name, 0.0) > 0}
    judged = " and ".join(f"`{name}`" for name in sorted(counted))
    yield Doubt(
        code="partly_failed",
        message=f"in {len(left)} of {len(used)} used trials transactions failed or were skipped, which have no latency "
        f"(mean shares: {shares}; at most {max(left):.2g})"
        + (f"; that exceeds the share beyond {beyond}, which therefore does not cover all of them" if beyond else ""),
        advice=f"an arm that gives up more looks faster: read latency together with {judged}, or make that a guardrail",
    )


def _share(trial: TrialRecord) -> float:
    """Of the transactions that failed or were skipped, of all that ended or never began."""
    skipped = trial.scalars.get(SKIPPED, 0.0)
    return skipped + (1 - skipped) * trial.scalars.get(FAILED, 0.0)


def _beyond(metric: str) -> float:
    """The share beyond a percentile of all types; 1 for a mean, and of one type, whose own failures no scalar tells."""
    return 1 - percentiles.PERCENTILES.get(metric.removeprefix(percentiles.LATENCY), 0.0) / 100
