"""What a governor of purge did and cost: each metric's definition beside its computation.

The columns are the governor's (`crates/govern`): a row for each look, counters from its start. A trial without one has
none of these.
"""

from __future__ import annotations

from typing import Final

from fairtrial.metrics.telemetry.definition import Family, answer_s, count, mean, per_second
from fairtrial.metrics.telemetry.window import NANOSECONDS_PER_SECOND, WindowSamples

SOURCE: Final = "governor"
NANOSECONDS_PER_MILLISECOND: Final = 1e6
MOST_THREADS: Final = 32  # innodb_purge_threads


def _period_s(samples: WindowSamples) -> float | None:
    looks = samples.grown("looks")
    return samples.length_s / looks if looks else None


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
        answer_s,
        of="answer_ns / 10⁹, mean over the window: what a look takes the server",
        label="server's answer to the governor",
    ),
    Family(SOURCE, "ms/s", "wall_clock").metric(
        "governor_cpu_ms_per_s",
        per_second("cpu_ns", scale=NANOSECONDS_PER_MILLISECOND),
        of="cpu_ns: the loop's own processor time, per second",
        label="governor's processor time",
    ),
    Family(SOURCE, "threads", "count").metric(
        "governor_threads_mean",
        mean("threads"),
        of="threads, mean over the window",
        label="purge threads asked for",
        better="higher",
    ),
    _SHARE.metric(
        "governor_held_share",
        per_second("held_ns", scale=NANOSECONDS_PER_SECOND),
        of="held_ns: time for which purge was held on the lowest rung",
        label="purge held",
    ),
    *(
        _SHARE.metric(
            f"governor_threads_{threads}_share",
            per_second(f"at_{threads}_ns", scale=NANOSECONDS_PER_SECOND),
            of=f"at_{threads}_ns: time for which {threads} threads, or that share of the batch, were asked for",
            label=f"time with {threads} purge thread{'s' if threads > 1 else ''}",
        )
        for threads in range(1, MOST_THREADS + 1)
    ),
)
