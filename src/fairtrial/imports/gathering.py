"""All sources as one frame of rows. What a file is, its content says, not its name."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fairtrial.errors import InputError, Problem
from fairtrial.imports import fio, sysbench, tables
from fairtrial.imports.rows import FileTable, Rows
from fairtrial.imports.sources import ImportSource

LABEL, FILE, NUMBER = "label", "file", "number"  # columns that every output of fio and sysbench gets


def gather(sources: Sequence[ImportSource]) -> Rows:
    """Reads sources into rows, one below the other.

    Tables get a column `label` where labels are given; outputs of fio and sysbench get `label`, `file` and `number`
    (the file's place among those of its label). Fields of file names are columns of both.

    Raises:
        InputError: a file is empty or damaged, or tables and outputs are mixed.
    """
    kinds = {_kind(source): source for source in sources}
    if len(kinds) > 1:
        named = ", ".join(f"{source.name} ({kind})" for kind, source in kinds.items())
        problem = Problem(f"expected files of one kind, found {named}", sources[0].name)
        raise InputError([problem], hint="analyse one kind at a time")
    tool = {"fio": fio, "sysbench": sysbench}.get(next(iter(kinds)))
    parts = [
        _with_columns(tool.part(source) if tool else tables.part(source), source, is_output=tool is not None)
        for source in sources
    ]
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    arm = LABEL if any(source.label for source in sources) else ""
    if tool is None:
        return Rows(frame=frame, parts=parts, arm=arm)
    definitions = {name: tool.definition(name) for name, dtype in frame.schema.items() if dtype.is_float()}
    return Rows(frame=frame, parts=parts, definitions=definitions, value=tool.VALUE, arm=arm)


def _kind(source: ImportSource) -> str:
    if not source.content.strip():
        problem = Problem("the file is empty", source.name)
        hint = "give a table with a header and one row per trial, or the complete output of fio or sysbench"
        raise InputError([problem], hint=hint)
    if tables.is_parquet(source.content):
        return "table"
    if fio.is_fio(source.content):
        return "fio"
    return "sysbench" if sysbench.is_sysbench(source.content) else "table"


def _with_columns(part: FileTable, source: ImportSource, *, is_output: bool) -> FileTable:
    added: dict[str, str | int] = dict(source.fields)
    if source.label:
        added[LABEL] = source.label
    if is_output:
        added |= {FILE: source.name, NUMBER: source.number}
    for name in added.keys() & set(part.frame.columns):
        problem = Problem(f"the table already has a column `{name}`", part.name, field=name)
        raise InputError([problem], hint="rename the column, or leave out the labels or the field of --names")
    columns = [pl.lit(value).alias(name) for name, value in added.items()]
    return FileTable(part.name, part.frame.with_columns(columns), part.text, part.separator)
