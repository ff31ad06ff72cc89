"""CSV (comma, semicolon, tab or bar) and Parquet. Cells stay as they are: what is a number is decided by its use."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import polars as pl

from fairtrial.errors import InputError, Problem
from fairtrial.imports.reader import ImportSource, Reader
from fairtrial.imports.rows import FileTable, trials
from fairtrial.metrics.parquet import MOST_VALUES
from fairtrial.metrics.parquet import read as read_parquet

PARQUET: Final = b"PAR1"
SEPARATORS: Final = ",;\t|"
MOST_COLUMNS: Final = 4096
TRANSPOSED: Final = "give the table a row per trial, and a column per metric"


def is_parquet(content: bytes) -> bool:
    """By its first bytes, whatever the file is called."""
    return content.startswith(PARQUET)


def part(source: ImportSource) -> FileTable:
    """A table's rows, whichever of the two formats it has."""
    return parquet(source) if is_parquet(source.content) else csv_table(source)


def parquet(source: ImportSource) -> FileTable:
    """A Parquet file's rows.

    Raises:
        InputError: it is damaged or empty.
    """
    try:
        _try(source.content)
        frame = read_parquet(io.BytesIO(source.content))
    except (pl.exceptions.PolarsError, OSError) as error:
        problem = Problem(f"not a complete Parquet file: {error}", source.name)
        raise InputError([problem], hint="write the file again") from error
    return _not_empty(FileTable(name=source.name, frame=frame))


def _try(content: bytes) -> None:
    """Has another process read the file first: a damaged one can end its reader.

    Raises:
        OSError: what is wrong with it.
    """
    program = [sys.executable, "-P", str(Path(__file__).with_name("parquet_reader.py")), str(MOST_VALUES)]
    done = subprocess.run(program, input=content, capture_output=True, check=False)
    said = done.stdout.decode(errors="replace").strip()
    if said or done.returncode:
        raise OSError(said or f"it ends the program that reads it ({done.returncode})")


def csv_table(source: ImportSource) -> FileTable:
    """A CSV file's rows: one header, a row per trial; lines that begin with # are comments.

    Raises:
        InputError: it is empty, no text, or a row has another number of cells than the header.
    """
    text = source.text
    header = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    separator = max(SEPARATORS, key=header.count)
    names, records = _records(source.name, text, separator)
    columns = zip(*records, strict=True) if records else ([] for _ in names)
    frame = pl.DataFrame(
        {
            name: pl.Series(values, dtype=pl.String).str.strip_chars()
            for name, values in zip(names, columns, strict=True)
        }
    )
    return _not_empty(FileTable(name=source.name, frame=frame, text=text, separator=separator))


def _records(name: str, text: str, separator: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows, each as wide as it: a cell too few or too many moves values under other names.

    Cells stay text: a column of numbers with one text in it must show the text.
    """
    header: list[str] = []
    records: list[list[str]] = []
    lines = io.StringIO(text).readlines()
    reader = csv.reader(lines, delimiter=separator)
    try:
        for record in trials(reader, lines):
            if not header:
                header = [cell.strip() for cell in record]
                if len(header) > MOST_COLUMNS:
                    message = f"expected at most {MOST_COLUMNS} columns, found {len(header)}"
                    raise InputError([Problem(message, name, line=reader.line_num, column=1)], hint=TRANSPOSED)
                twice = sorted(cell for cell, times in Counter(header).items() if times > 1)
                if twice:
                    problem = Problem(f"two columns have the name `{twice[0]}`", name, line=reader.line_num, column=1)
                    raise InputError([problem], hint="give every column a unique name")
                continue
            if len(record) != len(header):
                message = f"expected {len(header)} cells, as in the header, found {len(record)}"
                problem = Problem(message, name, line=reader.line_num, column=1)
                raise InputError(
                    [problem], hint=f"cells are separated by {separator!r}; quote a cell that contains the separator"
                )
            records.append(record)
    except csv.Error as error:
        problem = Problem(f"not a table: {error}", name, line=reader.line_num, column=1)
        raise InputError([problem], hint="save the table as CSV again") from error
    return header, records


def _not_empty(part: FileTable) -> FileTable:
    if part.frame.height == 0:
        message = "the table has a header but no rows" if part.frame.columns else "the table is empty"
        raise InputError([Problem(message, part.name)], hint="give a table with a header and one row per trial")
    return part


READER: Final = Reader(
    name="table", expected="a CSV or Parquet file with one row per trial", recognises=lambda _text: True, read=part
)
