"""Telemetry: the samplers' files, and a trial's scalars from them.

Owns `telemetry-<source>.parquet` on the reading side. The sampler (`crates/sample`) writes raw counters; everything
derived from them is derived here, so that a record can be computed again. It must not know how trials are compared.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl
from pydantic_core import from_json

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.metrics import covariates, parquet
from fairtrial.metrics.telemetry import seen_shares, series, server, shutdown
from fairtrial.metrics.telemetry import stream as telemetry_stream
from fairtrial.metrics.telemetry.definitions import METRICS
from fairtrial.metrics.telemetry.window import END, ERROR_SHARE, TIME, WindowSamples, observe
from fairtrial.record.models import PlannedMetrics, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.service_counters import ERROR_SUFFIX

PREFIX: Final = "telemetry-"
SUMMARY: Final = "telemetry-summary.json"
VERSION: Final = "version"  # of how figures are computed: the sums of records before have none
TEXTUAL: Final = ("lock_waits", series.EXPORTER, series.COMMAND)  # sources with columns of text
SOURCES: Final = 8  # of a trial, whose files are kept in memory
DEFINITIONS: Final[Mapping[str, MetricDefinition]] = {
    **{metric.definition.name: metric.definition for metric in METRICS},
    **seen_shares.DEFINITIONS,
    **series.DEFINITIONS,
}


def to_parquet(arrows: Path, parquet: Path, *, shift_ns: int = 0) -> int:
    """Turns an Arrow IPC stream, possibly cut, into Parquet; `shift_ns` is added to every `time_ns` and `end_ns`.

    Returns:
        Rows written. A last batch that was cut is dropped; an empty or unreadable stream gives 0 and no file.
    """
    frame = telemetry_stream.read(arrows)
    if frame is None or not frame.height:
        return 0
    if shift_ns:
        frame = frame.with_columns(pl.col(name) + shift_ns for name in (TIME, END) if name in frame.columns)
    content = io.BytesIO()
    frame.write_parquet(content)
    parquet.write_bytes(content.getvalue())  # Python writes: its OSError says "disk full", polars' own error does not
    return frame.height


Choice = Callable[[list[str]], Sequence[str]]  # of those counters that a file has


def read(directory: Path, source: str, *, only: Choice | None = None) -> pl.DataFrame:
    """One source's samples: `time_ns` and raw counters (null where the kernel did not say one); empty without a file.

    When each reading ended is left out: `readings` has it.

    Args:
        directory: one trial's.
        source: `cpu`, `memory`, `vmstat`, `disks`, `pressure`, `server`, `lock_waits`, or `process-<name>`.
        only: chooses counters, for files wider than what is wanted of them.

    Raises:
        RecordError: the file is damaged.
    """
    return _read(directory, source, lambda columns: [TIME, *_counters(columns, only)])


def observed(
    directory: Path, source: str, window: Window, *, only: Choice | None = None, ticks_per_s: float | None = None
) -> WindowSamples | None:
    """One source through the window, with how long its readings took; None where its samples do not cover it.

    Raises:
        RecordError: the file is damaged.
    """
    path = directory / f"{PREFIX}{source}.parquet"
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    frame = _whole(path, seen.st_ino, seen.st_mtime_ns, seen.st_size)
    columns = frame.columns
    wanted = [*(name for name in columns if name in (TIME, END)), *_counters(columns, only)]
    is_server, is_of_before = source == server.SOURCE, _is_of_before(directory)
    late = server.told_late(frame[wanted]) if is_server and not is_of_before else ()
    samples = observe(frame[wanted], window, ticks_per_s=ticks_per_s, may_restart=is_server, late=late)
    return None if samples is None else replace(samples, is_of_before=is_of_before)


def _is_of_before(directory: Path) -> bool:
    """Whether a trial's sums have no version, so that its figures are recomputed as they were then."""
    try:
        document = from_json(foreign.read(directory / SUMMARY))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and VERSION not in document


@functools.lru_cache(maxsize=SOURCES)
def _whole(path: Path, *_identity: int) -> pl.DataFrame:
    """A file as it is at the moment: a trial's scalars and its sums are made of the same ones, one after the other."""
    return _parquet(path)


def _counters(columns: list[str], only: Choice | None) -> Sequence[str]:
    return (only or list)([name for name in columns if name not in (TIME, END)])


def readings(directory: Path, source: str) -> pl.DataFrame:
    """When one source's readings began (`time_ns`) and ended (`end_ns`); empty where its file does not say.

    Raises:
        RecordError: the file is damaged.
    """
    frame = _read(directory, source, lambda columns: [name for name in (TIME, END) if name in columns])
    return frame if END in frame.columns else pl.DataFrame(schema={TIME: pl.Int64, END: pl.Int64})


def _read(directory: Path, source: str, choice: Choice) -> pl.DataFrame:
    path = directory / f"{PREFIX}{source}.parquet"
    return _parquet(path, choice) if path.exists() else pl.DataFrame(schema={TIME: pl.Int64})


def _parquet(path: Path, choice: Choice | None = None) -> pl.DataFrame:
    try:
        columns = None if choice is None else list(choice(parquet.columns(path)))
        frame = parquet.read(path, columns)
        times = [TIME, *(name for name in frame.columns if name == END)]
        has_text = path.stem.removeprefix(PREFIX).startswith(TEXTUAL)
        parquet.require_numbers(frame[times] if has_text else frame, times=times)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint="restore the trial from a copy") from error
    return frame


def scalars(
    directory: Path, window: Window, *, ticks_per_s: float | None, metrics: PlannedMetrics
) -> series.CounterScalars:
    """All that a trial's telemetry gives, the study's own `metrics`, the server's shutdown and covariates included.

    Raises:
        RecordError: a file is damaged.
    """
    own = series.compute(directory, window=window, metrics=metrics)
    others = {
        **compute(directory, window=window, ticks_per_s=ticks_per_s),
        **shutdown.compute(directory),
        **covariates.compute(directory),
    }
    return series.CounterScalars({**others, **own.scalars}, own.lacking)


def compute(directory: Path, *, window: Window, ticks_per_s: float | None) -> dict[str, float]:
    """Every telemetry metric that the trial's files allow, by name, and `NAME_error` where it may be off.

    Args:
        directory: one trial's.
        window: the measured window.
        ticks_per_s: clock ticks of the place; None where a record does not say.

    Raises:
        RecordError: a file is damaged.
    """
    seen = {
        source: observed(directory, source, window, ticks_per_s=ticks_per_s)
        for source in {metric.source for metric in METRICS}
    }
    values: dict[str, float] = {}
    errors: dict[str, float] = {}
    for metric in METRICS:
        samples, name = seen[metric.source], metric.definition.name
        if samples is not None and (value := metric.value(samples)) is not None:
            values[name] = value
            if (error := samples.error(value, metric.value)) > ERROR_SHARE * abs(value):
                errors[f"{name}{ERROR_SUFFIX}"] = error
    return values | seen_shares.compute(values) | errors
