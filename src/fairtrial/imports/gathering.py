"""All sources as one frame of rows. What a file is, its content says, not its name."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fairtrial.errors import InputError, Problem
from fairtrial.imports import fio, sysbench, tables
from fairtrial.imports.rows import Part, Rows
from fairtrial.imports.sources import Source

LABEL, FILE, NUMBER = "label", "file", "number"  # columns that every output of fio and sysbench gets


def gather(found: Sequence[Source]) -> Rows:
    """Reads sources into rows, one below the other.

    Tables get a column `label` where labels are given; outputs of fio and sysbench get `label`, `file` and `number`
    (the file's place among those of its label). Fields of file names are columns of both.

    Raises:
        InputError: a file is empty or damaged, or tables and outputs are mixed.
    """
    kinds = {_kind(source): source for source in found}
    if len(kinds) > 1:
        named = ", ".join(f"{source.name} ({kind})" for kind, source in kinds.items())
        problem = Problem(f"expected files of one kind, found {named}", found[0].name)
        raise InputError([problem], hint="analyse one kind at a time")
    kind = next(iter(kinds))
    parts = [_with_columns(_read(source, kind), source, is_output=kind in ("fio", "sysbench")) for source in found]
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    if kind not in ("fio", "sysbench"):
        return Rows(frame=frame, parts=parts, arm=LABEL if any(source.label for source in found) else "")
    own = fio if kind == "fio" else sysbench
    numeric = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    return Rows(
        frame=frame,
        parts=parts,
        definitions={name: own.definition(name) for name in numeric},
        value=own.VALUE,
        arm=LABEL if any(source.label for source in found) else "",
    )


def _kind(source: Source) -> str:
    if not source.content.strip():
        problem = Problem("the file is empty", source.name)
        raise InputError(
            [problem],
            hint="give a table with a header and one row per trial, or the complete output of fio or sysbench",
        )
    if tables.is_parquet(source.content):
        return "table"
    if fio.is_fio(source.content):
        return "fio"
    return "sysbench" if sysbench.is_sysbench(source.content) else "table"


def _read(source: Source, kind: str) -> Part:
    if kind == "fio":
        return fio.part(source)
    if kind == "sysbench":
        return sysbench.part(source)
    return tables.parquet(source) if tables.is_parquet(source.content) else tables.csv_table(source)


def _with_columns(part: Part, source: Source, *, is_output: bool) -> Part:
    added: dict[str, str | int] = dict(source.fields)
    if source.label:
        added[LABEL] = source.label
    if is_output:
        added |= {FILE: source.name, NUMBER: source.number}
    for name in added.keys() & set(part.frame.columns):
        problem = Problem(f"the table already has a column `{name}`", part.name, field=name)
        raise InputError([problem], hint="rename the column, or leave out the labels or the field of --names")
    columns = [pl.lit(value).alias(name) for name, value in added.items()]
    return Part(part.name, part.frame.with_columns(columns), part.text, part.separator)
