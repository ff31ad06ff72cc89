"""Doubts about what a load, and each of several clients, could measure: a sum hides who was at its limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.doubts import failures
from fairtrial.analyse.models import Doubt
from fairtrial.metrics.latency import NANOSECONDS_PER_SECOND, percentiles
from fairtrial.metrics.latency.percentiles import LATENCY
from fairtrial.record.models import Plan, TrialRecord

BUSY: Final = re.compile(r"client_(\d{1,9})_busy_share")
# Fewer latencies beyond a percentile than this say little of it: the rule by which a search repeats its probes.
BEYOND: Final = 10
LATE_SHARE: Final = 0.5
LATENESS: Final = "lateness_ns_"
MEDIAN: Final = "p50"
UNFINISHED: Final = "unfinished_share"
NEARLY: Final = 0.95  # under a steady overload a maximum is what the queue's first has waited, but for chance
# Nothing lies beyond a maximum; so many that are slower than a mean move it by as much as their number.
BEYOND_OTHERS: Final = {"max": 0.0, "mean": 0.01}


def saturated(used: Sequence[TrialRecord], *, limit: float) -> str:
    """Which clients were busy for more than a share of their time, in words; empty where one drove, or none was."""
    full: dict[int, int] = {}
    for trial in used:
        for name, share in trial.scalars.items():
            if (own := BUSY.fullmatch(name)) and share > limit:
                full[int(own[1])] = full.get(int(own[1]), 0) + 1
    return ", ".join(f"client {number} in {full[number]}" for number in sorted(full))


def about(plan: Plan, used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Whether the load, and each client, could measure the latencies that the study names.

    Of clients after Kogias et al., Lancet, 2019.
    """
    latencies = failures.named_latencies(plan)
    if latencies:
        yield from _waiting(used)
    for name in latencies:
        percentile = name.removeprefix(LATENCY)
        if percentile in percentiles.PERCENTILES:
            yield from _of_percentile(used, percentile)
        if name.partition(LATENCY)[2] in (*percentiles.PERCENTILES, *BEYOND_OTHERS):
            yield from _unfinished(used, name)


def _waiting(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Asks of one client what `_of_percentile` asks of several, of the median: a server's stall makes tails late."""
    late = {trial.trial.id: _late_share(trial, "", MEDIAN) for trial in used if not trial.clients}
    left = {name: share for name, share in late.items() if share > LATE_SHARE}
    if left:
        worst = max(left, key=lambda name: left[name])
        yield Doubt(
            code="tail_unmeasured",
            message=f"in {len(left)} of {len(used)} used trials more than half of the median latency passed before "
            f"transactions began, in {worst} {100 * left[worst]:.0f} %",
            advice="they waited for a virtual user or for the client: give it more virtual users (of pgbench: "
            "`clients`) or processors, or lower the rate",
        )


def _late_share(trial: TrialRecord, client: str, percentile: str) -> float:
    """What part of a percentile of latency is at most one of lateness; 0 where the load is a closed loop."""
    latency_ns = trial.scalars.get(f"{client}{LATENCY}{percentile}", 0.0)
    late_ns = trial.scalars.get(f"{client}{LATENESS}{percentile}", 0.0)
    return late_ns / latency_ns if latency_ns else 0.0


def _of_percentile(used: Sequence[TrialRecord], percentile: str) -> Iterator[Doubt]:
    few: dict[int, str] = {}
    late: dict[int, str] = {}
    for trial in used:
        for number in range(1, len(trial.clients) + 1):
            beyond = percentiles.exceedances(f"client_{number}_{LATENCY}{percentile}", trial.scalars) or 0.0
            if beyond < BEYOND:
                few.setdefault(number, f"client {number} has {beyond:.0f} in {trial.trial.id}")
            if (share := _late_share(trial, f"client_{number}_", percentile)) > LATE_SHARE:
                late.setdefault(number, f"client {number} with {100 * share:.0f} % in {trial.trial.id}")
    if few:
        yield Doubt(
            code="tail_unmeasured",
            message=f"fewer than {BEYOND} latencies of a client lie beyond its {percentile}: {_words(few)}",
            advice="this client alone cannot tell its tail: measure longer, or use fewer clients",
            metric=f"{LATENCY}{percentile}",
        )
    if late:
        yield Doubt(
            code="tail_unmeasured",
            message=f"more than half of a client's {percentile} latency passed before its transactions began: "
            f"{_words(late)}",
            advice="the tail is largely the client's own: give it more virtual users or processors, or lower the rate",
            metric=f"{LATENCY}{percentile}",
        )


def _unfinished(used: Sequence[TrialRecord], metric: str) -> Iterator[Doubt]:
    """Asks whether those without a latency could be the whole tail: a stall up to the window's end hides there."""
    of_all, _, statistic = metric.partition(LATENCY)
    beyond = BEYOND_OTHERS.get(statistic, 1 - percentiles.PERCENTILES.get(statistic, 0.0) / 100)
    slow = {trial.trial.id: _slow_share(trial, metric) for trial in used}
    left = {name: share for name, share in slow.items() if share > beyond}
    if left:
        worst = max(left, key=lambda name: left[name])
        of_type = f"{of_all.strip('_')}'s {statistic}" if of_all else statistic
        yield Doubt(
            code="tail_unmeasured",
            message=f"in {len(left)} of {len(used)} used trials more transactions are slower than the {of_type} and "
            f"were unfinished at the end of the window than lie beyond it, in {worst} a share of at least "
            f"{left[worst]:.2g} of those that were due",
            advice="they have no latency, and may be the slowest: measure longer, lower the rate, or find out what "
            "stalled at the end",
            metric=metric,
        )


def _slow_share(trial: TrialRecord, metric: str) -> float:
    """The least share of those that were due that had not completed after the time of a percentile.

    Where transactions are due at a steady rate, no more of the unfinished can be younger than came due in that time:
    those in progress in a healthy server are fewer, however fast they come. Of a queue whose first has waited for
    longer than that, the last will, too: it has as many before it, and they leave no faster than they came.
    """
    unfinished = trial.scalars.get(UNFINISHED, 0.0)
    latency_ns = trial.scalars.get(metric)
    if latency_ns is None or trial.window is None:
        return unfinished
    window_ns = trial.window.end_ns - trial.window.start_ns
    due = trial.scalars.get("offered_per_s", 0.0) * window_ns / NANOSECONDS_PER_SECOND
    waiting = trial.scalars.get("queue_length_end", 0.0) / due if due else unfinished
    queued = min(1.0, waiting) if waiting * window_ns > NEARLY * latency_ns else 0.0  # of them all at most
    return max(queued, unfinished - latency_ns / window_ns)


def _words(by_client: dict[int, str]) -> str:
    return "; ".join(by_client[number] for number in sorted(by_client))
