"""The table mailing lists know: conditions by conditions, both means in a cell, the difference's interval below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairtrial.report.tables import MetricTable, Row
from fairtrial.report.text.columns import WIDTH

SEVERAL: Final = 2


def grid(table: MetricTable, *, factors: Sequence[str], arm: str) -> list[str]:
    """Lines of the grid of one arm against the baseline.

    Rows are the first factors' levels, columns the last one's; a single factor gives rows and one column. Empty if
    there is no condition, or if the grid is too wide to be read: the tables beside it say the same.
    """
    rows = [row for row in table.rows if row.arm.arm == arm]
    if not factors or not rows:
        return []
    down, across = (factors[:-1], factors[-1]) if len(factors) >= SEVERAL else (factors, None)
    header = ["", *dict.fromkeys(_column(row, across) for row in rows)]
    labels = list(dict.fromkeys(_label(row, down) for row in rows))
    cells = {(_label(row, down), _column(row, across)): _cell(table, row) for row in rows}
    body = [[(label, ""), *(cells.get((label, column), ("", "")) for column in header[1:])] for label in labels]
    widths = [
        max(len(text) for text in (header[index], *(part for line in body for part in line[index])))
        for index in range(len(header))
    ]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    if len(rule) > WIDTH:
        return []
    lines = [rule, _line(header, widths), rule]
    for line in body:
        lines += [_line([part[half] for part in line], widths) for half in (0, 1)] + [rule]
    return lines


def _column(row: Row, factor: str | None) -> str:
    return f"{row.baseline.arm} / {row.arm.arm}" if factor is None else f"{factor} {row.levels[factor]}"


def _label(row: Row, factors: Sequence[str]) -> str:
    return ", ".join(f"{factor} {row.levels[factor]}" for factor in factors)


def _cell(table: MetricTable, row: Row) -> tuple[str, str]:
    difference = row.comparison.difference
    means = f"{table.scale.value(row.baseline.mean)} / {table.scale.value(row.arm.mean)}"
    return means, table.scale.interval(difference.low, difference.high)


def _line(parts: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)) + " |"
