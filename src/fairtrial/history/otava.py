"""CSV files as Apache Otava reads them: one row per run, a column for each metric, others that name the run.

Source: the page on CSV in the documentation of apache/otava, and its sample files: the column
`time`, attributes such as `commit` and `branch`, numbers in every other column.
"""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fairtrial import foreign
from fairtrial.errors import InputError, Problem
from fairtrial.history.series import Runs, Series, SeriesPoint
from fairtrial.imports.asking import ABSENT
from fairtrial.imports.numerals import PLAIN
from fairtrial.study.tree.problems import listed
from fairtrial.words import printable

TIME: Final = "time"
NAMES: Final = ("commit", "version", "revision", "run")  # attributes that name a run, in this order
BRANCH: Final = "branch"
_NO_METRICS: Final = (TIME, BRANCH, *NAMES)
_TIMES: Final = ("%Y.%m.%d %H:%M:%S %z", "%Y.%m.%d %H:%M %z", "%Y-%m-%d %H:%M:%S %z", "%Y.%m.%d", "%Y/%m/%d")
_DELIMITERS: Final = ",;\t|"
_SNIFFED: Final = 4096  # characters: a head and some rows
_UNREAD: Final = re.compile(  # numbers with a comma, thousands or a unit: `1000,25`, `6,000.25`, `1000 tps`
    r"[+-]?(\d{1,3}([ \u00a0\u202f,.'’_]\d{3})+([.,]\d*)?|\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?"
    r"(\s*(?P<unit>([^\W\d_]|[%‰°$€£/])[^\d,;:]{0,20}))?",
    re.IGNORECASE,
)
_UNIT: Final = re.compile(  # only these make a metric of a column: `1234567a` is a build, and `16 cores` what ran
    r"[%‰$€£]|°[cf]?|[munµ]?s|sec|seconds?|min|h|[kmgtp](i?b|hz|bps)?|bytes?|bits?|hz|w|j|(t|q|r|f|b|io)ps|tpmc?|nopm|ops"
    r"|[^\W\d_]*/(s|sec|second|min|minute|h|hour|op|req|iter)",
    re.IGNORECASE,
)


def read(path: Path, *, metrics: Sequence[str] = ()) -> Runs:
    """Reads a file: a series for each column of numbers, and for each branch where there is a column `branch`.

    A branch without any number in a column is no series. An empty cell or `NA` is a missing value. Unless `metrics` say
    what is read, columns that are no series though their values may be meant as numbers, such as `16 cores`, are named.

    Raises:
        InputError: there is no such file, no column `time`, no numbers, or a time or number that cannot be read.
    """
    read = _rows(path)
    rows = [row for _, row in read]
    columns = list(rows[0]) if rows else []
    if TIME not in columns:
        raise _refusal(path, f"expected a column `{TIME}`, found {listed(columns)}", line=1)
    numeric = [name for name in columns if name not in _NO_METRICS and _is_numeric(rows, name)]
    names = list(metrics) or numeric
    if unknown := [name for name in names if name not in columns or name in _NO_METRICS]:
        message = f"unknown column of numbers `{unknown[0]}`; expected one of {listed(numeric)}"
        raise _refusal(path, message, line=1)
    if not names:
        raise _refusal(path, "expected a column of numbers, found none", line=1)
    ordered = sorted(read, key=lambda each: _time(path, each[1][TIME], line=each[0]))
    branches: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for line, row in ordered:
        branches.setdefault(row.get(BRANCH, ""), []).append((line, row))
    every = [
        Series(
            name=" · ".join(part for part in (printable(path.stem), branch) if part),
            metric=metric,
            unit="",
            better=None,
            points=tuple(_point(path, row, metric=metric, line=line) for line, row in own if _has(row, metric)),
            newest=_newest([row for _, row in own], metric),
        )
        for metric in names
        for branch, own in branches.items()
    ]
    others = () if metrics else [name for name in columns if name not in (*_NO_METRICS, *names)]
    file = printable(path.name)
    left_out = {
        f"column {name} of {file}": f"`{value}` is text; if it is a metric, --metric {name} says what to change"
        for name in others
        if (value := _like_numbers(rows, name))
    }
    return Runs(series=tuple(series for series in every if series.points), left_out=left_out)


def _like_numbers(rows: Sequence[dict[str, str]], name: str) -> str:
    """A value of a column whose values may all be meant as numbers; empty for others, and where all are one text."""
    values = [row[name] for row in rows if _has(row, name)]
    return values[0] if len(set(values)) > 1 and all(map(_UNREAD.fullmatch, values)) else ""


def _newest(rows: Sequence[dict[str, str]], metric: str) -> str:
    """The name of the last row's run; with its time where it has no value, but an earlier row of that name has."""
    name = _name(rows[-1])
    others = {_name(row) for row in rows if _has(row, metric)}
    return name if _has(rows[-1], metric) or name not in others else f"{name} ({rows[-1][TIME]})"


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Rows as texts by column, each with the number of its line."""
    try:
        text = foreign.read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(path, f"cannot read the file: {error}", line=0) from error
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:_SNIFFED], delimiters=_DELIMITERS)
    except csv.Error:
        dialect = csv.excel
    reader = csv.DictReader(text.splitlines(), delimiter=dialect.delimiter)
    rows = []
    try:
        names = [str(name).strip() for name in reader.fieldnames or []]
        if twice := [name for name, times in Counter(names).items() if name and times > 1]:
            raise _refusal(path, f"expected each column once, found `{twice[0]}` twice", line=1)
        for row in reader:
            if None in row or None in row.values():
                raise _refusal(path, f"expected {len(names)} fields", line=reader.line_num)
            rows.append((reader.line_num, {str(name).strip(): str(value).strip() for name, value in row.items()}))
    except csv.Error as error:
        raise _refusal(path, f"not a table: {error}", line=reader.line_num) from error
    if names and not rows:
        raise _refusal(path, "expected rows below the names of the columns, found none", line=1)
    return rows


def _is_numeric(rows: Sequence[dict[str, str]], name: str) -> bool:
    """By its first value, or by most, or half with the first: the others are mistakes. Commits look like numbers, too.

    Spellings that are not read count, or a metric would be left out without a word; not where all values are one text,
    nor units where values repeat, which says what ran, such as `16 GB`. Rounded metrics repeat, too: a comma counts.
    """
    values = [row[name] for row in rows if _has(row, name)]
    plain = [math.isfinite(_number(value)) for value in values]
    if any(plain[:1]):
        return True
    if not any(plain) and len(values) > 1 and len(set(values)) == 1:
        return False
    units = 2 * len(set(values)) > len(values)
    like = [known or _is_unread(value, units=units) for known, value in zip(plain, values, strict=True)]
    return 2 * sum(like) + any(like[:1]) > len(like)


def _is_unread(text: str, *, units: bool) -> bool:
    """Whether it is a number that is not read; with a unit only if `units`, and if it is a known one."""
    like = _UNREAD.fullmatch(text)
    return like is not None and (not like["unit"] or (units and _UNIT.fullmatch(like["unit"]) is not None))


def _has(row: dict[str, str], name: str) -> bool:
    return row[name] not in ABSENT


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _point(path: Path, row: dict[str, str], *, metric: str, line: int) -> SeriesPoint:
    value = _number(row[metric])
    if not math.isfinite(value):
        text = row[metric]
        like = _UNREAD.fullmatch(text)
        suggestion = "write it without the unit" if like and like["unit"] else PLAIN.suggestion(text)
        advice = f" ({suggestion})" if suggestion else ""
        raise _refusal(path, f"{metric}: expected a number, found `{text}`{advice}", line=line)
    return SeriesPoint(run=_name(row), time=row[TIME], estimate=value)


def _name(row: dict[str, str]) -> str:
    return next((row[name] for name in NAMES if row.get(name)), row[TIME])


def _time(path: Path, text: str, *, line: int) -> float:
    """Seconds since 1970: ISO 8601, Otava's `2024.01.01 3:00:00 +0100`, or the number itself. No zone means UTC."""
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if math.isfinite(seconds):
            return seconds
    for pattern in (None, *_TIMES):
        try:
            instant = datetime.strptime(text, pattern) if pattern else datetime.fromisoformat(text)  # noqa: DTZ007
        except ValueError:
            continue
        with contextlib.suppress(OverflowError):  # a zone can lead out of all years
            return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
    raise _refusal(path, f"time: expected a time such as `2024-01-31 12:00:00 +0100`, found `{text}`", line=line)


def _refusal(path: Path, message: str, *, line: int) -> InputError:
    problem = Problem(message=message, file=str(path), line=line, column=1 if line else 0)
    return InputError(
        [problem],
        hint="give a column `time`, columns that name the run, such as `commit`, and columns of numbers such as "
        "1000.25; --metric names the columns to read",
    )
