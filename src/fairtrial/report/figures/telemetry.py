"""Small figures of the machine and the server during trials: each arm's mean over its trials, and their range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import altair as alt
import polars as pl

from fairtrial.analyse.models import CellResult
from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.metrics.frames import telemetry_rates
from fairtrial.metrics.telemetry.definitions import CPU_CLASSES, SECTOR_BYTES, whole_devices
from fairtrial.report.figures.dips import dips, marked
from fairtrial.report.figures.thinning import rows
from fairtrial.report.figures.verdicts import Drawing, Figure, arm_colour
from fairtrial.report.scene import Scene

HEIGHT: Final = 120
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
    Measure(
        name="disk-read",
        title="read from disks, MiB/s",
        source="disks",
        needs=("sectors_read",),
        value=pl.col("sectors_read_per_s") * SECTOR_BYTES / MEBI,
    ),
    Measure(
        name="disk-written",
        title="written to disks, MiB/s",
        source="disks",
        needs=("sectors_written",),
        value=pl.col("sectors_written_per_s") * SECTOR_BYTES / MEBI,
    ),
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
    sampled = {source: _sampled(scene, cell, source) for source in dict.fromkeys(each.source for each in MEASURES)}
    drawn = []
    for measure in MEASURES:
        frame = sampled[measure.source]
        if not any(name in frame.columns for name in measure.needs):
            continue
        points = _points(frame, measure)
        if not points.is_empty() and points["high"].max() != 0:
            drawn.append(_figure(scene, measure, rows(points, ["second", "arm", "mean", "low", "high"]), below=below))
    return tuple(drawn)


def _sampled(scene: Scene, cell: CellResult, source: str) -> pl.DataFrame:
    """Samples of the cell's used trials: `second`, `arm`, and what measures of this source read; maybe no columns.

    One trial is read after the other, and of its file those columns only: of hundreds of hours all would not fit.
    """
    found = []
    for each in scene.of(cell):
        directory = scene.record.trial_directory(each.trial.trial.id)
        if each.trial.window is not None:
            raw = telemetry_files.read(directory, source, only=partial(_read, source))
            rates = telemetry_rates(raw, source=source, window=each.trial.window)
            found.append(_completed(rates, source).with_columns(pl.lit(each.arm).alias("arm")))
    return pl.concat([frame for frame in found if frame.height] or [pl.DataFrame()], how="diagonal_relaxed")


def _read(source: str, columns: Sequence[str]) -> list[str]:
    """Those of a file's columns that a measure needs."""
    if source == "disks":
        devices = whole_devices(list(columns))
        names = {f"{device}.{field}" for device in devices for field in DISK_FIELDS}
    else:
        measures = [measure.value.meta.root_names() for measure in MEASURES if measure.source == source]
        names = {name.removesuffix("_per_s") for roots in measures for name in roots}
    return [name for name in columns if name in names]


def _completed(rates: pl.DataFrame, source: str) -> pl.DataFrame:
    """With the columns that measures expect whatever the place has."""
    if source == "disks":
        return _all_disks(rates)
    if source == "cpu":  # old kernels know fewer classes
        absent = [pl.lit(0.0).alias(f"{name}_per_s") for name in CPU_CLASSES if name not in rates.columns]
        return rates.with_columns(absent)
    return rates


def _all_disks(rates: pl.DataFrame) -> pl.DataFrame:
    """Sectors over all whole devices: a partition's or a mapped device's traffic is that of the disk below it."""
    summed = []
    for field in DISK_FIELDS:
        present = [name for name in rates.columns if name.endswith(f".{field}")]
        if present:
            summed += [
                _sum(*present).alias(field),
                _sum(*(f"{name}_per_s" for name in present)).alias(f"{field}_per_s"),
            ]
    return rates.select("second", *summed)


def _points(frame: pl.DataFrame, measure: Measure) -> pl.DataFrame:
    """Per arm and step of time: mean, least and largest over the samples of its trials."""
    measured = frame.select("second", "arm", value=measure.value).drop_nulls().filter(pl.col("value").is_finite())
    if measured.is_empty():
        return measured.clear()
    seconds = measured["second"].to_numpy()
    width = max(1.0, math.ceil((seconds.max() - seconds.min()) / STEPS))
    return (
        measured.group_by("arm", (pl.col("second") / width).floor().alias("step"))
        .agg(mean=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max())
        .with_columns(second=(pl.col("step") + 0.5) * width)
        .sort("arm", "second")
    )


def _figure(scene: Scene, measure: Measure, points: list[dict[str, Any]], *, below: list[dict[str, Any]]) -> Figure:
    drawing = Drawing()
    colour = arm_colour(scene, legend=False)
    x = alt.X("second:Q", title=None, axis=alt.Axis(grid=False, tickCount=5))
    zero = measure.source not in ("memory", "process-server")  # levels move little beside their size
    y = alt.Y("mean:Q", title=None, axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=zero))
    base = alt.Chart(drawing.rows(points)).encode(x=x, color=colour)
    tooltip = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("mean:Q", format=".3~f"),
        alt.Tooltip("low:Q", format=".3~f"),
        alt.Tooltip("high:Q", format=".3~f"),
        alt.Tooltip("second:Q"),
    ]
    chart = alt.layer(
        *marked(scene, below, drawing, legend=False),
        base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.6).encode(y=y),
        base.mark_point(size=40, opacity=0).encode(y=y, tooltip=tooltip),
    )
    return Figure(
        name=f"telemetry-{measure.name}", title=measure.title, note="", spec=drawing.finished(chart, height=HEIGHT)
    )
