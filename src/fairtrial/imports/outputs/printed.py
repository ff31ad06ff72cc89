"""Figures that a tool prints as text: found by expressions, one run per file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from fairtrial.imports.reader import ImportSource, metric, refused
from fairtrial.study.catalogue import Better, MetricDefinition

NUMBER: Final = r"([0-9]+(?:\.[0-9]*)?)"  # one way to match it: two would try every pair of lengths


class Printed(NamedTuple):
    """Where a figure stands, in an expression with one group, and what it is."""

    expression: str
    unit: str
    better: Better


def figures(text: str, table: Mapping[str, Printed]) -> dict[str, float]:
    """What is printed of a table's figures; the last of several."""
    found = {name: re.findall(each.expression, text, re.MULTILINE) for name, each in table.items()}
    return {name: float(matches[-1]) for name, matches in found.items() if matches}


def definition(name: str, printed: Printed, *, source: str) -> MetricDefinition:
    """A figure as a metric."""
    return metric(name, printed.unit, printed.better, source=source)


def one_run(source: ImportSource, expression: str, *, tool: str) -> None:
    """Refuses a file that does not hold exactly one line that every run has."""
    text = source.text.splitlines()
    lines = [number for number, line in enumerate(text, start=1) if re.search(expression, line)]
    if len(lines) != 1:
        message = f"expected one run of {tool}, found {len(lines)}"
        hint = "write every run to a file of its own: a run is a trial"
        raise refused(source, message, hint=hint, line=lines[1] if lines else len(text))


def require(source: ImportSource, row: Mapping[str, float], *names: str, hint: str) -> None:
    """Refuses an output without a figure that every complete one has."""
    missing = [name for name in names if name not in row]
    if missing:
        line = len(source.text.splitlines())
        raise refused(source, f"the output ends without {missing[0]}", hint=hint, line=line)
