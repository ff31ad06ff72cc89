"""Parquet files of anybody's: read as far as memory should hold them; what breaks the reader is damage like any other.

A file of a hundred kilobytes can hold the same value fifty million times.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

import polars as pl

MOST_VALUES: Final = 1 << 29  # 4 GiB of numbers; three hundred columns every second are three weeks


def read(source: Path | BinaryIO, columns: list[str] | None = None) -> pl.DataFrame:
    """The rows of a file, of all its columns or of some.

    Raises:
        OSError: it cannot be read.
        pl.exceptions.PolarsError: it is damaged, has no such column, or more values than are read.
    """
    try:
        names = list(pl.read_parquet_schema(source)) if columns is None else columns
        most = MOST_VALUES // max(1, len(names))
        frame = pl.read_parquet(source, columns=columns, glob=False, n_rows=most + 1)
    except pl.exceptions.PanicException as error:
        raise pl.exceptions.ComputeError(str(error)) from error
    if frame.height > most:
        raise pl.exceptions.ComputeError(f"it has more than {MOST_VALUES:,} values")
    return frame
