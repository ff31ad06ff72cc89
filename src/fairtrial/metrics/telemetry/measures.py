"""What of a trial's telemetry is worth a picture: one series per measure, from the samplers' raw counters.

The report draws them for finished trials, the live page while one runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import polars as pl

from fairtrial.metrics.telemetry.definitions import CPU_CLASSES, SECTOR_BYTES, traffic

RATE: Final = "_per_s"
DISK_FIELDS: Final = ("sectors_read", "sectors_written")
MEBI: Final = 2.0**20
GIBI: Final = 2.0**30
PERCENT_PER_MICROSECOND_PER_S: Final = 1e-4


@dataclass(frozen=True)
class Measure:
    """One small figure: `scale` times the sum of `part` over the sum of `whole`, columns of a source or their rates.

    `needs`: columns without which there is nothing to show.
    """

    name: str
    title: str
    source: str
    needs: tuple[str, ...]
    part: tuple[str, ...]
    whole: tuple[str, ...] = ()
    scale: float = 1.0

    @property
    def columns(self) -> list[str]:
        """Those of the source that `value` needs, as they are or as rates."""
        return [name.removesuffix(RATE) for name in (*self.part, *self.whole)]

    @property
    def value(self) -> pl.Expr:
        """As an expression over a frame; null where a column is, as every rate is in a trial's first row."""
        value = self.scale * _sum(*self.part)
        return value / _sum(*self.whole) if self.whole else value

    def value_of(self, row: Mapping[str, float]) -> float | None:
        """Of one row; None where it lacks a column, or the whole is nothing."""
        try:
            part, whole = (sum(row[name] for name in names) for names in (self.part, self.whole or self.part))
        except KeyError:
            return None
        if not self.whole:
            return self.scale * part
        return self.scale * part / whole if whole else None


def _sum(*columns: str) -> pl.Expr:
    """The columns' sum; null where one is."""
    return pl.sum_horizontal(*columns, ignore_nulls=False)


def _rates(*columns: str) -> tuple[str, ...]:
    return tuple(f"{name}{RATE}" for name in columns)


def _cpu(title: str, *classes: str) -> Measure:
    return Measure(
        name=f"cpu-{classes[0]}",
        title=f"CPU, {title}, %",
        source="cpu",
        needs=classes,
        part=_rates(*classes),
        whole=_rates(*CPU_CLASSES),
        scale=100,
    )


def _stalled(resource: str, *, shown: str) -> Measure:
    column = f"{resource}.some.total_us"
    return Measure(
        name=f"stall-{resource}",
        title=f"stalled on {shown} (PSI), % of time",
        source="pressure",
        needs=(column,),
        part=_rates(column),
        scale=PERCENT_PER_MICROSECOND_PER_S,
    )


def _level(title: str, *, source: str, column: str) -> Measure:
    name = column.replace("_", "-").lower()
    return Measure(name=name, title=f"{title}, GiB", source=source, needs=(column,), part=(column,), scale=1 / GIBI)


def _disks(title: str, how: str) -> Measure:
    column = f"sectors_{how}"
    return Measure(
        name=f"disk-{how}",
        title=f"{title}, MiB/s",
        source="disks",
        needs=(column,),
        part=_rates(column),
        scale=SECTOR_BYTES / MEBI,
    )


def _ratio(title: str, part: str, whole: str) -> Measure:
    """A share of two columns of the server, %."""
    column = part.removesuffix(RATE)
    return Measure(
        name=column.replace("_", "-"),
        title=f"{title}, %",
        source="server",
        needs=(column,),
        part=(part,),
        whole=(whole,),
        scale=100,
    )


def _server(title: str, column: str, *, per: float = 1.0) -> Measure:
    """A column of the server as it is, or what its counter grew by per second in units of `per`."""
    name = column.removesuffix(RATE)
    return Measure(
        name=name.replace("_", "-"), title=title, source="server", needs=(name,), part=(column,), scale=1 / per
    )


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


def shown_columns() -> list[str]:
    """Every column that a measure needs, as the sampler names it or, of disks, as it ends."""
    wanted = {column for measure in MEASURES for column in measure.columns}
    return sorted(wanted | set(CPU_CLASSES) | set(DISK_FIELDS))


def values(row: Mapping[str, float]) -> dict[str, float]:
    """The measures by name of a row that has levels by their columns and rates as `<column>_per_s`."""
    found = ((measure.name, measure.value_of(row)) for measure in MEASURES)
    return {name: value for name, value in found if value is not None}


def row_of(source: str, before: Mapping[str, int], now: Mapping[str, int], *, elapsed_s: float) -> dict[str, float]:
    """One row for `values`: levels and rates of a source, as two samples of it say."""
    totals = [_totalled(source, values) for values in (before, now)]
    rates = {f"{name}{RATE}": (value - totals[0].get(name, value)) / elapsed_s for name, value in totals[1].items()}
    return {**totals[1], **rates}


def _totalled(source: str, values: Mapping[str, int]) -> dict[str, float]:
    """As `completed` has a frame."""
    absent, sums = _missing(source, list(values))
    summed = {
        field: sum(max(sum(values[name] for name in names) for names in disk) for disk in disks)
        for field, disks in sums.items()
    }
    return {name: float(value) for name, value in {**dict.fromkeys(absent, 0), **values, **summed}.items()}


def _missing(source: str, columns: Sequence[str]) -> tuple[list[str], dict[str, list[list[list[str]]]]]:
    """Columns that measures expect beside those that there are: some are 0, others sums of these (see `traffic`)."""
    if source == "cpu":  # old kernels know fewer classes
        return [name for name in CPU_CLASSES if name not in columns], {}
    if source == "disks":  # the traffic of a partition or a mapped device is that of the disk below it
        return [], {field: disks for field in DISK_FIELDS if (disks := traffic(list(columns), field))}
    return [], {}


def columns_of(source: str, columns: Sequence[str]) -> list[str]:
    """Those of a file's columns that a measure needs."""
    _, sums = _missing(source, columns)
    names = _wanted(source).union(name for disks in sums.values() for disk in disks for names in disk for name in names)
    return [name for name in columns if name in names]


@cache
def _wanted(source: str) -> set[str]:
    return {name for measure in MEASURES if measure.source == source for name in measure.columns}


def completed(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """With the columns that measures expect whatever the place has."""
    absent, sums = _missing(source, frame.columns)
    return frame.with_columns(pl.lit(0).alias(name) for name in absent).with_columns(
        pl.sum_horizontal(
            *(pl.max_horizontal(*(_sum(*names) for names in disk)) for disk in disks), ignore_nulls=False
        ).alias(field)
        for field, disks in sums.items()
    )


def valued(frame: pl.DataFrame, measures: Sequence[Measure]) -> pl.DataFrame:
    """The measures' values, null where a column is missing."""
    roots = {name for measure in measures for name in (*measure.part, *measure.whole)}
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
