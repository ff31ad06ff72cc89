"""From rows to what an analysis starts from: which columns are values, arms, conditions and blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import polars as pl

from fairtrial.analyse.doubts import order as order_doubts
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Counts, Doubt
from fairtrial.analyse.selection import ONLY_CELL
from fairtrial.analyse.tidy import Course, Request, Table
from fairtrial.errors import InputError, Problem
from fairtrial.imports import clustering, curve_columns, shares
from fairtrial.imports.numerals import PLAIN, Numerals
from fairtrial.imports.rows import FILE, Rows
from fairtrial.study.catalogue import Better, MetricDefinition
from fairtrial.study.designs.numeric_factors import CurveModel
from fairtrial.study.tree.problems import did_you_mean, listed

ABSENT: Final = ("", "NA", "N/A", "NaN", "nan", "null", "None")  # how tables write that there is no value
STOPPED_BY: Final = "stopped_by"  # a column: the rule that ended the trials early
MARKS: Final = ("valid", "used", "invalid_reason")  # columns of a run's own raw_data.csv
LARGEST: Final = 1e300  # of values: sums of larger ones are soon no numbers
PROBLEMS_SHOWN: Final = 20  # more of one kind say nothing new
_LARGEST_EXACT: Final = 2.0**53  # beyond it two whole numbers may be one of these
_BLOCK = "·block"  # a column of ours; the dot keeps clear of the user's
_OURS: Final = "·"
_POSITION, _ROW = clustering.POSITION, clustering.ROW


@dataclass(frozen=True)
class Question:
    """What the user asks of a table, in column names.

    Attributes:
        values: what is judged; the first is primary, the others secondary.
        arm: the column whose levels are compared.
        by: columns whose combinations are judged apart from each other.
        block: trials with equal values were measured side by side; None: trials are taken as independent.
        cluster: rows of one arm, cell and block with equal values are samples of one trial, and are averaged; None:
            every row is a trial.
        time: the column to sort by; None: rows are in time order.
        baseline: a level of `arm`; None: the first row's.
        better: of values, in order; one stands for all; empty: what the format defines, higher for tables.
        better_of: of single values, before all else.
        numerals: how cells of text write numbers.
        curve: a column of numbers, which is a condition, and the model of curves over it; None for none.
    """

    values: tuple[str, ...] = ()
    arm: str = ""
    by: tuple[str, ...] = ()
    block: str | None = None
    cluster: str | None = None
    time: str | None = None
    baseline: str | None = None
    better: tuple[Better, ...] = ()
    better_of: Mapping[str, Better] = field(default_factory=dict)
    margin: float = 0.02
    confidence: float = 0.95
    numerals: Numerals = PLAIN
    curve: tuple[str, CurveModel] | None = None


def ask(rows: Rows, question: Question) -> tuple[Table, Request, Course]:
    """What `fairtrial.analyse.analyse_table` takes.

    Raises:
        InputError: a column is missing or has no numbers, an arm has one level, or stands twice in a block.
    """
    values = question.values or ((rows.value,) if rows.value else ())
    if question.curve is not None and not (question.arm or rows.arm):
        rows = curve_columns.with_an_arm(rows)
    arm = question.arm or rows.arm
    _require_columns(rows, question, values=values, arm=arm)
    rows = rows.with_values(values)
    question = replace(question, by=question.by or _conditions(rows, question, values=values, arm=arm))
    if question.curve is not None and question.curve[0] not in question.by:
        question = replace(question, by=(*question.by, question.curve[0]))
    _refuse_names_of_ours(rows, [arm, *question.by, *([question.block] if question.block else []), *values])
    every = _frame(rows, question, values=values, arm=arm)
    definitions = _definitions(rows, every.select(values), question)
    frame = every if question.cluster is None else clustering.averaged(every, values=values, by=question.by)
    levels = _levels(rows, frame, question, arm=arm)
    if question.block is not None:
        _refuse_twins(rows, frame, clustered=question.cluster is not None)
        _refuse_one_number_of_two_blocks(rows, frame, question.block)
        _require_a_common_block(rows, frame, levels)
    if question.baseline is None:
        _require_a_baseline(rows, frame, levels)
    table, cells = _table(frame, question, values=values, levels=levels)
    count = frame.height
    request = Request(
        study=rows.name,
        question="",
        contrast=arm,
        levels=levels,
        cells=cells,
        metrics=definitions,
        roles={name: "secondary" if index else "primary" for index, name in enumerate(values)},
        paired=question.block is not None,
        confidence=question.confidence,
        margin=question.margin,
        curve=None
        if question.curve is None
        else curve_columns.request(
            rows,
            dict.fromkeys(each[question.curve[0]] for each in cells.values()),
            curve=question.curve,
            numerals=question.numerals,
            primary=definitions[values[0]],
        ),
    )
    counts = _counts(rows, every, used=count, clustered=question.cluster is not None)
    return table, request, _course(rows, counts, doubts=_doubts(rows, every, question, table=table))


def _counts(rows: Rows, every: pl.DataFrame, *, used: int, clustered: bool) -> Counts:
    """Rows that the file marks as not used count as trials that ended."""
    finished = used + rows.frame.height - every.height
    invalid = int(_marked(rows, "valid").sum())
    return Counts(
        planned=finished,
        finished=finished,
        valid=finished - invalid,
        invalid=invalid,
        used=used,
        blocks_voided=0,
        blocks_replaced=0,
        rows=every.height if clustered else 0,
    )


def _marked(rows: Rows, mark: str) -> pl.Series:
    """Where a run's own table says no: `valid` of a trial, `used` of its whole block; nowhere in other tables."""
    if not set(MARKS) <= set(rows.frame.columns):
        return pl.repeat(False, rows.frame.height, eager=True)  # noqa: FBT003 - a value
    return rows.text(mark).str.to_lowercase().eq_missing("false")


def _conditions(rows: Rows, question: Question, *, values: Sequence[str], arm: str) -> tuple[str, ...]:
    """What tells apart the benchmarks of the files, if nobody names conditions."""
    named = {arm, question.block, question.cluster, question.time, *values}
    several = [name for name in rows.conditions if name in rows.frame.columns and rows.frame[name].n_unique() > 1]
    found = [name for name in several if name not in named]
    for name in rows.apart:
        levels = rows.frame.select(pl.col(name).n_unique().over(arm, *found).max()).item()
        if name not in named and levels > 1:
            found.append(name)
    return tuple(found)


def _doubts(rows: Rows, every: pl.DataFrame, question: Question, *, table: Table) -> tuple[Doubt, ...]:
    """About the files, and about rows that may be no trials."""
    values = list(dict.fromkeys(name for _, name in table))
    missing = () if question.cluster is None else clustering.doubts(every, values=values)
    shared = _shared(rows, every, question)
    return (*rows.doubts, *shared, *missing, *_dependent(table, question, values=values))


def _shared(rows: Rows, every: pl.DataFrame, question: Question) -> Iterator[Doubt]:
    """Where one file gives an arm several trials in a cell."""
    if rows.shared is not None and question.cluster is None:
        place = every.select(every.columns[0], *question.by, rows.frame[FILE][every[_ROW]].alias(clustering.CLUSTER))
        if place.is_duplicated().any():
            yield rows.shared


def _dependent(table: Table, question: Question, *, values: Sequence[str]) -> Iterator[Doubt]:
    """Of blocks the differences are asked, as a run's are; without blocks the rows themselves."""
    if question.block is None:
        unit = "row" if question.cluster is None else "cluster"
        for metric in values:
            arms = [each for (_, name), levels in table.items() if name == metric for each in levels.values()]
            yield from order_doubts.dependent_rows(metric, arms, unit=unit)


def _course(rows: Rows, counts: Counts, *, doubts: tuple[Doubt, ...]) -> Course:
    """Without verdicts where a rule stopped the trials, at what they showed: no p here allows for that."""
    reasons = [] if STOPPED_BY not in rows.frame.columns else rows.text(STOPPED_BY).unique().to_list()
    rules = sorted(rule for rule in reasons if rule not in ABSENT)
    if not rules:
        return Course(counts=counts, doubts=doubts)
    stopped = Doubt(
        code="stopped_early",
        message=f"the trials stopped early, depending on their results: {'; '.join(rules)}",
        advice="take verdicts from the report of the run itself, whose p values account for the rule",
    )
    return Course(counts=counts, doubts=(stopped, *doubts), without_verdict=lambda _comparison: True)


def _require_columns(rows: Rows, question: Question, *, values: Sequence[str], arm: str) -> None:
    known = rows.frame.columns
    named = [("--value", name) for name in values] + [("--arm", arm)] * bool(arm)
    named += [("--by", name) for name in question.by]
    curve = None if question.curve is None or question.curve[0] in question.by else question.curve[0]
    alone = (
        ("--block", question.block),
        ("--cluster", question.cluster),
        ("--time", question.time),
        (curve_columns.OPTION, curve),
    )
    named += [(option, name) for option, name in alone if name is not None]
    problems = [
        Problem(f"unknown column `{name}`; expected one of {listed(known)}", rows.name, field=option, suggestion=near)
        for option, name in named
        if name not in known
        for near in [did_you_mean(str(name), known)]
    ]
    problems += [
        Problem(f"no column {what} is named; expected one of {listed(columns)}", rows.name, field=option)
        for option, what, column, columns in (
            ("--value", "of values", values, list(rows.definitions) or known),
            ("--arm", "to compare", arm, known),
        )
        if not column
    ]
    problems += [
        Problem(f"column `{name}` is named by more than one option", rows.name, field=", ".join(options))
        for name in dict.fromkeys(name for _, name in named if name)
        if len(options := [option for option, other in named if other == name and option != "--time"]) > 1
        and options != ["--block", "--cluster"]  # a block then is a run of each arm
    ]
    if problems:
        raise InputError(problems, hint="name columns of the header with --value, --arm, --by, --block and --cluster")


def _refuse_names_of_ours(rows: Rows, names: Sequence[str]) -> None:
    message = f"the name begins with `{_OURS}`, as those of columns that fairtrial adds"
    if problems := [Problem(message, rows.name, field=name) for name in names if name.startswith(_OURS)]:
        raise InputError(problems, hint="rename the column in the header")


def _definitions(rows: Rows, values: pl.DataFrame, question: Question) -> dict[str, MetricDefinition]:
    better = _better(rows, values.columns, question)
    definitions = {}
    for column in values:
        known = rows.definitions.get(column.name) or _definition(rows, column)
        way = better.get(column.name, known.better)
        definitions[column.name] = known.model_copy(update={"better": way})
    return definitions


def _better(rows: Rows, values: Sequence[str], question: Question) -> dict[str, Better]:
    """Directions that the user gives: of a name, else of all values in their order."""
    in_order = question.better
    if len(in_order) not in (0, 1, len(values)):
        expected = "1 direction" if len(values) == 1 else f"1 or {len(values)} directions"
        problem = Problem(f"expected {expected}, found {len(in_order)}", "--better")
        raise InputError([problem], hint="give --better once for all, or once for each --value")
    if unknown := [name for name in question.better_of if name not in values]:
        message = f"`{unknown[0]}` is not judged; expected one of {listed(values)}"
        problem = Problem(message, "--better", suggestion=did_you_mean(unknown[0], values))
        raise InputError([problem], hint="name a column of --value")
    better = dict(zip(values, in_order * len(values) if len(in_order) == 1 else in_order, strict=False))
    better |= question.better_of
    if guessed := [name for name in values if name in rows.undirected and name not in better]:
        message = "the format does not say whether higher or lower is better"
        problems = [Problem(message, rows.name, field=name) for name in guessed]
        raise InputError(problems, hint=f"give --better {guessed[0]}=lower or --better {guessed[0]}=higher")
    return better


def _definition(rows: Rows, column: pl.Series) -> MetricDefinition:
    """Of anyone's column."""
    name, unit = column.name, shares.unit(column.name, column)
    return MetricDefinition(name=name, label=name, unit=unit, better="higher", kind="wall_clock", source=rows.name)


def _frame(rows: Rows, question: Question, *, values: Sequence[str], arm: str) -> pl.DataFrame:
    """The columns asked for: names as text, values as numbers (NaN where there is none), in time order."""
    names = [arm, *question.by, *([question.block] if question.block else [])]
    text = pl.DataFrame([rows.text(name) for name in names])
    problems = [problem for name in names for problem in _empty(rows, text, name)]
    if question.cluster is not None:
        text = text.with_columns(_clusters(rows, question.cluster, problems))
    numbers = {name: _numbers(rows, name, problems, numerals=question.numerals) for name in values}
    order = _time_order(rows, question, problems)
    if problems:
        raise InputError(
            problems[:PROBLEMS_SHOWN],
            hint="fix the cells listed above; leave a missing value empty, or write NA; --decimal and --thousands say "
            "how the table writes numbers",
        )
    frame = text.with_columns(
        pl.int_range(pl.len()).alias(_ROW),
        pl.int_range(pl.len()).alias(_POSITION),
        *(series.alias(name) for name, series in numbers.items()),
    )
    used = frame[order.filter(~_marked(rows, "used")[order])]
    if used.is_empty():
        problem = Problem("no row is marked as used", rows.name, field="used")
        raise InputError([problem], hint="the column `invalid_reason` says why")
    return used.with_columns(pl.int_range(pl.len()).alias(_POSITION))


def _empty(rows: Rows, text: pl.DataFrame, name: str) -> Iterator[Problem]:
    for row in text[name].eq("").arg_true().head(PROBLEMS_SHOWN):
        yield rows.problem(int(row), name, "expected a value in every row, found an empty cell")


def _clusters(rows: Rows, name: str, problems: list[Problem]) -> pl.Series:
    """Clusters as text. Rows without one would become one trial together, so here NA is no name."""
    labels = rows.text(name)
    for row in labels.is_in(ABSENT).arg_true().head(PROBLEMS_SHOWN):
        message = f"expected the name of a cluster, found {labels[int(row)]!r}"
        problems.append(rows.problem(int(row), name, message, suggestion="name the run that the row is a sample of"))
    return labels.alias(clustering.CLUSTER)


def _numbers(rows: Rows, name: str, problems: list[Problem], *, numerals: Numerals) -> pl.Series:
    column = rows.frame[name]
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return _finite(rows, column.cast(pl.Float64).fill_null(float("nan")), problems)
    text = rows.text(name)
    missing = text.is_in(ABSENT)
    numbers = numerals.floats(text)
    for row in (numbers.is_null() & ~missing).arg_true().head(PROBLEMS_SHOWN):
        entry = text[int(row)]
        problems.append(
            rows.problem(int(row), name, f"expected a number, found {entry!r}", suggestion=numerals.suggestion(entry))
        )
    return _finite(rows, numbers.fill_null(float("nan")), problems)


def _finite(rows: Rows, numbers: pl.Series, problems: list[Problem]) -> pl.Series:
    """Numbers, none infinite: a trial that never ended is no missing one, and leaving it out flatters its arm."""
    for row in (numbers.abs().fill_nan(0.0) > LARGEST).arg_true().head(PROBLEMS_SHOWN):
        figure = "infinity" if math.isinf(numbers[int(row)]) else f"{numbers[int(row)]:g}"
        advice = "write the limit that it reached, or NA"
        message = f"expected a measurement, found {figure}"
        problems.append(rows.problem(int(row), numbers.name, message, suggestion=advice))
    return numbers


def _time_order(rows: Rows, question: Question, problems: list[Problem]) -> pl.Series:
    """Row numbers in the order of a column: of numbers if all are, else of texts, as ISO dates sort.

    A row without a time has no place in it, and a text among numbers would put 10 before 9.
    """
    name = question.time
    if name is None:
        return pl.int_range(rows.frame.height, eager=True)
    column = rows.text(name)
    missing = column.is_in(ABSENT)
    numbers = question.numerals.floats(column)
    texts = numbers.is_null() & ~missing
    in_numbers = int(texts.sum()) < numbers.count()
    without = (missing | (texts & in_numbers)).arg_true().head(PROBLEMS_SHOWN).to_list()
    problems += [rows.problem(row, name, f"expected a time, found {column[row]!r}") for row in without]
    return (numbers if in_numbers else column).arg_sort()


def _levels(rows: Rows, frame: pl.DataFrame, question: Question, *, arm: str) -> tuple[str, ...]:
    """Baseline first, the others as they come."""
    levels: list[str] = frame.sort(_POSITION)[arm].unique(maintain_order=True).to_list()
    baseline = question.baseline
    if len(levels) == 1 and question.curve is None:
        problem = Problem(f"expected at least two levels, found only `{levels[0]}`", rows.name, field=arm)
        raise InputError([problem], hint="name a different column with --arm, or add a file with another level")
    if baseline is None:
        return tuple(levels)
    if baseline not in levels:
        near = did_you_mean(baseline, levels)
        message = f"unknown level `{baseline}`; expected one of {listed(levels)}"
        problem = Problem(message, rows.name, field=arm, suggestion=near)
        raise InputError([problem], hint="name one of the levels of --arm with --baseline")
    return (baseline, *(level for level in levels if level != baseline))


def _require_a_baseline(rows: Rows, frame: pl.DataFrame, levels: Sequence[str]) -> None:
    """Where arms are in random order, which of them stands in the first row is chance."""
    arm, *place = frame.columns[: frame.columns.index(_ROW)]
    ordered = frame.sort(_POSITION).select(pl.lit(0).alias(_BLOCK), *place, arm)
    of = pl.col(arm)
    first, several, stretches = of.first().alias("·first"), of.n_unique().alias("·several"), of.rle_id().max() + 1
    groups = ordered.group_by(_BLOCK, *place).agg(first, several, stretches.alias("·stretches"))
    whole = groups.filter(pl.col("·several") == len(levels))
    if whole["·first"].n_unique() > 1 or (groups["·stretches"] > groups["·several"]).any():
        message = "no baseline is named, and the first row does not determine one: the arms are interleaved"
        problem = Problem(message, rows.name, field=arm)
        raise InputError([problem], hint=f"for example --baseline {levels[0]}; the levels are {listed(levels)}")


def _refuse_twins(rows: Rows, frame: pl.DataFrame, *, clustered: bool) -> None:
    """One trial per arm, cell and block."""
    unit = "cluster" if clustered else "row"
    columns = frame.columns[: frame.columns.index(_ROW)]
    twin = frame.with_columns(pl.struct(columns).is_first_distinct().alias(_BLOCK)).filter(~pl.col(_BLOCK))
    if twin.height == 0:
        return
    first = twin.row(0, named=True)
    where = ", ".join(f"{name} {first[name]}" for name in columns)
    problem = rows.problem(int(first[_ROW]), columns[-1], f"expected one {unit} for {where}, found another")
    more = f" ({twin.height} such {unit}s)" if twin.height > 1 else ""
    raise InputError(
        [problem],
        hint=f"a block holds one trial of each arm{more}: name the columns that distinguish trials with --by, or "
        "average the rows of each trial with --cluster",
    )


def _refuse_one_number_of_two_blocks(rows: Rows, frame: pl.DataFrame, block: str) -> None:
    """A block that is written in two ways would lose its pairs, or two blocks would be one."""
    written: dict[float, str] = {}
    numbers = frame[block].cast(pl.Float64, strict=False)
    for row, name, number in zip(frame[_ROW], frame[block], numbers, strict=True):
        exact = number is not None and abs(number) < _LARGEST_EXACT
        first = written.setdefault(number, name) if exact else name
        if first != name:
            message = f"block `{name}` is the same number as block `{first}`, written differently"
            problem = rows.problem(row, block, message)
            raise InputError([problem], hint="write the name of a block the same way in every row")


def _require_a_common_block(rows: Rows, frame: pl.DataFrame, levels: Sequence[str]) -> None:
    """Else nothing is compared, and an empty answer would not say why."""
    arm, *place = frame.columns[: frame.columns.index(_ROW)]
    first, *others = [set(frame.filter(pl.col(arm) == level).select(place).iter_rows()) for level in levels]
    if others and not any(first & other for other in others):
        problem = Problem(f"no block holds `{levels[0]}` and another level of `{arm}`", rows.name, field=place[-1])
        hint = "name the column of blocks with --block, or leave it out to treat trials as independent"
        raise InputError([problem], hint=hint)


def _table(
    frame: pl.DataFrame, question: Question, *, values: Sequence[str], levels: Sequence[str]
) -> tuple[Table, dict[str, dict[str, str]]]:
    """Values by cell and metric, and the cells in the order in which they come."""
    arm = frame.columns[0]
    blocks = _block_numbers(frame, question.block)
    coded = frame.with_columns(pl.Series(_BLOCK, blocks))
    by = list(question.by)
    groups = coded.partition_by([*by, arm], maintain_order=True, as_dict=True)
    cells = dict.fromkeys(key[:-1] for key in groups)
    nothing = coded.clear()
    table = {
        (_name(cell), metric): {
            level: _measured(groups.get((*cell, level), nothing), metric, level) for level in levels
        }
        for cell in cells
        for metric in values
    }
    return table, {_name(cell): dict(zip(by, map(str, cell), strict=True)) for cell in cells}


def _name(cell: Sequence[object]) -> str:
    """Conditions joined by plus signs; one of a condition's own is escaped, so that no two cells have one name."""
    parts = [str(part) for part in cell]
    escaped = [part.replace("\\", "\\\\").replace("+", "\\+") for part in parts] if len(parts) > 1 else parts
    return "+".join(escaped) or ONLY_CELL


def _block_numbers(frame: pl.DataFrame, block: str | None) -> list[int]:
    """Blocks as they are where they are whole numbers, else numbered as they come; rows themselves without blocks."""
    if block is None:
        return [position + 1 for position in frame[_POSITION].to_list()]
    whole = frame[block].cast(pl.Int64, strict=False)
    if whole.null_count() == 0:
        return list(whole.to_list())
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers) + 1) for name in frame[block].to_list()]


def _measured(group: pl.DataFrame, metric: str, level: str) -> ArmValues:
    values = group[metric].to_numpy()
    there = np.isfinite(values)
    return ArmValues(
        arm=level,
        values=values[there].astype(np.float64),
        blocks=tuple(group[_BLOCK].to_numpy()[there].tolist()),
        positions=tuple(group[_POSITION].to_numpy()[there].tolist()),
        absent=int(len(values) - there.sum()),
    )
