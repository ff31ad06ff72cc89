"""Counters and gauges that endpoints and commands tell: long files, a row for each series and reading.

Owns how readings become columns, and the metrics that a study makes of them. Of a reading the middle is taken, so that
half its length is what makes a rate uncertain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from fairtrial.errors import RecordError
from fairtrial.metrics import parquet
from fairtrial.metrics.telemetry.window import (
    EDGE_SHARE,
    END,
    NANOSECONDS_PER_SECOND,
    TIME,
    CounterSums,
    WindowSamples,
    observe,
)
from fairtrial.record.models import PlannedMetrics, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.counter_expressions import CounterExpression, labels_of
from fairtrial.study.service_counters import ERROR_SUFFIX

EXPORTER: Final = "prometheus-"  # and a number: what a file is called after its prefix
COMMAND: Final = "command-"
SCHEMA: Final = pl.Schema({TIME: pl.Int64, END: pl.Int64, "series": pl.String, "type": pl.String, "value": pl.Float64})
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

_AT_ONCE: Final = 500  # series in one table, so that its memory is bounded

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


def is_long(source: str) -> bool:
    """Whether a source's file has a row for each series, not a column."""
    return source.startswith(tuple(_PREFIXES.values()))


@dataclass(frozen=True)
class Readings:
    """One source's readings that gave values, in order, and a row for each series of each.

    Attributes:
        times_ns: the middle of each, shape (readings,).
        ends_ns: the end of each.
        series: names, sorted.
        metrics: places in `series` of each metric's.
        told: readings that tell of each metric.
        counters: which series only grow, shape (series,).
        unknown_until: by series, the reading that told of a counter first when the one before told of no series of its
            metric, so that nobody knows what it had counted; 0 of others.
        first_rows: of each series, and behind the last one; the rows of one follow each other in time.
        at: the reading of each row, shape (rows,).
        values: what a counter grew by since its last row, or a gauge's value. A counter that joins others of its metric
            began at 0, as one that is smaller than before.
        missed: readings that gave none, between the first and the last.
        slowest_s: the longest reading, seconds.
    """

    times_ns: npt.NDArray[np.int64]
    ends_ns: npt.NDArray[np.int64]
    series: tuple[str, ...]
    metrics: Mapping[str, Sequence[int]]
    told: Mapping[str, Places]
    counters: npt.NDArray[np.bool_]
    unknown_until: Places
    first_rows: Places
    at: Places
    values: Values
    missed: float
    slowest_s: float

    def samples(self, metric: str, columns: Mapping[str, Sequence[int]], window: Window) -> WindowSamples | None:
        """Sums of one metric's series through the window; None if the readings that tell of it do not cover it.

        A sampler reads before and after all that is measured: what is not there was missed. Where others of its metric
        are told, a gauge that is missing is 0, and a counter keeps what it had.
        """
        told = self.told[metric]
        times_ns = self.times_ns[told]
        slack_ns = EDGE_SHARE * (window.end_ns - window.start_ns)
        if times_ns[0] > window.start_ns + slack_ns or times_ns[-1] < window.end_ns - slack_ns:
            return None
        sums = {name: self._sum(series)[told] for name, series in columns.items()}
        return observe(pl.DataFrame({TIME: times_ns, END: self.ends_ns[told], **sums}), window)

    def unknown(self, window: Window) -> npt.NDArray[np.bool_]:
        """By series, whether nobody knows what it had counted at some moment of the window."""
        until = self.unknown_until
        inside = (self.times_ns[until] > window.start_ns) & (self.times_ns[until - 1] < window.end_ns)
        return (until > 0) & inside

    def _sum(self, series: Sequence[int]) -> Values:
        """Sum at each reading, shape (readings,)."""
        counted = self._by_reading([each for each in series if self.counters[each]])
        return np.cumsum(counted) + self._by_reading([each for each in series if not self.counters[each]])

    def _by_reading(self, series: Sequence[int]) -> Values:
        rows = [np.arange(self.first_rows[each], self.first_rows[each + 1]) for each in series]
        every = np.concatenate([np.empty(0, dtype=np.intp), *rows])
        values: Values = np.bincount(self.at[every], self.values[every], len(self.times_ns)).astype(np.float64)
        return values


def read(path: Path) -> Readings | None:
    """A long file; None without one, or if no reading gave values.

    Raises:
        RecordError: it is damaged.
    """
    if not path.exists():
        return None
    try:
        frame = parquet.read(path, list(SCHEMA)).cast(SCHEMA)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint="restore the trial from a copy") from error
    up = frame.filter((pl.col("series") == UP) & (pl.col("value") > 0)).select(TIME, END).unique(TIME).sort(TIME)
    told = frame.filter(pl.col("series").is_in([UP, MISSED]).not_()).unique(["series", TIME], keep="last")
    rows = told.join(up.select(TIME).with_row_index("at"), on=TIME).sort("series", "at")
    if not rows.height:
        return None
    begin, end = (up[name].to_numpy().astype(np.int64) for name in (TIME, END))
    misses = frame.filter(pl.col("series") == MISSED)["value"].to_numpy()
    return _readings(
        rows,
        times_ns=begin + (end - begin) // 2,
        ends_ns=end,
        missed=float(misses.max(initial=0.0)),
        slowest_s=float((end - begin).max() / NANOSECONDS_PER_SECOND),
    )


def _readings(
    rows: pl.DataFrame,
    *,
    times_ns: npt.NDArray[np.int64],
    ends_ns: npt.NDArray[np.int64],
    missed: float,
    slowest_s: float,
) -> Readings:
    of = rows["series"].rle_id().to_numpy().astype(np.intp)
    at, values = rows["at"].to_numpy().astype(np.intp), rows["value"].to_numpy().astype(np.float64)
    first_rows = np.searchsorted(of, np.arange(of[-1] + 2))
    firsts, lasts = first_rows[:-1], first_rows[1:] - 1
    series: tuple[str, ...] = tuple(rows["series"][firsts])
    counters = (rows["type"][lasts] == "counter").to_numpy()
    metrics: dict[str, list[int]] = {}
    for place, name in enumerate(series):
        metrics.setdefault(name.partition("{")[0], []).append(place)
    metric_of = np.empty(len(series), dtype=np.intp)
    for number, places in enumerate(metrics.values()):
        metric_of[places] = number
    of_metric = metric_of[of] * len(times_ns)
    moments = np.unique(of_metric + at)  # that metrics are told of, one metric after the other
    joins = np.isin((of_metric + at)[firsts] - 1, moments) & (at[firsts] > 0)
    parts = np.split(moments % len(times_ns), np.searchsorted(moments, np.arange(1, len(metrics)) * len(times_ns)))
    steps = np.diff(values, prepend=0.0)
    steps = np.where(steps < 0, values, steps)
    steps[firsts] = np.where(joins, values[firsts], 0.0)
    return Readings(
        times_ns=times_ns,
        ends_ns=ends_ns,
        series=series,
        metrics=metrics,
        told=dict(zip(metrics, parts, strict=True)),
        counters=counters,
        unknown_until=np.where(counters & ~joins, at[firsts], 0),
        first_rows=first_rows,
        at=at,
        values=np.where(counters[of], steps, values),
        missed=missed,
        slowest_s=slowest_s,
    )


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
            figure = _finite(metric.expression, read_of[metric.source], window)
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


def _finite(expression: CounterExpression, sources: list[Readings], window: Window) -> _Figure:
    with np.errstate(invalid="ignore"):  # of infinite values, which are refused below
        figure = _figure(expression, sources, window)
    if not np.isfinite([figure.value, figure.error or 0.0]).all():
        raise _UncountableError(f"a reading of {expression.metric} is NaN or infinite")
    return figure


def _figure(expression: CounterExpression, sources: list[Readings], window: Window) -> _Figure:
    selected = _selected(expression, sources)
    if any(source.unknown(window)[chosen].any() for source, chosen in selected):
        raise _UncountableError(f"{expression.metric} appears inside the measurement window with an unknown past")
    through = [source.samples(expression.metric, {_SUM: chosen}, window) for source, chosen in selected]
    columns = [samples for samples in through if samples is not None]
    if len(columns) < len(through):
        raise _UncountableError("readings are missing at an edge of the measurement window")
    length_s = columns[0].length_s
    match expression.function:
        case "rate" | "delta" as function:
            over = length_s if function == "rate" else 1.0
            grown = sum(float(each.changes([_SUM])[0]) for each in columns)
            error = sum(float((each.uncertainty([_SUM]) + each.interpolation([_SUM]))[0]) for each in columns)
            return _Figure(grown / over, error / over)
        case "mean":
            return _Figure(sum(_known(each.mean(each.gauge(_SUM))) for each in columns), None)
        case "max":
            inside = np.concatenate([each.times_s for each in columns])
            times = np.unique(np.clip(inside, 0.0, length_s))
            sums = sum(np.interp(times, each.times_s, _column(each, _SUM)) for each in columns)
            return _Figure(float(np.max(sums)), None)


def _selected(expression: CounterExpression, sources: list[Readings]) -> list[tuple[Readings, list[int]]]:
    """The sources that tell of the metric, each with the series that are summed; none where labels match nothing yet.

    Raises:
        _UncountableError: nobody tells of the metric or has such a label, labels are none, or a counter has no mean.
    """
    told: list[tuple[Readings, list[int]]] = []
    names: set[str] = set()
    for source in sources:
        series = source.metrics.get(expression.metric, ())
        try:
            labels = {place: labels_of(source.series[place]) for place in series}
        except ValueError as error:
            raise _UncountableError(f"a series of {expression.metric} has no readable labels") from error
        names |= {name for each in labels.values() for name in each}
        if series and expression.function in ("mean", "max") and source.counters[series].any():
            raise _UncountableError(f"{expression.metric} is a counter, which has no {expression.function}; use `rate`")
        if series:
            told.append((source, [place for place in series if expression.selects(labels[place])]))
    if not told:
        raise _UncountableError(f"nothing that was read is called {expression.metric}")
    if unknown := [name for name, _, _ in expression.labels if name not in names]:
        raise _UncountableError(f"no series of {expression.metric} has the label {unknown[0]}")
    return told


def _column(samples: WindowSamples, name: str) -> Values:
    return samples.frame[name].to_numpy().astype(np.float64)


def _known(value: float | None) -> float:
    return float("nan") if value is None else value


def summed(readings: Readings, window: Window) -> CounterSums:
    """What every counter grew by inside the window, and every gauge's mean over it, by series; of numbers only."""
    every = CounterSums()
    unknown = readings.unknown(window)
    for metric, series in readings.metrics.items():
        known = [place for place in series if not unknown[place]]
        for first in range(0, len(known), _AT_ONCE):
            chosen = known[first : first + _AT_ONCE]
            samples = readings.samples(metric, {str(place): [place] for place in chosen}, window)
            sums = CounterSums() if samples is None else _sums(readings, samples, chosen)
            for part, into in vars(every).items():
                into |= {readings.series[int(place)]: value for place, value in getattr(sums, part).items()}
    return every


def _sums(readings: Readings, samples: WindowSamples, series: Sequence[int]) -> CounterSums:
    columns = {place: _column(samples, str(place)) for place in series}
    numbers = [place for place, column in columns.items() if np.isfinite(column).all()]
    levels = {str(place): _known(samples.mean(columns[place])) for place in numbers if not readings.counters[place]}
    return samples.sums([str(place) for place in numbers if readings.counters[place]], levels)
