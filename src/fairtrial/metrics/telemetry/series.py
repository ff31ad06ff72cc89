"""Counters and gauges that endpoints and commands tell: long files, a row for each series and reading.

Owns how readings become columns, and the metrics that a study makes of them. A value holds at some moment between the
beginning and the end of its reading; its middle is taken, and half its length is what makes a rate uncertain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from fairtrial.errors import RecordError
from fairtrial.metrics.telemetry.window import (
    EDGE_SHARE,
    END,
    NANOSECONDS_PER_SECOND,
    TIME,
    WindowSamples,
    observe,
)
from fairtrial.record.models import PlannedMetrics, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.counter_expressions import CounterExpression, labels_of
from fairtrial.study.service_counters import ERROR_SUFFIX

EXPORTER: Final = "prometheus-"  # and a number: what a file is called after its prefix
COMMAND: Final = "command-"
UP: Final = "fairtrial_up"
MISSED: Final = "fairtrial_missed_samples_total"
DEFINITIONS: Final[Mapping[str, MetricDefinition]] = {
    each.name: each
    for each in (
        MetricDefinition(
            name="series_samples_missed",
            label="missed readings of endpoints and commands",
            unit="readings",
            better="lower",
            kind="count",
            source="telemetry-prometheus-*.parquet, telemetry-command-*.parquet: fairtrial_missed_samples_total at the "
            "last reading, summed",
        ),
        MetricDefinition(
            name="series_reading_s_max",
            label="slowest reading of an endpoint or a command",
            unit="s",
            better="lower",
            kind="wall_clock",
            source="telemetry-prometheus-*.parquet, telemetry-command-*.parquet: (end_ns − time_ns) / 10⁹ of readings "
            "that gave values, largest",
        ),
    )
}
_PREFIXES: Final[Mapping[str, str]] = {"prometheus": EXPORTER, "command": COMMAND}
_SUM: Final = "sum"

Values = npt.NDArray[np.float64]


def is_long(source: str) -> bool:
    """Whether a source's file has a row for each series, not a column."""
    return source.startswith(tuple(_PREFIXES.values()))


@dataclass(frozen=True)
class Readings:
    """One source's readings that gave values, in order.

    Attributes:
        times_ns: the middle of each, shape (readings,).
        half_s: half the length of each, seconds.
        series: names of the columns.
        counters: which of them only grow; what these have counted since the first reading stands in `values`.
        values: shape (readings, series). A counter that appears began at 0, one that is smaller than before began
            anew; a gauge that is missing is 0.
        missed: readings that gave none, between the first and the last.
        slowest_s: the longest reading, seconds.
    """

    times_ns: npt.NDArray[np.int64]
    half_s: Values
    series: tuple[str, ...]
    counters: npt.NDArray[np.bool_]
    values: Values
    missed: float
    slowest_s: float

    def samples(self, columns: Values, names: Iterable[str], window: Window) -> WindowSamples | None:
        """Columns made of these readings through the window; None if the readings do not cover it.

        A sampler reads before and after all that is measured: what is not there was missed.
        """
        slack_ns = EDGE_SHARE * (window.end_ns - window.start_ns)
        if self.times_ns[0] > window.start_ns + slack_ns or self.times_ns[-1] < window.end_ns - slack_ns:
            return None
        named = dict(zip(names, columns.T, strict=True))
        return observe(pl.DataFrame({TIME: self.times_ns, **named}), window)


def read(path: Path) -> Readings | None:
    """A long file; None without one, or if no reading gave values.

    Raises:
        RecordError: it is damaged.
    """
    if not path.exists():
        return None
    try:
        frame = pl.read_parquet(path, columns=[TIME, END, "series", "type", "value"])
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint="restore the trial from a copy") from error
    up = frame.filter((pl.col("series") == UP) & (pl.col("value") > 0)).select(TIME, END).unique(TIME).sort(TIME)
    told = frame.filter(pl.col("series").is_in([UP, MISSED]).not_())
    if not up.height or not told.height:
        return None
    kinds = dict(told.select("series", "type").unique("series", keep="last").sort("series").iter_rows())
    wide = up.join(
        told.pivot(on="series", index=TIME, values="value", aggregate_function="last"), on=TIME, how="left"
    ).sort(TIME)
    counters = np.array([kind == "counter" for kind in kinds.values()], dtype=np.bool_)
    filled = wide.select(
        (pl.col(name).forward_fill() if kind == "counter" else pl.col(name)).fill_null(0.0)
        for name, kind in kinds.items()
    )
    values = filled.to_numpy().astype(np.float64)
    begin, end = (wide[name].to_numpy().astype(np.int64) for name in (TIME, END))
    misses = frame.filter(pl.col("series") == MISSED)["value"].to_numpy()
    return Readings(
        times_ns=begin + (end - begin) // 2,
        half_s=(end - begin) / 2 / NANOSECONDS_PER_SECOND,
        series=tuple(kinds),
        counters=counters,
        values=np.where(counters, _counted(values), values),
        missed=float(misses.max(initial=0.0)),
        slowest_s=float((end - begin).max() / NANOSECONDS_PER_SECOND),
    )


def _counted(values: Values) -> Values:
    """What counters have counted since the first reading; one that is smaller than before began anew at 0."""
    steps = np.diff(values, axis=0)
    grown = np.where(steps < 0, values[1:], steps)
    counted: Values = np.vstack([np.zeros(values.shape[1]), np.cumsum(grown, axis=0)])
    return counted


@dataclass(frozen=True)
class CounterScalars:
    """What a trial's long files give.

    Attributes:
        scalars: metrics of the study's own with their error bars, readings that are missing, and the slowest.
        lacking: why a metric that the study judges cannot be computed; empty if all can.
    """

    scalars: dict[str, float]
    lacking: str


class _UncountableError(Exception):
    """Why a metric cannot be computed, as a sentence's end."""


def compute(directory: Path, *, window: Window, metrics: PlannedMetrics) -> CounterScalars:
    """The study's own metrics over a trial's measured window.

    Raises:
        RecordError: a file is damaged.
    """
    read_of = {
        kind: [each for path in sorted(directory.glob(f"telemetry-{prefix}*.parquet")) if (each := read(path))]
        for kind, prefix in _PREFIXES.items()
    }
    every = [each for of_kind in read_of.values() for each in of_kind]
    scalars: dict[str, float] = {}
    if every:
        scalars["series_samples_missed"] = sum(each.missed for each in every)
        scalars["series_reading_s_max"] = max(each.slowest_s for each in every)
    lacking: list[str] = []
    for name, metric in metrics.own.items():
        try:
            figure = _figure(metric.expression, read_of[metric.source], window)
        except _UncountableError as reason:
            if name in metrics.definitions:
                lacking.append(f"metric {name} cannot be computed: {reason}")
            continue
        scalars[name] = figure.value
        if figure.error is not None:
            scalars[f"{name}{ERROR_SUFFIX}"] = figure.error
    return CounterScalars(scalars, "; ".join(lacking))


@dataclass(frozen=True)
class _Figure:
    value: float
    error: float | None


def _figure(expression: CounterExpression, sources: list[Readings], window: Window) -> _Figure:
    through = [_summed(source, chosen, window) for source, chosen in _selected(expression, sources)]
    columns = [samples for samples in through if samples is not None]
    if len(columns) < len(through):
        raise _UncountableError("readings are missing at an edge of the measurement window")
    length_s = columns[0].length_s
    match expression.function:
        case "rate" | "delta" as function:
            over = length_s if function == "rate" else 1.0
            grown, errors = zip(*(_growth(samples) for samples in columns), strict=True)
            return _Figure(sum(grown) / over, sum(errors) / over)
        case "mean":
            return _Figure(sum(_known(each.mean(each.gauge(_SUM))) for each in columns), None)
        case "max":
            inside = np.concatenate([each.times_s for each in columns])
            times = np.unique(np.clip(inside, 0.0, length_s))
            sums = sum(np.interp(times, each.times_s, _column(each, _SUM)) for each in columns)
            return _Figure(float(np.max(sums)), None)


def _selected(expression: CounterExpression, sources: list[Readings]) -> list[tuple[Readings, npt.NDArray[np.intp]]]:
    """The sources that tell of the metric, each with the columns that are summed; none where labels match nothing yet.

    Raises:
        _UncountableError: nobody tells of the metric or has such a label, or it is a counter and has no mean.
    """
    told: list[tuple[Readings, npt.NDArray[np.intp]]] = []
    names: set[str] = set()
    for source in sources:
        columns = [at for at, each in enumerate(source.series) if each.partition("{")[0] == expression.metric]
        labels = {at: labels_of(source.series[at]) for at in columns}
        names |= {name for each in labels.values() for name in each}
        if columns and expression.function in ("mean", "max") and source.counters[columns].any():
            raise _UncountableError(f"{expression.metric} is a counter, which has no {expression.function}; use `rate`")
        if columns:
            chosen = [at for at in columns if expression.selects(labels[at])]
            told.append((source, np.array(chosen, dtype=np.intp)))
    if not told:
        raise _UncountableError(f"nothing that was read is called {expression.metric}")
    if unknown := [name for name, _, _ in expression.labels if name not in names]:
        raise _UncountableError(f"no series of {expression.metric} has the label {unknown[0]}")
    return told


def _summed(source: Readings, chosen: npt.NDArray[np.intp], window: Window) -> WindowSamples | None:
    columns = np.column_stack([source.values[:, chosen].sum(axis=1), source.half_s])
    return source.samples(columns, (_SUM, END), window)


def _growth(samples: WindowSamples) -> tuple[float, float]:
    """What a sum grew by inside the window, and by how much readings that take time leave it uncertain at most.

    At each edge both readings beside it may have been taken half their length earlier or later; while they last, the
    sum changes as it does between them.
    """
    times, values, half_s = samples.times_s, _column(samples, _SUM), _column(samples, END)
    start, end = np.interp([0.0, samples.length_s], times, values)
    error = 0.0
    for edge in (0.0, samples.length_s):
        after = int(np.clip(np.searchsorted(times, edge), 1, len(times) - 1))
        slope = (values[after] - values[after - 1]) / (times[after] - times[after - 1])
        error += abs(float(slope)) * float(half_s[after - 1 : after + 1].max())
    return float(end - start), error


def _column(samples: WindowSamples, name: str) -> Values:
    return samples.frame[name].to_numpy().astype(np.float64)


def _known(value: float | None) -> float:
    return float("nan") if value is None else value


def summed(readings: Readings, window: Window) -> tuple[dict[str, float], dict[str, float]]:
    """What every counter grew by inside the window, and every gauge's mean over it, by series; of numbers only."""
    samples = readings.samples(readings.values, readings.series, window)
    if samples is None:
        return {}, {}
    grown: dict[str, float] = {}
    levels: dict[str, float] = {}
    for name, counter in zip(readings.series, readings.counters, strict=True):
        column = _column(samples, name)
        if not np.isfinite(column).all():
            continue
        if counter:
            start, end = np.interp([0.0, samples.length_s], samples.times_s, column)
            grown[name] = float(end - start)
        else:
            levels[name] = _known(samples.mean(column))
    return grown, levels
