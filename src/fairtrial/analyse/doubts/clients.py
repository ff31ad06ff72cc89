"""Doubts about what a load, and each of several clients, could measure: a sum hides who was at its limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.metrics.latency import percentiles
from fairtrial.metrics.latency.percentiles import LATENCY
from fairtrial.record.models import Plan, TrialRecord

BUSY: Final = re.compile(r"client_(\d+)_busy_share")
# Fewer latencies beyond a percentile than this say little of it: the rule by which a search repeats its probes.
BEYOND: Final = 10
LATE_SHARE: Final = 0.5
UNFINISHED: Final = "unfinished_share"


def saturated(used: Sequence[TrialRecord], *, limit: float) -> str:
    """Which clients were busy for more than a share of their time, in words; empty where one drove, or none was."""
    full: dict[int, int] = {}
    for trial in used:
        for name, share in trial.scalars.items():
            if (own := BUSY.fullmatch(name)) and share > limit:
                full[int(own[1])] = full.get(int(own[1]), 0) + 1
    return ", ".join(f"client {number} in {full[number]}" for number in sorted(full))


def about(plan: Plan, used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Whether the load, and each client, could measure the percentiles that the study names.

    Of clients after Kogias et al., Lancet, 2019.
    """
    named = (*plan.metrics.primary, *plan.metrics.secondary, *plan.metrics.guardrails)
    for name in dict.fromkeys(named):
        percentile = name.removeprefix(LATENCY)
        if name.startswith(LATENCY) and percentile in percentiles.PERCENTILES:
            yield from _of_percentile(used, percentile)
            yield from _unfinished(used, percentile)


def _of_percentile(used: Sequence[TrialRecord], percentile: str) -> Iterator[Doubt]:
    few: dict[int, str] = {}
    late: dict[int, str] = {}
    for trial in used:
        for number in range(1, len(trial.clients) + 1):
            beyond = percentiles.exceedances(f"client_{number}_{LATENCY}{percentile}", trial.scalars) or 0.0
            if beyond < BEYOND:
                few.setdefault(number, f"client {number} has {beyond:.0f} in {trial.trial.id}")
            latency_ns = trial.scalars.get(f"client_{number}_{LATENCY}{percentile}", 0.0)
            late_ns = trial.scalars.get(f"client_{number}_lateness_ns_{percentile}", 0.0)
            if latency_ns and late_ns > LATE_SHARE * latency_ns:
                share = f"{100 * late_ns / latency_ns:.0f} %"
                late.setdefault(number, f"client {number} with {share} in {trial.trial.id}")
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


def _unfinished(used: Sequence[TrialRecord], percentile: str) -> Iterator[Doubt]:
    """Asks whether those without a latency could be the whole tail: a stall up to the window's end hides there."""
    beyond = 1 - percentiles.PERCENTILES[percentile] / 100
    slow = {trial.trial.id: _slow_share(trial, percentile) for trial in used}
    left = {name: share for name, share in slow.items() if share > beyond}
    if left:
        worst = max(left, key=lambda name: left[name])
        yield Doubt(
            code="tail_unmeasured",
            message=f"in {len(left)} of {len(used)} used trials more transactions had been waiting for longer than the "
            f"{percentile} at the end of the window than lie beyond it, in {worst} a share of at least "
            f"{left[worst]:.2g} of those that were due",
            advice="they have no latency, and may be the slowest: measure longer, lower the rate, or find out what "
            "stalled at the end",
            metric=f"{LATENCY}{percentile}",
        )


def _slow_share(trial: TrialRecord, percentile: str) -> float:
    """The least share of those that were due that had not completed after the time of a percentile.

    Where transactions are due at a steady rate, no more of the unfinished can be younger than came due in that time:
    those in progress in a healthy server are fewer, however fast they come.
    """
    unfinished = trial.scalars.get(UNFINISHED, 0.0)
    latency_ns = trial.scalars.get(f"{LATENCY}{percentile}")
    if latency_ns is None or trial.window is None:
        return unfinished
    return max(0.0, unfinished - latency_ns / (trial.window.end_ns - trial.window.start_ns))


def _words(by_client: dict[int, str]) -> str:
    return "; ".join(by_client[number] for number in sorted(by_client))
