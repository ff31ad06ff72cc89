"""All sources as one frame of rows. What a file is, its content says, not its name, unless the user says it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl
from polars import selectors

from fairtrial.analyse.models import Doubt
from fairtrial.errors import InputError, Problem
from fairtrial.imports import tables
from fairtrial.imports.outputs import READERS
from fairtrial.imports.reader import ImportSource, Reader
from fairtrial.imports.rows import FILE, LABEL, NUMBER, FileTable, Rows
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.problems import did_you_mean, listed


def gather(sources: Sequence[ImportSource], *, format_name: str = "") -> Rows:
    """Reads sources into rows, one below the other.

    Tables get a column `label` where labels are given; outputs of tools get `label`, `file` and `number` (the file's
    place among those of its label). Fields of file names are columns of both.

    Raises:
        InputError: a file is empty, damaged or of another format than its name says, or formats are mixed.
    """
    known = {(reader := _reader(source, format_name)).name: (reader, source) for source in sources}
    if len(known) > 1:
        named = ", ".join(f"{source.name} ({name})" for name, (_, source) in known.items())
        problem = Problem(f"expected files of one kind, found {named}", sources[0].name)
        raise InputError([problem], hint="analyse one kind at a time")
    ((reader, _),) = known.values()
    is_output = reader is not tables.READER
    parts = [_with_columns(reader.read(source), source, is_output=is_output) for source in sources]
    frame = _stacked(parts)
    definitions = _definitions(parts)
    return Rows(
        frame=frame,
        parts=parts,
        definitions=definitions,
        undirected=frozenset().union(*(part.undirected for part in parts)),
        value=_value(reader, frame, definitions),
        arm=LABEL if any(source.label for source in sources) else _arm(reader, frame),
        conditions=reader.conditions,
        apart=tuple(name for pattern in reader.apart for name in fnmatch.filter(frame.columns, pattern)),
        doubts=(
            *([reader.lost] if reader.lost else []),
            *(doubt for part in parts for doubt in part.doubts),
            *_failures(reader, frame),
            *_guessed(sources),
        ),
        shared=reader.shared,
    )


def _reader(source: ImportSource, format_name: str) -> Reader:
    """As the user says, else by content."""
    if not source.content.strip():
        hint = "give a table with a header and one row per trial, or the complete output of a benchmark tool"
        raise InputError([Problem("the file is empty", source.name)], hint=hint)
    if format_name:
        if format_name not in READERS:
            near = did_you_mean(format_name, READERS)
            problem = Problem(f"expected one of {listed(READERS)}, found {format_name!r}", "--format", suggestion=near)
            raise InputError([problem], hint="leave --format out to tell formats by the files' content")
        return READERS[format_name]
    if tables.is_parquet(source.content):
        return tables.READER
    text = source.text.lstrip()
    reader = next(reader for reader in READERS.values() if reader.recognises(text))
    if reader is tables.READER and text.startswith(("{", "[", "<")):
        what = "XML" if text.startswith("<") else "JSON"
        problem = Problem(f"the file looks like {what} of a format that fairtrial does not read", source.name, 1, 1)
        raise InputError([problem], hint=f"name the format with --format: {listed(READERS)}")
    return reader


def _stacked(parts: Sequence[FileTable]) -> pl.DataFrame:
    """All rows. Dictionaries of text are text, as each file has its own."""
    first: dict[str, tuple[str, pl.DataType]] = {}
    frames = [part.frame.with_columns(selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String)) for part in parts]
    for part, frame in zip(parts, frames, strict=True):
        for name, dtype in frame.schema.items():
            where, other = first.setdefault(name, (part.name, dtype))
            if not _fit(dtype, other):
                problem = Problem(f"expected {other}, as in {where}, found {dtype}", part.name, field=name)
                hint = "write the column the same way in every file, durations as numbers"
                raise InputError([problem], hint=hint)
    return pl.concat(frames, how="diagonal_relaxed")


def _fit(one: pl.DataType, other: pl.DataType) -> bool:
    """Whether two types make one column of what both are: Polars makes microseconds of a duration beside a number."""
    types = one, other
    if one == other or pl.Null in types:
        return True
    if pl.String in types:
        return not any(each.is_nested() or each in (pl.Duration, pl.Binary) for each in types)
    zones = {getattr(each, "time_zone", None) for each in types}
    are_dates = all(each in (pl.Date, pl.Datetime) for each in types) and len(zones) == 1
    return are_dates or all(each.is_numeric() or each == pl.Boolean for each in types)


def _definitions(parts: Sequence[FileTable]) -> Mapping[str, MetricDefinition]:
    """Of all files, which agree on each."""
    definitions: dict[str, MetricDefinition] = {}
    for part in parts:
        for name, definition in part.definitions.items():
            first = definitions.setdefault(name, definition)
            if first != definition:
                message = f"expected {first.unit}, {first.better} is better, as in the files before it"
                problem = Problem(f"{message}, found {definition.unit}, {definition.better}", part.name, field=name)
                raise InputError([problem], hint="analyse the files apart")
    return definitions


def _value(reader: Reader, frame: pl.DataFrame, definitions: Mapping[str, MetricDefinition]) -> str:
    """A value that only some benchmarks have would leave the others out without a word."""
    known = [name for name in reader.values or definitions if name in definitions]
    return next((name for name in known if not reader.conditions or not frame[name].null_count()), "")


def _arm(reader: Reader, frame: pl.DataFrame) -> str:
    """A benchmark that is in several files is of two arms as likely as of one."""
    if reader.arm in reader.conditions and frame.select(pl.col(FILE).n_unique().over(reader.arm).max()).item() > 1:
        return ""
    return reader.arm


def _failures(reader: Reader, frame: pl.DataFrame) -> Iterator[Doubt]:
    """Says that a run's figures are not those of a run in which everything succeeded."""
    for name in reader.failures:
        failed = frame.filter(pl.col(name) > 0)[name] if name in frame.columns else pl.Series()
        if len(failed):
            yield Doubt(
                code="partly_failed",
                message=f"{name} is above 0 in {len(failed)} of {frame.height} rows, up to {max(failed):,g}",
                advice=f"what fails may take less time than what succeeds: judge `--value {name}` as well",
            )


def _guessed(sources: Sequence[ImportSource]) -> Iterator[Doubt]:
    """Says which files were read in an encoding that they do not name."""
    guessed = [source for source in sources if not tables.is_parquet(source.content) and source.decoded.guessed]
    if guessed:
        more = f" and {len(guessed) - 1} more" if len(guessed) > 1 else ""
        count = sum(source.decoded.guessed for source in guessed)
        yield Doubt(
            code="guessed_encoding",
            message=f"{guessed[0].name}{more}: not UTF-8; {count} characters beyond ASCII are read as Latin-1 "
            "(Windows-1252)",
            advice="check the names that have such characters, or save the file as UTF-8",
        )


def _with_columns(part: FileTable, source: ImportSource, *, is_output: bool) -> FileTable:
    named, added = dict(source.fields), dict[str, str | int]()
    if source.label:
        added[LABEL] = source.label
    if is_output:
        added |= {FILE: source.name, NUMBER: source.number}
    for name in added.keys() & named.keys():
        problem = Problem(
            f"the column `{name}` is added to every file: --names cannot have a field of that name", source.name
        )
        raise InputError([problem], hint="rename the field, for example {run}")
    added |= named
    for name in added.keys() & set(part.frame.columns):
        problem = Problem(f"the table already has a column `{name}`", part.name, field=name)
        raise InputError([problem], hint="rename the column, or leave out the labels or the field of --names")
    columns = [pl.lit(value).alias(name) for name, value in added.items()]
    return replace(part, frame=part.frame.with_columns(columns))
