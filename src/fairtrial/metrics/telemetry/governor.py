"""What a governor of purge did and cost: each metric's definition beside its computation.

The columns are the governor's (`crates/govern`): a row for each look, counters from its start. A trial without one has
none of these.
"""

from __future__ import annotations

from typing import Final

from fairtrial.metrics.telemetry.definition import Family, Value, count
from fairtrial.metrics.telemetry.window import WindowSamples

SOURCE: Final = "governor"
NANOSECONDS_PER_SECOND: Final = 1e9
NANOSECONDS_PER_MILLISECOND: Final = 1e6
MOST_THREADS: Final = 32  # innodb_purge_threads


def _share(column: str) -> Value:
    def share(seen: WindowSamples) -> float | None:
        passed_ns = seen.grown(column)
        return None if passed_ns is None else passed_ns / NANOSECONDS_PER_SECOND / seen.length_s

    return share


def _period_s(seen: WindowSamples) -> float | None:
    looks = seen.grown("looks")
    return seen.length_s / looks if looks else None


def _cpu_ms_per_s(seen: WindowSamples) -> float | None:
    cpu_ns = seen.grown("cpu_ns")
    return None if cpu_ns is None else cpu_ns / NANOSECONDS_PER_MILLISECOND / seen.length_s


def _answer_s(seen: WindowSamples) -> float | None:
    answer_ns = seen.mean(seen.gauge("answer_ns"))
    return None if answer_ns is None else answer_ns / NANOSECONDS_PER_SECOND


def _threads(seen: WindowSamples) -> float | None:
    return seen.mean(seen.gauge("threads"))


_SHARE = Family(SOURCE, "share", "count")
_TIME = Family(SOURCE, "s", "wall_clock")

METRICS: Final = (
    Family(SOURCE, "steps", "count").metric(
        "governor_decisions", count("decisions"), of="decisions: steps up, down, to hold or let go", label="decisions"
    ),
    Family(SOURCE, "values", "count").metric(
        "governor_sets", count("sets"), of="sets: `SET GLOBAL` that the server took", label="values set"
    ),
    Family(SOURCE, "values", "count").metric(
        "governor_refused", count("refused"), of="refused: `SET GLOBAL` that it did not take", label="values refused"
    ),
    Family(SOURCE, "looks", "count").metric(
        "governor_looks_missed",
        count("missed_looks"),
        of="missed_looks: looks that were due and had no answer",
        label="governor's missed looks",
    ),
    _TIME.metric("governor_period_s", _period_s, of="looks: the loop's period as achieved", label="governor's period"),
    _TIME.metric(
        "governor_answer_s_mean",
        _answer_s,
        of="answer_ns / 10⁹, mean over the window: what a look takes the server",
        label="server's answer to the governor",
    ),
    Family(SOURCE, "ms/s", "wall_clock").metric(
        "governor_cpu_ms_per_s",
        _cpu_ms_per_s,
        of="cpu_ns: the loop's own processor time, per second",
        label="governor's processor time",
    ),
    Family(SOURCE, "threads", "count").metric(
        "governor_threads_mean",
        _threads,
        of="threads, mean over the window",
        label="purge threads asked for",
        better="higher",
    ),
    _SHARE.metric(
        "governor_held_share",
        _share("held_ns"),
        of="held_ns: time for which purge was held on the lowest rung",
        label="purge held",
    ),
    *(
        _SHARE.metric(
            f"governor_threads_{threads}_share",
            _share(f"at_{threads}_ns"),
            of=f"at_{threads}_ns: time for which {threads} threads, or that share of the batch, were asked for",
            label=f"time with {threads} purge thread{'s' if threads > 1 else ''}",
        )
        for threads in range(1, MOST_THREADS + 1)
    ),
)
