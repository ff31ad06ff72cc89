"""Parquet files of anybody's: read as far as memory should hold them; what breaks the reader is damage like any other.

A file of a hundred kilobytes can hold the same value fifty million times.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl

from fairtrial.metrics import first_reader

MOST_VALUES: Final = 1 << 29  # 4 GiB of numbers; three hundred columns every second are three weeks


def begin_first_reader() -> None:
    """From here on another process reads each file first: for commands that open records, before they read any."""
    first_reader.begin(_first)


def columns(path: Path) -> list[str]:
    """The names of a file's columns.

    Raises:
        OSError, pl.exceptions.PolarsError: as `read`.
    """
    _require(path)
    return list(pl.read_parquet_schema(path))


def read(source: Path | BinaryIO, names: list[str] | None = None) -> pl.DataFrame:
    """The rows of a file, of all its columns or of some.

    Raises:
        OSError: it cannot be read.
        pl.exceptions.PolarsError: it is damaged, has no such column, or more values than are read.
    """
    if isinstance(source, Path):
        _require(source)
    return _read(source, names)


def require_numbers(frame: pl.DataFrame, *, times: Iterable[str]) -> None:
    """Refuses columns of a stranger's file that cannot be computed with.

    Raises:
        pl.exceptions.PolarsError: one holds no numbers, or a time is missing or is not a whole number.
    """
    times = [name for name in times if not frame[name].dtype.is_integer() or frame[name].null_count()]
    if others := times or [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == pl.Null)]:
        raise pl.exceptions.SchemaError(f"column {others[0]} does not hold {'whole ' if times else ''}numbers only")


def _require(path: Path) -> None:
    if said := first_reader.fault(path):
        raise pl.exceptions.ComputeError(said)


def _read(source: Path | BinaryIO, names: list[str] | None) -> pl.DataFrame:
    try:
        most = MOST_VALUES // max(1, len(pl.read_parquet_schema(source) if names is None else names))
        frame = pl.read_parquet(source, columns=names, glob=False, n_rows=most + 1)
    except pl.exceptions.PanicException as error:
        raise pl.exceptions.ComputeError(str(error)) from error
    if frame.height > most:
        raise pl.exceptions.ComputeError(f"it has more than {MOST_VALUES:,} values")
    return frame


def _first(path: Path) -> None:
    """As another process reads a file first: all of it, whatever is wanted of it then."""
    try:
        _read(path, None)
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
