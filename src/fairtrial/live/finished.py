"""Numbers over time of a trial that has ended, from its raw files: the same charts as while it ran, and more."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from fairtrial.live import words
from fairtrial.live.activity import THROUGHPUT, Chart
from fairtrial.metrics import latency
from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.metrics.series import throughput as throughput_series
from fairtrial.metrics.series.timeline import NANOSECONDS_PER_SECOND
from fairtrial.metrics.telemetry.measures import MEASURES, columns_of, completed, valued
from fairtrial.metrics.telemetry.window import TIME
from fairtrial.record.models import TrialRecord, Window
from fairtrial.workloads import throughput_of

PERCENTS: Final = {"p95": 95.0, "p99": 99.0}


def charts(directory: Path, trial: TrialRecord) -> tuple[dict[str, Chart], dict[str, float]]:
    """Charts by name, and seconds at which parts of the trial began; both empty of one that measured nothing.

    Seconds count from the first of the load's intervals or, without any, from the window's start.

    Raises:
        RecordError: a raw file is damaged.
    """
    if trial.window is None:
        return {}, {}
    whole, _ = throughput_series.course(directory, window=trial.window)
    zero_ns = trial.window.start_ns + (int(whole.starts_s[0] * NANOSECONDS_PER_SECOND) if whole.n else 0)
    drawn: dict[str, Chart] = {}
    if whole.n:
        metric = throughput_of(trial.resolved)
        chart = Chart(title=f"throughput, {'per second' if metric is None else metric.unit}")
        for second, per_s in zip((whole.starts_s - whole.starts_s[0]).tolist(), whole.per_s.tolist(), strict=True):
            chart.course.add(second, per_s * words.unit_s(metric))
        drawn[THROUGHPUT] = chart
    drawn |= _latencies(directory, zero_ns=zero_ns)
    drawn |= _telemetry(directory, trial.window, zero_ns=zero_ns)
    return drawn, {"measuring": (trial.window.start_ns - zero_ns) / NANOSECONDS_PER_SECOND}


def _latencies(directory: Path, *, zero_ns: int) -> dict[str, Chart]:
    found = latency.by_second(directory, zero_ns=zero_ns)
    drawn = {name: Chart(title=f"{name} latency, ms") for name in PERCENTS} if found else {}
    for second, distribution in sorted(found.items()):
        values = distribution.percentiles_ns(np.array(list(PERCENTS.values()))) / words.MILLISECOND_NS
        for chart, value in zip(drawn.values(), values.tolist(), strict=True):
            chart.course.add(float(second), value)
    return drawn


def _telemetry(directory: Path, window: Window, *, zero_ns: int) -> dict[str, Chart]:
    drawn: dict[str, Chart] = {}
    for source in dict.fromkeys(each.source for each in MEASURES):
        raw = telemetry_files.read(directory, source, only=partial(columns_of, source))
        if raw.height:
            drawn |= sampled(raw.filter(pl.col(TIME) <= window.end_ns), source, zero_ns=zero_ns)
    return drawn


def sampled(raw: pl.DataFrame, source: str, *, zero_ns: int) -> dict[str, Chart]:
    """The measures of one source; those that are zero throughout are left out."""
    known = set(raw.columns)
    measures = [each for each in MEASURES if each.source == source]
    frame = completed(
        raw.sort(TIME).with_columns(
            second=(pl.col(TIME) - zero_ns) / NANOSECONDS_PER_SECOND,
            arm=pl.lit(""),
            elapsed_s=pl.col(TIME).diff() / NANOSECONDS_PER_SECOND,
        ),
        source,
    )
    measures = [each for each in measures if (known | set(frame.columns)).intersection(each.needs)]
    values = valued(frame, measures)
    drawn = {measure.name: _chart(measure.title, values["second"], values[measure.name]) for measure in measures}
    return {name: chart for name, chart in drawn.items() if any(chart.course.values)}


def _chart(title: str, seconds: Iterable[float], values: Iterable[float | None]) -> Chart:
    chart = Chart(title=title)
    for second, value in zip(seconds, values, strict=True):
        if value is not None and second >= 0:
            chart.course.add(second, value)
    return chart
