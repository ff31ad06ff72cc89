"""A trial's timeline as rates: what happened in each interval, per second."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from fairtrial.errors import RecordError
from fairtrial.metrics import parquet
from fairtrial.record.models import Window

FILE: Final = "timeline.parquet"
OUTCOMES: Final = ("committed", "rolled_back", "failed", "retried")
STREAM: Final = "timeline.arrows"  # as the engine writes it; it stays only where no interval can be read from it
NANOSECONDS_PER_SECOND: Final = 1e9
COUNTED: Final = cs.ends_with(*(f"_{outcome}" for outcome in OUTCOMES))
DONE: Final = pl.sum_horizontal(pl.lit(0.0), cs.ends_with("_committed", "_rolled_back"))


def read(directory: Path) -> pl.DataFrame:
    """The timeline as written: `time_ns`, `measured` and counts; empty without a file.

    Raises:
        RecordError: the file is damaged.
    """
    return _collected(directory, pl.all())


def ended(directory: Path) -> pl.DataFrame:
    """Intervals in order: `time_ns`, `measured`, and `done`, the transactions of all types that ended in each.

    Raises:
        RecordError: the file is damaged.
    """
    return _sorted(_collected(directory, "time_ns", "measured", DONE.alias("done")))


def rates(directory: Path, *, window: Window, measured_only: bool = True) -> pl.DataFrame:
    """Rates per interval.

    Returns:
        One row per interval: `second` (start of the interval, seconds since the window began), `width_s`, `measured`,
        `transactions_per_s` (committed and rolled back by rule, all types) and `<type>_<outcome>_per_s`.
    """
    raw = _sorted(read(directory))
    width_s = pl.lit(pl.Series(widths_s(raw["time_ns"].to_numpy(), window), nan_to_null=True))
    frame = raw.select(
        second=(pl.col("time_ns") - window.start_ns) / NANOSECONDS_PER_SECOND,
        width_s=width_s,
        measured="measured",
        transactions_per_s=DONE / width_s,
    ).hstack(raw.select((COUNTED / width_s).name.suffix("_per_s")))
    return frame.filter("measured") if measured_only else frame


def widths_s(starts_ns: npt.NDArray[np.int64], window: Window) -> npt.NDArray[np.float64]:
    """An interval ends where the next begins; the last one ends with the window, which may cut it short."""
    steps = np.diff(starts_ns).astype(np.float64)
    to_end = window.end_ns - starts_ns[-1:]
    usual = np.median(steps) if len(steps) else np.nan
    return np.concatenate([steps, np.where(to_end > 0, to_end, usual)]) / NANOSECONDS_PER_SECOND


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    return frame if frame["time_ns"].is_sorted() else frame.sort("time_ns")


def _collected(directory: Path, *columns: str | pl.Expr) -> pl.DataFrame:
    path = directory / FILE
    if not path.exists():
        return pl.DataFrame(schema={"time_ns": pl.Int64, "measured": pl.Boolean}).select(*columns)
    try:
        frame = parquet.read(path)
        parquet.require_numbers(frame.drop("measured"), times=["time_ns"])
        return frame.with_columns(pl.col("measured").cast(pl.Boolean)).select(*columns)
    except (pl.exceptions.PolarsError, OSError) as error:
        said = str(error).splitlines()[0]
        raise RecordError(f"{path} cannot be read: {said}", hint="restore the trial from a copy") from error
