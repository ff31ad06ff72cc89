"""What a format of files is: how its content is known, how it is read, and what its trials share or leave out."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

import polars as pl
from pydantic import TypeAdapter, ValidationError

from fairtrial.analyse.models import Doubt
from fairtrial.errors import InputError, Problem
from fairtrial.imports.decoding import Decoded, decoded
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind
from fairtrial.words import first_problem

_POSITION: Final = re.compile(r" at line (\d+) column (\d+)")
MOST_CELLS: Final = 1 << 22  # of a table most of which is empty
MOST_EMPTY: Final = 8  # cells for each figure
M = TypeVar("M")
Figure = str | int | float


@dataclass(frozen=True)
class ImportSource:
    """One file's content.

    Attributes:
        name: as messages call it.
        label: as `label=path` gave it; empty without one.
        number: which file of its label it is, from 1, in the order of names.
        fields: what the pattern of names found in its name.
        path: None for standard input.
    """

    name: str
    content: bytes
    label: str
    number: int
    fields: tuple[tuple[str, str], ...] = ()
    path: Path | None = None

    @cached_property
    def decoded(self) -> Decoded:
        """Its text; raises InputError if it is none."""
        return decoded(self.content, self.name)

    @property
    def text(self) -> str:
        """Its text; raises InputError if it is none."""
        return self.decoded.text


@dataclass(frozen=True)
class Reader:
    """One format.

    Attributes:
        name: as `--format` says it.
        expected: what a file of it is, for messages.
        recognises: whether a text is of this format, complete or cut.
        read: its rows, one per trial; raises InputError with the line or field that is wrong.
        values: what is judged if the user names nothing: the first that all rows have; empty: any such metric.
        arm: the column to compare where no label is given; a condition only if no two files share a level of it.
        conditions: columns that tell apart what cannot be compared, such as benchmarks.
        apart: patterns of columns that are conditions only if an arm has several of their levels.
        failures: metrics that count what failed within a run that ended; above 0 they are said.
        shared: said where several rows of a file are trials of one arm.
        lost: said always.
        nested: where files of it lie in a directory that holds none itself.
    """

    name: str
    expected: str
    recognises: Callable[[str], bool]
    read: Callable[[ImportSource], FileTable]
    values: tuple[str, ...] = ()
    arm: str = ""
    conditions: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    shared: Doubt | None = None
    lost: Doubt | None = None
    nested: str = ""


def shared_state(message: str, *, advice: str = "") -> Doubt:
    """Trials of one file are not as independent as those of several."""
    several = "run the tool several times, the arms in random order, and name runs with `--cluster file`"
    return Doubt(code="shared_state", message=message, advice=advice or several)


def summarised(message: str) -> Doubt:
    """A trial is one summary of a whole run."""
    advice = "look at the course of a few runs before you trust their summaries, and discard a ramp-up in the tool"
    return Doubt(code="summarised", message=message, advice=advice)


def refused(source: ImportSource, message: str, *, hint: str, line: int = 0, field: str = "") -> InputError:
    """What a reader raises."""
    return InputError([Problem(message, source.name, line=line, column=int(line > 0), field=field)], hint=hint)


def require_end(source: ImportSource) -> None:
    """Refuses lines of which the last does not end: a number in it may be cut."""
    if not source.text.endswith("\n"):
        line, hint = len(source.text.splitlines()), "end the line if the file is complete"
        raise refused(source, "the last line does not end, so it may be cut", hint=hint, line=line)


def document(source: ImportSource, model: TypeAdapter[M], *, expected: str) -> M:
    """A JSON document.

    Raises:
        InputError: it is cut, or a field is not what the tool writes.
    """
    try:
        return model.validate_json(source.text)
    except ValidationError as error:
        first = error.errors()[0]
        hint = f"give {expected}, complete and as the tool wrote it"
        if first["type"] != "json_invalid":
            raise refused(source, f"{first_problem(error)}; expected {expected}", hint=hint) from error
        message = first["msg"].removeprefix("Invalid JSON: ")
        line, column = map(int, found.groups()) if (found := _POSITION.search(message)) else (0, 0)
        message = f"not a complete JSON document: {_POSITION.sub('', message)}; expected {expected}"
        raise InputError([Problem(message, source.name, line=line, column=column)], hint=hint) from error


def file_table(
    source: ImportSource,
    rows: Sequence[Mapping[str, Figure]],
    define: Callable[[str], MetricDefinition],
    *,
    better: Callable[[str], Better | None] | None = None,
) -> FileTable:
    """Rows of an output, of which there is at least one; every column of floats is a metric.

    Where `better` of a metric is None, its definition's direction is nothing to go by.
    """
    columns: dict[str, set[bool]] = defaultdict(set)
    for row in rows:
        for name, value in row.items():
            columns[name].add(isinstance(value, str))
    hint = "give the file as the tool wrote it"
    if mixed := next((name for name, kinds in columns.items() if len(kinds) > 1), None):
        raise refused(source, "expected names or numbers in a column, found both", hint=hint, field=mixed)
    if len(columns) * len(rows) > max(MOST_CELLS, MOST_EMPTY * sum(map(len, rows))):
        raise refused(source, f"too many columns, most of them empty: {len(columns)}", hint=hint)
    try:
        frame = pl.DataFrame(rows, infer_schema_length=None)
    except UnicodeEncodeError as error:  # JSON may name half of a character by its number
        raise refused(source, f"expected text, found {error.object!r}", hint=hint) from error
    definitions = {name: define(name) for name, dtype in frame.schema.items() if dtype.is_float()}
    undirected = frozenset(name for name in definitions if better is not None and better(name) is None)
    return FileTable(name=source.name, frame=frame, definitions=definitions, undirected=undirected)


def metric(name: str, unit: str, better: Better, *, source: str, kind: MetricKind = "wall_clock") -> MetricDefinition:
    """A column as a metric; its label leaves out the unit, which is printed beside it."""
    measured = name.removesuffix(column(unit)).rstrip("_") or (
        "time" if unit.startswith("ns/") else unit.partition("/")[0]
    )
    label = measured.replace("_", " ")
    return MetricDefinition(name=name, label=label, unit=unit, better=better, kind=kind, source=source)


def number(value: float) -> float:
    """As a metric has it; of a whole number that no float holds, infinity, which no analysis takes."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def column(unit: str) -> str:
    """A unit as the name of a column: `MB/s` is `MB_per_s`."""
    return re.sub(r"[^0-9A-Za-z]+", "_", unit.replace("/", "_per_").replace("%", "percent")).strip("_") or "value"
