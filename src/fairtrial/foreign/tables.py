"""CSV (comma, semicolon, tab or bar) and Parquet. Cells stay as they are: what is a number is decided by its use."""

from __future__ import annotations

import csv
import io
from typing import Final

import polars as pl

from fairtrial.errors import InputError, Problem
from fairtrial.foreign.rows import Part, is_record
from fairtrial.foreign.sources import Source

PARQUET: Final = b"PAR1"
SEPARATORS: Final = ",;\t|"
MARK: Final = b"\xef\xbb\xbf"  # what spreadsheets put before UTF-8


def is_parquet(content: bytes) -> bool:
    """By its first bytes, whatever the file is called."""
    return content.startswith(PARQUET)


def parquet(source: Source) -> Part:
    """A Parquet file's rows.

    Raises:
        InputError: it is damaged or empty.
    """
    try:
        frame = pl.read_parquet(io.BytesIO(source.content))
    except (pl.exceptions.PolarsError, OSError) as error:
        problem = Problem(f"not a whole Parquet file: {error}", source.name)
        raise InputError([problem], hint="write it again") from error
    return _not_empty(Part(name=source.name, frame=frame))


def csv_table(source: Source) -> Part:
    """A CSV file's rows: one header, a row per trial; lines that begin with # are comments.

    Raises:
        InputError: it is empty, no UTF-8, or a row has another number of cells than the header.
    """
    try:
        text = source.content.removeprefix(MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = source.content[: error.start].count(b"\n") + 1
        problem = Problem("neither UTF-8 text nor Parquet", source.name, line=line, column=1)
        raise InputError([problem], hint="save the table as CSV in UTF-8") from error
    header = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    separator = max(SEPARATORS, key=header.count)
    try:
        _check_shape(source.name, text, separator)
        frame = pl.read_csv(
            io.BytesIO(text.encode()),
            separator=separator,
            infer_schema=False,  # a column of numbers with one text in it must show the text
            comment_prefix="#",
        )
    except (csv.Error, pl.exceptions.PolarsError) as error:
        raise InputError([Problem(f"not a table: {error}", source.name)], hint="save the table as CSV again") from error
    names = {name: name.strip() for name in frame.columns}
    frame = frame.rename(names).select(pl.all().str.strip_chars())
    return _not_empty(Part(name=source.name, frame=frame, text=text, separator=separator))


def _check_shape(name: str, text: str, separator: str) -> None:
    """Every row as wide as the header: a cell too few or too many moves values under other names."""
    width, header = 0, []
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    for record in reader:
        if not is_record(record):
            continue
        if not width:
            width, header = len(record), [cell.strip() for cell in record]
            twice = sorted({cell for cell in header if header.count(cell) > 1})
            if twice:
                problem = Problem(f"two columns are called `{twice[0]}`", name, line=reader.line_num, column=1)
                raise InputError([problem], hint="give every column a name of its own")
        elif len(record) != width:
            message = f"{len(record)} cells, but the header has {width}"
            problem = Problem(message, name, line=reader.line_num, column=1)
            raise InputError([problem], hint=f"cells are separated by {separator!r}; quote those that contain one")


def _not_empty(part: Part) -> Part:
    if part.frame.height == 0:
        message = "a header without rows" if part.frame.columns else "empty"
        raise InputError([Problem(message, part.name)], hint="a table has a header and a row per trial")
    return part
