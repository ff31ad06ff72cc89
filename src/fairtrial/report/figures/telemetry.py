"""Small figures of the machine and the server during trials: each arm's mean over its trials, and their range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Final

import altair as alt
import numpy as np
import polars as pl

from fairtrial.analyse.models import CellResult
from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.metrics.series.timeline import NANOSECONDS_PER_SECOND
from fairtrial.metrics.telemetry.definitions import CPU_CLASSES, SECTOR_BYTES, whole_devices
from fairtrial.metrics.telemetry.window import TIME
from fairtrial.report.figures.dips import dips, marked
from fairtrial.report.figures.thinning import Rows, rows
from fairtrial.report.figures.verdicts import Drawing, Figure, Spec, arm_colour
from fairtrial.report.scene import ContrastTrial, Scene

HEIGHT: Final = 120
RATE: Final = "_per_s"
DISK_FIELDS: Final = ("sectors_read", "sectors_written")
STEPS: Final = 120  # along the time axis: more than a small figure can show
MEBI: Final = 2.0**20
GIBI: Final = 2.0**30
PERCENT_PER_MICROSECOND_PER_S: Final = 1e-4


@dataclass(frozen=True)
class Measure:
    """One small figure. `value` is an expression over a source's columns; those it needs are `needs`."""

    name: str
    title: str
    source: str
    needs: tuple[str, ...]
    value: pl.Expr

    @property
    def columns(self) -> list[str]:
        """Those of the source that `value` needs, as they are or as rates."""
        return [name.removesuffix(RATE) for name in self.value.meta.root_names()]


def _sum(*columns: str) -> pl.Expr:
    """The columns' sum; null where one is, as every rate is in a trial's first row."""
    return pl.sum_horizontal(*columns, ignore_nulls=False)


def _cpu(title: str, *classes: str) -> Measure:
    whole = _sum(*(f"{name}_per_s" for name in CPU_CLASSES))
    part = _sum(*(f"{name}_per_s" for name in classes))
    return Measure(
        name=f"cpu-{classes[0]}", title=f"CPU, {title}, %", source="cpu", needs=classes, value=100 * part / whole
    )


def _stalled(resource: str, *, shown: str) -> Measure:
    column = f"{resource}.some.total_us"
    value = pl.col(f"{column}_per_s") * PERCENT_PER_MICROSECOND_PER_S
    return Measure(
        name=f"stall-{resource}",
        title=f"stalled on {shown} (PSI), % of time",
        source="pressure",
        needs=(column,),
        value=value,
    )


def _level(title: str, *, source: str, column: str) -> Measure:
    name = column.replace("_", "-").lower()
    return Measure(name=name, title=f"{title}, GiB", source=source, needs=(column,), value=pl.col(column) / GIBI)


def _disks(title: str, how: str) -> Measure:
    column = f"sectors_{how}"
    value = pl.col(f"{column}{RATE}") * SECTOR_BYTES / MEBI
    return Measure(name=f"disk-{how}", title=f"{title}, MiB/s", source="disks", needs=(column,), value=value)


def _ratio(title: str, part: str, whole: str) -> Measure:
    """A share of two columns of the server, %."""
    return Measure(
        name=part.removesuffix("_per_s").replace("_", "-"),
        title=f"{title}, %",
        source="server",
        needs=(part.removesuffix("_per_s"),),
        value=100 * pl.col(part) / pl.col(whole),
    )


def _server(title: str, column: str, *, per: float = 1.0) -> Measure:
    """A column of the server as it is, or what its counter grew by per second in units of `per`."""
    name = column.removesuffix("_per_s")
    return Measure(name=name.replace("_", "-"), title=title, source="server", needs=(name,), value=pl.col(column) / per)


MEASURES: Final = (
    _cpu("user", "user", "nice"),
    _cpu("system", "system", "irq", "softirq"),
    _cpu("waiting for I/O", "iowait"),
    _cpu("stolen", "steal"),
    _level("memory available", source="memory", column="MemAvailable"),
    _level("server's memory", source="process-server", column="resident_bytes"),
    _disks("read from disks", "read"),
    _disks("written to disks", "written"),
    _stalled("cpu", shown="CPU"),
    _stalled("memory", shown="memory"),
    _stalled("io", shown="I/O"),
    _server("history list length", "history_list_length"),
    _ratio("checkpoint age, of its maximum", "checkpoint_age_bytes", "checkpoint_age_max_bytes"),
    _ratio("dirty pages, of the buffer pool", "buffer_pool_pages_dirty", "buffer_pool_pages_total"),
    _ratio("buffer pool misses, of its reads", "buffer_pool_reads_per_s", "buffer_pool_read_requests_per_s"),
    _server("row-lock waits/s", "row_lock_waits_per_s"),
    _server("written to the server's log, MiB/s", "log_written_bytes_per_s", per=MEBI),
)


def figures(scene: Scene, cell: CellResult) -> tuple[Figure, ...]:
    """The small figures of a cell; a measure that is zero throughout is left out."""
    below = dips(scene, cell).shown
    drawn = []
    for source in dict.fromkeys(each.source for each in MEASURES):
        frame = _sampled(scene, cell, source)
        for measure in MEASURES:
            if measure.source == source and measure.name in frame.columns:
                points = _points(frame, measure)
                if not points.is_empty() and points["high"].max() != 0:
                    shown = rows(points, ["second", "arm", "mean", "low", "high"])
                    drawn.append(_figure(scene, measure, shown, below=below))
    return tuple(drawn)


def _sampled(scene: Scene, cell: CellResult, source: str) -> pl.DataFrame:
    """Samples of the cell's used trials: `second`, `arm`, and by its name each measure that some trial has columns for.

    Of each file only the columns that measures read are kept: of hundreds of hours all would not fit.
    """
    alike: dict[tuple[str, ...], list[tuple[ContrastTrial, pl.DataFrame]]] = {}
    for each in scene.of(cell):
        if each.trial.window is not None:
            directory = scene.record.trial_directory(each.trial.trial.id)
            raw = telemetry_files.read(directory, source, only=partial(_read, source))
            if raw.height:
                ordered = raw if raw[TIME].is_sorted() else raw.sort(TIME)
                alike.setdefault(tuple(raw.columns), []).append((each, ordered))
    stacked = [_completed(_stacked(frames), source) for frames in alike.values()]
    known = {name for frame in stacked for name in frame.columns}
    measures = [each for each in MEASURES if each.source == source and known.intersection(each.needs)]
    return pl.concat([_valued(frame, measures) for frame in stacked] or [pl.DataFrame()])


def _read(source: str, columns: Sequence[str]) -> list[str]:
    """Those of a file's columns that a measure needs."""
    if source == "disks":
        devices = whole_devices(list(columns))
        names = {f"{device}.{field}" for device in devices for field in DISK_FIELDS}
    else:
        names = _wanted(source)
    return [name for name in columns if name in names]


@cache
def _wanted(source: str) -> set[str]:
    return {name for measure in MEASURES if measure.source == source for name in measure.columns}


def _stacked(frames: Sequence[tuple[ContrastTrial, pl.DataFrame]]) -> pl.DataFrame:
    """Files of the same columns below each other, with `second`, `arm` and `elapsed_s`, null in a trial's first row."""
    heights = [frame.height for _, frame in frames]
    trial = np.repeat(np.arange(len(frames)), heights)
    starts_ns = np.array([each.trial.window.start_ns for each, _ in frames if each.trial.window is not None])[trial]
    follows = pl.lit(pl.Series(np.diff(trial, prepend=-1) == 0))
    return pl.concat([frame for _, frame in frames], how="vertical_relaxed").select(
        pl.all().exclude(TIME),
        second=(pl.col(TIME) - pl.lit(pl.Series(starts_ns))) / NANOSECONDS_PER_SECOND,
        arm=pl.lit(pl.Series([each.arm for each, _ in frames])[trial]),
        elapsed_s=pl.when(follows).then(pl.col(TIME).diff()) / NANOSECONDS_PER_SECOND,
    )


def _completed(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """With the columns that measures expect whatever the place has."""
    if source == "cpu":  # old kernels know fewer classes
        return frame.with_columns(pl.lit(0).alias(name) for name in CPU_CLASSES if name not in frame.columns)
    if source == "disks":  # the traffic of a partition or a mapped device is that of the disk below it
        devices = {field: [name for name in frame.columns if name.endswith(f".{field}")] for field in DISK_FIELDS}
        return frame.with_columns(_sum(*names).alias(field) for field, names in devices.items() if names)
    return frame


def _valued(frame: pl.DataFrame, measures: Sequence[Measure]) -> pl.DataFrame:
    """The measures' values, null where a column is missing."""
    roots = {name for measure in measures for name in measure.value.meta.root_names()}
    absent = {name for measure in measures for name in measure.columns if name not in frame.columns}
    rates = [name.removesuffix(RATE) for name in roots if name.endswith(RATE)]
    return (
        frame.lazy()
        .with_columns(pl.lit(None, pl.Int64).alias(name) for name in absent)
        .with_columns(
            (pl.col(name).cast(pl.Int64).diff() / pl.col("elapsed_s")).alias(f"{name}{RATE}") for name in rates
        )
        .select("second", "arm", **{measure.name: measure.value for measure in measures})
        .collect()
    )


def _points(frame: pl.DataFrame, measure: Measure) -> pl.DataFrame:
    """Per arm and step of time: mean, least and largest over the samples of its trials."""
    measured = frame.select("second", "arm", value=measure.name).filter(pl.col("value").is_finite())
    if measured.is_empty():
        return measured
    seconds = measured["second"].to_numpy()
    width = max(1.0, math.ceil((seconds.max() - seconds.min()) / STEPS))
    return (
        measured.group_by("arm", (pl.col("second") / width).floor().alias("step"))
        .agg(mean=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max())
        .with_columns(second=(pl.col("step") + 0.5) * width)
        .sort("arm", "second")
    )


def _figure(scene: Scene, measure: Measure, points: Rows, *, below: Rows) -> Figure:
    zero = measure.source not in ("memory", "process-server")  # levels move little beside their size
    spec = _spec(tuple(scene.colours.items()), zero=zero, banded=bool(below))
    datasets = dict(zip(spec["datasets"], (points, below), strict=False))
    return Figure(name=f"telemetry-{measure.name}", title=measure.title, note="", spec={**spec, "datasets": datasets})


@lru_cache(maxsize=8)
def _spec(colours: tuple[tuple[str, str], ...], *, zero: bool, banded: bool) -> Spec:
    """The same for every measure and cell; Altair takes longer for it than a figure's rows take."""
    drawing = Drawing()
    colour = arm_colour(dict(colours), legend=False)
    base = alt.Chart(drawing.rows([])).encode(
        x=alt.X("second:Q", title=None, axis=alt.Axis(grid=False, tickCount=5)), color=colour
    )
    y = alt.Y("mean:Q", title=None, axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=zero))
    tooltip = [
        alt.Tooltip("arm:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3~f") for name in ("mean", "low", "high")),
        alt.Tooltip("second:Q"),
    ]
    chart = alt.layer(
        *marked([{}] if banded else [], drawing, colour),
        base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.6).encode(y=y),
        base.mark_point(size=40, opacity=0).encode(y=y, tooltip=tooltip),
    )
    return drawing.finished(chart, height=HEIGHT)
