"""Rows that were read, and where each of them stands: a message about a cell names its file, line and column."""

from __future__ import annotations

import csv
import io
import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from fairtrial.analyse.models import Doubt
from fairtrial.errors import InputError, Problem
from fairtrial.study.catalogue import MetricDefinition

if TYPE_CHECKING:
    import _csv

LABEL, FILE, NUMBER = "label", "file", "number"  # columns that every output of a tool gets


@dataclass(frozen=True)
class FileTable:
    """What one file gave: a frame, and its text with its separator if it has lines that people count.

    Attributes:
        definitions: of columns that the file's format defines as metrics.
        undirected: metrics of which the format does not say which direction is good; their definition's is none.
        doubts: about what the file left out.
    """

    name: str
    frame: pl.DataFrame
    text: str = ""
    separator: str = ""
    definitions: Mapping[str, MetricDefinition] = field(default_factory=dict)
    undirected: frozenset[str] = frozenset()
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class Rows:
    """All files' rows, one below the other.

    Attributes:
        frame: a column per name; cells of text files are text still.
        parts: where they came from, in order.
        definitions: of metrics that the files' format defines; empty for tables.
        undirected: metrics that cannot be judged unless the user says which direction is good.
        value, arm: the columns to take if the user names none; empty: they must be named.
        conditions: columns to take as conditions if the user names none, those with several levels.
        apart: columns to take as conditions as well, those with several levels in an arm.
        doubts: about the files, whatever is asked of them.
        shared: the doubt if rows of one file are trials of one arm.
    """

    frame: pl.DataFrame
    parts: Sequence[FileTable]
    definitions: Mapping[str, MetricDefinition] = field(default_factory=dict)
    undirected: frozenset[str] = frozenset()
    value: str = ""
    arm: str = ""
    conditions: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    shared: Doubt | None = None

    def with_values(self, values: Sequence[str]) -> Rows:
        """Without the benchmarks that no file has any of these values of: there they are not missing."""
        known = [pl.col(name).is_not_null() for name in values]
        conditions = [name for name in (*self.conditions, *self.apart) if name in self.frame.columns]
        if not conditions:
            return self
        there = self.frame.select(pl.any_horizontal(known).any().over(conditions)).to_series()
        ends = [0, *itertools.accumulate(part.frame.height for part in self.parts)]
        parts = [
            replace(part, frame=part.frame.filter(there[start:end]))
            for part, (start, end) in zip(self.parts, itertools.pairwise(ends), strict=True)
        ]
        return replace(self, frame=self.frame.filter(there), parts=parts)

    @property
    def name(self) -> str:
        """The files in a few words."""
        first = self.parts[0].name
        return first if len(self.parts) == 1 else f"{first} and {len(self.parts) - 1} more"

    def text(self, column: str) -> pl.Series:
        """A column as text, empty where there is nothing.

        Raises:
            InputError: it holds what has no text, as a column of Parquet may: durations, lists, other bytes.
        """
        cells = self.frame[column]
        try:
            return cells.cast(pl.String).fill_null("")
        except pl.exceptions.PolarsError as error:
            problem = Problem(f"expected numbers or text, found {cells.dtype}", self.name, field=column)
            hint = "write the column as numbers, such as seconds for a duration, or as text in UTF-8"
            raise InputError([problem], hint=hint) from error

    def problem(self, row: int, column: str, message: str, *, suggestion: str = "") -> Problem:
        """A mistake in one cell, with the line on which its row begins to be wrong."""
        ends = [0]
        for part in self.parts:
            ends.append(ends[-1] + part.frame.height)
        index = bisect_right(ends, row) - 1
        part = self.parts[index]
        line, at = position(part, row - ends[index], column)
        return Problem(message, part.name, line=line, column=at, field=column, suggestion=suggestion)


def position(part: FileTable, row: int, column: str) -> tuple[int, int]:
    """Line and column, from 1, of a cell of a text table; 0, 0 where there are no lines."""
    if not part.text:
        return 0, 0
    lines = io.StringIO(part.text).readlines()
    reader = csv.reader(lines, delimiter=part.separator)
    records = trials(reader, lines)
    header = [name.strip() for name in next(records)]
    for _ in range(row):
        next(records)
    record = next(records)
    index = header.index(column) if column in header else 0
    if index >= len(record):
        return reader.line_num, 0
    line = part.text.splitlines()[reader.line_num - 1]
    quoted = '"' in line
    before = len(part.separator.join(record[:index])) + (1 if index else 0)
    return reader.line_num, (max(line.find(record[index]), 0) if quoted else before) + 1


def trials(reader: _csv.Reader, lines: Sequence[str]) -> Iterator[list[str]]:
    """Records of a CSV reader over lines, without empty lines and comments; a quoted `#12` is a cell like any other."""
    first = 0
    for record in reader:
        if record and not lines[first].startswith("#"):
            yield record
        first = reader.line_num
