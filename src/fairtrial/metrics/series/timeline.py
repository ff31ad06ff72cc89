"""A trial's timeline as rates: what happened in each interval, per second."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from fairtrial.errors import RecordError
from fairtrial.record.models import Window

FILE: Final = "timeline.parquet"
OUTCOMES: Final = ("committed", "rolled_back", "failed", "retried")
STREAM: Final = "timeline.arrows"  # as the engine writes it; it stays only where no interval can be read from it
NANOSECONDS_PER_SECOND: Final = 1e9


def read(directory: Path) -> pl.DataFrame:
    """The timeline as written: `time_ns`, `measured` and counts; empty without a file.

    Raises:
        RecordError: the file is damaged.
    """
    path = directory / FILE
    if not path.exists():
        return pl.DataFrame(schema={"time_ns": pl.Int64, "measured": pl.Boolean})
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint="restore the trial from a copy") from error


def rates(directory: Path, *, window: Window, measured_only: bool = True) -> pl.DataFrame:
    """Rates per interval.

    Returns:
        One row per interval: `second` (start of the interval, seconds since the window began), `width_s`, `measured`,
        `transactions_per_s` (committed and rolled back by rule, all types) and `<type>_<outcome>_per_s`.
    """
    raw = read(directory).sort("time_ns")
    counted = [name for name in raw.columns if name.endswith(tuple(f"_{outcome}" for outcome in OUTCOMES))]
    done = [name for name in counted if name.endswith(("_committed", "_rolled_back"))]
    frame = raw.with_columns(
        width_s=_widths(window) / NANOSECONDS_PER_SECOND,
        second=(pl.col("time_ns") - window.start_ns) / NANOSECONDS_PER_SECOND,
    ).select(
        "second",
        "width_s",
        "measured",
        (pl.sum_horizontal(pl.lit(0.0), *done) / pl.col("width_s")).alias("transactions_per_s"),
        *((pl.col(name) / pl.col("width_s")).alias(f"{name}_per_s") for name in counted),
    )
    return frame.filter("measured") if measured_only else frame


def _widths(window: Window) -> pl.Expr:
    """An interval ends where the next begins; the last one ends with the window, which may cut it short."""
    start = pl.col("time_ns")
    to_next = start.shift(-1) - start
    to_end = pl.lit(window.end_ns) - start
    last = pl.when(to_end > 0).then(to_end).otherwise(to_next.median())
    return pl.coalesce(to_next, last).cast(pl.Float64)
