"""Options in effect that differ between levels: what was asked, and what another build or default brought with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from fairtrial.record.models import TrialRecord
from fairtrial.report import numbers

VARIES: Final = "varies"  # with other factors
# Every trial has a directory of its own (`run.workspace.work_directory`), which stands in sockets and data directories.
# Looked for from a word's first slash: from each one, it would take the square of their number.
OWN_DIRECTORY: Final = re.compile(r"(?<!\S)([^\s/]*)/\S*/work/[0-9a-f]{12}(?=/|$)")


Cell = tuple[tuple[str, str], ...]  # levels of the other factors
Row = tuple[str, dict[str, str]]


def apart(trials: Iterable[TrialRecord], *, contrast: str, levels: Sequence[str]) -> tuple[Row, ...]:
    """Options whose values differ between levels under otherwise equal conditions.

    Left out are options that differ between trials of one level and condition: names, times, what chance decides.

    Args:
        trials: of a run.
        contrast: the factor that is compared.
        levels: its levels.

    Returns:
        Name and value by level, `varies` where a level's value depends on other factors; in order of names, those that
        some level has no value of last.
    """
    measured: set[tuple[str, Cell]] = set()
    by_name: dict[str, dict[tuple[str, Cell], set[str]]] = {}
    for trial in trials:
        cell = tuple(sorted((factor, value) for factor, value in trial.levels.items() if factor != contrast))
        key = trial.levels[contrast], cell
        measured.add(key)
        for name, value in trial.options.items():
            by_name.setdefault(name, {}).setdefault(key, set()).add(OWN_DIRECTORY.sub(r"\1TRIAL", value))
    rows = []
    for name, values in sorted(by_name.items()):
        if any(len(different) > 1 for different in values.values()):
            continue
        by_cell: dict[Cell, set[str]] = {}
        by_level: dict[str, set[str]] = {}
        for level, cell in measured:
            value = next(iter(values.get((level, cell), (numbers.ABSENT,))))
            by_cell.setdefault(cell, set()).add(value)
            by_level.setdefault(level, set()).add(value)
        if any(len(different) > 1 for different in by_cell.values()):
            rows.append((name, {level: _one(by_level.get(level, set())) for level in levels}))
    return tuple(sorted(rows, key=lambda row: numbers.ABSENT in row[1].values()))


def _one(values: set[str]) -> str:
    """A level's value; one that was never measured has none."""
    return VARIES if len(values) > 1 else next(iter(values), numbers.ABSENT)
