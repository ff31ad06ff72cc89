"""What latency leaves out: transactions that failed or were skipped, and in fio waits before an access is under way.

Who gives up soonest, or waits where nobody looks, then looks fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.metrics.latency import percentiles
from fairtrial.record.models import Plan, TrialRecord

FEW: Final = 0.1  # of the share beyond a percentile: fewer hardly move it
FEW_OF_ALL: Final = 0.001
FAILED: Final = "failed_share"  # of those that ended
SKIPPED: Final = "skipped_share"  # of those that ended or never began
SUBMITTING: Final = "submission_share"
LITTLE: Final = 0.02  # of the time of accesses: about the width of fio's bins
RATE: Final = "rate"  # how fio's options begin that hold accesses back; each is timed from when it is issued


def named_latencies(plan: Plan) -> list[str]:
    """Metrics of the study that are latencies, of all transactions or of a type, each once."""
    named = dict.fromkeys((*plan.metrics.primary, *plan.metrics.secondary, *plan.metrics.guardrails))
    return [name for name in named if percentiles.LATENCY in name]


def about(plan: Plan, used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Asks what share of transactions has no latency, where a metric of the study is one."""
    latencies = named_latencies(plan)
    if not latencies:
        return
    yield from _submission(used)
    yield from _held_back(used)
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


def _submission(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    shares = {trial.trial.id: trial.scalars.get(SUBMITTING, 0.0) for trial in used}
    large = {name: share for name, share in shares.items() if share > LITTLE}
    if large:
        worst = max(large, key=lambda name: large[name])
        yield Doubt(
            code="waits_left_out",
            message=f"in {len(large)} of {len(used)} used trials accesses spent more than {100 * LITTLE:.0f} % of "
            f"their time before fio counts their latency, in {worst} {100 * large[worst]:.0f} %",
            advice="compare no latencies between engines or depths: an asynchronous engine waits there for what it "
            "cannot submit at once, as without `direct: true`; judge `throughput_iops`, or make "
            f"`{SUBMITTING}` a guardrail",
        )


def _held_back(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    held = [trial.trial.id for trial in used if any(name.startswith(RATE) for name in _fio_options(trial))]
    if held:
        yield Doubt(
            code="waits_left_out",
            message=f"in {len(held)} of {len(used)} used trials fio held accesses back by a rate and timed each from "
            "when it was issued: those that a stall delayed look fast",
            advice="judge the longest latency, and `throughput_iops`: below the rate accesses were left out",
        )


def _fio_options(trial: TrialRecord) -> Iterable[str]:
    workload = trial.resolved.workload
    if workload.kind != "fio" or not isinstance(workload.parameters, dict):
        return ()
    options = workload.parameters.get("options")
    return options if isinstance(options, dict) else ()


def _share(trial: TrialRecord) -> float:
    """Of the transactions that failed or were skipped, of all that ended or never began."""
    skipped = trial.scalars.get(SKIPPED, 0.0)
    return skipped + (1 - skipped) * trial.scalars.get(FAILED, 0.0)


def _beyond(metric: str) -> float:
    """The share beyond a percentile of all types; 1 for a mean, and of one type, whose own failures no scalar tells."""
    return 1 - percentiles.PERCENTILES.get(metric.removeprefix(percentiles.LATENCY), 0.0) / 100
