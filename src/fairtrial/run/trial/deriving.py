"""A finished trial's scalars from its raw files, and whether these tell one story."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from fairtrial.errors import PlaceError, RecordError
from fairtrial.metrics import fleet, per_transaction
from fairtrial.metrics import telemetry as telemetry_metrics
from fairtrial.metrics.latency import merged_latency
from fairtrial.metrics.telemetry import counters
from fairtrial.record.models import PlannedMetrics
from fairtrial.run.trial import sampling as telemetry
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.workloads import Workload, agreement


def derive(
    local: Path, outcome: TrialOutcome, *, workload: Workload[Any], metrics: PlannedMetrics, ticks_per_s: float | None
) -> None:
    """Adds the scalars to the outcome; a trial whose figures cannot be computed is invalid, not fatal.

    Args:
        local: the trial's directory in the record, with its raw files.
        outcome: of the trial so far.
        workload: what wrote them.
        metrics: of the plan.
        ticks_per_s: of the system's place, which processes' times are told in.
    """
    outcome.telemetry = telemetry.to_parquet(local, shift_ns=outcome.shift_ns)
    if outcome.window is None:
        return
    try:
        if outcome.clients:
            fleet.merge(local)
            outcome.invalidate(workload.judged(local))
        common = telemetry_metrics.scalars(local, outcome.window, ticks_per_s=ticks_per_s, metrics=metrics)
        outcome.invalidate(common.lacking)
        own = workload.scalars(local, outcome.window)
        merged_latency.write(local)
        counters.write(local, window=outcome.window, sources=outcome.telemetry)
        disagreeing = agreement.contradictions(local, workload)
    except (PlaceError, RecordError) as error:
        outcome.invalidate(f"its figures cannot be computed: {error}")
        return
    scalars = per_transaction.joined(common.scalars, own)
    outcome.scalars = {name: value for name, value in scalars.items() if math.isfinite(value)}
    outcome.contradict(disagreeing)
    for name in scalars.keys() - outcome.scalars.keys():
        outcome.invalidate(f"metric {name} is {scalars[name]}, which is not a number")
