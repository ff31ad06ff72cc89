"""A claims file of anybody's, with its raw data: read with positions, so that every mistake is reported at its line."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from fairtrial import foreign
from fairtrial.audit.claims.models import Claim, ClaimsFile
from fairtrial.audit.models import (
    FactorDescription,
    MetricDescription,
    PublicationDescription,
    ROutput,
    TableDescription,
)
from fairtrial.audit.reading import Dataset
from fairtrial.errors import InputError, Problem
from fairtrial.imports.tables import MOST_COLUMNS, TRANSPOSED
from fairtrial.study.tree import reading
from fairtrial.study.tree.nodes import Listing, Node, Tree
from fairtrial.study.tree.problems import Problems, did_you_mean, listed, validate
from fairtrial.words import first_problem

_CLAIMS: Final = TypeAdapter(ClaimsFile)
_DESCRIPTION: Final = TypeAdapter(PublicationDescription)
MOST_BYTES: Final = 256 << 20  # of data
MOST_FACTORS: Final = 12
MOST_COMBINATIONS: Final = 10_000
_HINT: Final = "see docs/guides/auditing.md for the format of the file"


class _Table(NamedTuple):
    """A CSV file, its rows, and the line on which each ends."""

    file: Path
    rows: list[dict[str, str]]
    lines: list[int]


def read(path: Path, *, data: Path | None = None) -> Dataset:
    """Reads claims, their description and their data: the file that the claims name, or `data` instead.

    Raises:
        InputError: a file cannot be read, or something in it is wrong.
    """
    problems = Problems()
    node = _node(path, problems)
    claims: ClaimsFile | None = validate(_CLAIMS, _texts(node), node=node, prefix=(), problems=problems)
    _raise_if_any(problems)
    assert claims is not None  # noqa: S101 - what cannot be read is a problem
    tables = [_table(file) for file in ([data] if data else [path.parent / name for name in claims.data])]
    rows = [row for table in tables for row in table.rows]
    description = _description(path, claims, rows)
    _check_size(path, description)
    _check_columns(tables)
    for table in tables:
        _check_rows(table, description)
    _check_block(node, tables, description)
    _check_names(node, claims, description)
    output = _r_output(path.parent / claims.r_output) if claims.r_output else ()
    return Dataset(
        name=path.parent.name,
        description=description,
        rows=tuple(rows),
        claims=tuple(claims.claims),
        r_output=output,
        files=tuple(number for number, table in enumerate(tables) for _ in table.rows) if len(tables) > 1 else (),
    )


def _raise_if_any(problems: Problems) -> None:
    ordered = sorted(problems, key=lambda each: (each.file, each.line, each.column))
    if ordered:
        raise InputError(ordered, hint=f"fix the lines listed above; {_HINT}")


def _node(path: Path, problems: Problems) -> Node:
    try:
        text = foreign.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(message=f"cannot read the file: {error}", file=str(path))], hint=_HINT) from error
    node = reading.parse(text, file=str(path), problems=problems)
    if not isinstance(node, Tree):
        raise InputError([Problem(message="expected a mapping with `claims`", file=str(path), line=1)], hint=_HINT)
    return node


def _texts(node: Node) -> Any:
    """The node with every scalar as it is written: a printed 5.20 is not 5.2."""
    if isinstance(node, Tree):
        return {key: _texts(value) for key, value in node.entries.items()}
    if isinstance(node, Listing):
        return [_texts(item) for item in node.items]
    return None if node.value is None else node.text


def _table(path: Path) -> _Table:
    try:
        content = foreign.read(path, most_bytes=MOST_BYTES).decode("utf-8-sig")
        with io.StringIO(content, newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            if len(header) > MOST_COLUMNS:
                problem = Problem(f"expected at most {MOST_COLUMNS} columns, found {len(header)}", str(path), 1, 1)
                raise InputError([problem], hint=TRANSPOSED)
            if twice := sorted(name for name, times in Counter(header).items() if times > 1):
                problem = Problem(f"two columns have the name `{twice[0]}`", str(path), reader.line_num, 1)
                raise InputError([problem], hint="give every column a unique name")
            table = _Table(path, [], [])
            for row in reader:
                if None in row or None in row.values():
                    problem = Problem(f"expected {len(header)} fields", str(path), reader.line_num, 1)
                    raise InputError([problem], hint="give one row per trial, as wide as the header")
                table.rows.append(row)
                table.lines.append(reader.line_num)
            return table
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = Problem(message=f"cannot read the file: {error}", file=str(path))
        hint = "name a CSV file with one row per trial in the claims, or with --data"
        raise InputError([problem], hint=hint) from error


def _r_output(path: Path) -> tuple[ROutput, ...]:
    try:
        return tuple(ROutput.model_validate(row) for row in _table(path).rows)
    except ValidationError as error:
        raise InputError([Problem(first_problem(error), str(path))], hint=_HINT) from error


def _description(path: Path, claims: ClaimsFile, rows: list[dict[str, str]]) -> PublicationDescription:
    """From its own file, or from the claims and, where those leave out levels, from the data."""
    if claims.description:
        problems = Problems()
        node = _node(path.parent / claims.description, problems)
        description: PublicationDescription | None = validate(
            _DESCRIPTION, _texts(node), node=node, prefix=(), problems=problems
        )
        _raise_if_any(problems)
        if description is not None:
            _check_factors(node, description)
            return description
    contrasts = list(dict.fromkeys((each.metric, each.contrast) for each in claims.claims if each.contrast))
    factors = {
        name: levels or list(dict.fromkeys(row[name] for row in rows if name in row))
        for name, levels in claims.factors.items()
    }
    return PublicationDescription(
        title=claims.title or path.parent.name,
        source=claims.source,
        arm=next((name for _metric, name in contrasts if name in factors), next(iter(factors), "")),
        factors={
            name: FactorDescription(label=name, levels=dict.fromkeys(levels, "")) for name, levels in factors.items()
        },
        metrics={
            name: MetricDescription(
                label=name, unit=each.unit, better=each.better, mean_decimals=0, interval_decimals=0
            )
            for name, each in claims.metrics.items()
        },
        tables=[
            TableDescription(name=f"{metric} by {contrast}", metric=metric, contrast=contrast, rows="")
            for metric, contrast in contrasts
            if metric in claims.metrics and factors.get(contrast)
        ],
        script_labels={},
        order=claims.order,
        block=claims.block,
        notes=claims.notes,
    )


def _check_factors(node: Node, description: PublicationDescription) -> None:
    """A description's own arm is one of its factors; its tables are of its metrics, and compare factors with levels."""
    problems = Problems()
    if description.arm not in description.factors:
        at = node.where("arm") if isinstance(node, Tree) else node.at
        problems.unknown("factor", description.arm, description.factors, at=at, field=("arm",))
    entries = node.entries.get("tables") if isinstance(node, Tree) else None
    compared = [name for name in description.factors if _levels(description, name)]
    for index, table in enumerate(description.tables):
        item = entries.items[index] if isinstance(entries, Listing) else node
        named = (("metric", table.metric, list(description.metrics)), ("contrast", table.contrast, compared))
        for key, name, known in named:
            if name not in known:
                where = item.where(key) if isinstance(item, Tree) else item.at
                problems.unknown(key, name, known, at=where, field=("tables", str(index), key))
    _raise_if_any(problems)


def _check_size(path: Path, description: PublicationDescription) -> None:
    """Every combination of levels is looked at, and every set of factors."""
    combinations = math.prod(max(1, len(each.levels)) for each in description.factors.values())
    if combinations > MOST_COMBINATIONS or len(description.factors) > MOST_FACTORS:
        message = (
            f"expected at most {MOST_FACTORS} factors with {MOST_COMBINATIONS:,} combinations of levels, found "
            f"{len(description.factors)} with {combinations:,}"
        )
        raise InputError([Problem(message, str(path))], hint="name in `factors` only columns that claims are about")


def _check_columns(tables: Sequence[_Table]) -> None:
    """Every file has the columns of the first."""
    for file, rows, _ in tables[1:]:
        expected, columns = set(tables[0].rows[0] if tables[0].rows else ()), set(rows[0] if rows else ())
        if expected != columns:
            message = (
                f"columns differ from those of {tables[0].file}: {listed(sorted(expected ^ columns))} in only one file"
            )
            raise InputError([Problem(message, str(file), 1, 1)], hint="give every file in `data` the same columns")


def _check_rows(table: _Table, description: PublicationDescription) -> None:
    """Every column is there, every metric a number."""
    problems, path = [], table.file
    columns = list(table.rows[0]) if table.rows else []
    for name in (*description.factors, *description.metrics):
        if name not in columns:
            message = f"expected a column `{name}`, found {listed(columns)}"
            problems.append(Problem(message, str(path), 1, 1, suggestion=did_you_mean(name, columns)))
    for line, row in zip(table.lines, table.rows, strict=True):
        problems += [
            Problem(f"expected a number, found `{row[name]}`", str(path), line, 1, name)
            for name in description.metrics
            if name in row and not _is_number(row[name])
        ]
    if problems:
        hint = "give the data a column for every factor and metric of the claims, and leave out trials without a number"
        raise InputError(problems, hint=hint)


def _check_block(node: Node, tables: Sequence[_Table], description: PublicationDescription) -> None:
    """The column of blocks is in every file; a description's own is at no line of the claims."""
    problems = Problems()
    for _, rows, _ in tables:
        columns = list(rows[0]) if rows else []
        if description.block and description.block not in columns:
            at = node.where("block") if isinstance(node, Tree) else node.at
            problems.unknown("column", description.block, columns, at=at, field=("block",))
    _raise_if_any(problems)


def _check_names(node: Node, claims: ClaimsFile, description: PublicationDescription) -> None:
    """Claims about data name a metric and, where levels are compared, a factor with two levels or more."""
    problems = Problems()
    entries = node.entries["claims"] if isinstance(node, Tree) else node
    for index, claim in enumerate(claims.claims):
        item = entries.items[index] if isinstance(entries, Listing) else entries
        field = ("claims", str(index))
        counts = claim.values_each and claim.metric
        needs_metric = _needs_contrast(claim) or claim.values or claim.intervals or counts
        if needs_metric and claim.metric not in description.metrics:
            where = item.where("metric") if isinstance(item, Tree) else item.at
            problems.unknown("metric", claim.metric, description.metrics, at=where, field=(*field, "metric"))
        if _needs_contrast(claim) and len(_levels(description, claim.contrast)) < 2:  # noqa: PLR2004 - to compare
            where = item.where("contrast") if isinstance(item, Tree) else item.at
            known = [name for name in description.factors if len(_levels(description, name)) > 1]
            problems.unknown("contrast", claim.contrast, known, at=where, field=(*field, "contrast"))
        written = item.tree("milder_at") if isinstance(item, Tree) else Tree({}, item.at)
        _check_milder(claim, description, problems=problems, written=written, field=(*field, "milder_at"))
    if not claims.claims:
        problems.add("expected at least one claim, found none", entries.at, field=("claims",))
    _raise_if_any(problems)


def _check_milder(
    claim: Claim, description: PublicationDescription, *, problems: Problems, written: Tree, field: tuple[str, ...]
) -> None:
    """A factor besides the contrast, with the level named and another one."""
    levels = {name: _levels(description, name) for name in description.factors if name != claim.contrast}
    known = [name for name, each in levels.items() if len(each) > 1]
    for factor, level in claim.milder_at.items():
        where, place = written.where(factor), (*field, factor)
        if factor not in known:
            problems.unknown("factor besides the contrast", factor, known, at=where, field=place)
        elif level not in levels[factor]:
            problems.unknown("level", level, levels[factor], at=where, field=place)


def _needs_contrast(claim: Claim) -> bool:
    return bool(claim.cells or claim.rest or claim.pair_range or claim.milder_at or claim.orders)


def _levels(description: PublicationDescription, factor: str) -> list[str]:
    return list(description.factors[factor].levels) if factor in description.factors else []


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
