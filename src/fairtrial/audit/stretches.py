"""Stretches of time in which the data were measured, as far as files, columns and the order of rows show them.

A stretch holds at least three trials of a configuration: interleaved trials, one or two at a time, are none.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, pairwise
from typing import Final

import numpy as np

from fairtrial.audit.reading import Dataset

SMALLEST: Final = 3  # two in a row are what random order and ABBA give
SESSIONS: Final = ("session", "run", "day", "date", "batch")
TIMES: Final = ("time", "timestamp", "started", "start", "date")
LONG_PAUSE: Final = 20  # median pauses; one in a million of random ones, which are exponential, is as long
Configuration = tuple[str, ...]  # the level of every factor, in the order of the factors


@dataclass(frozen=True)
class Stretches:
    """What tells the stretches apart.

    Attributes:
        by: in words, such as `files` or `order of rows`.
        of_row: the stretch of each row, numbered from 0 in the order of time.
        configurations: those measured in two stretches or more.
    """

    by: str
    of_row: tuple[int, ...]
    configurations: tuple[Configuration, ...]


def recognise(dataset: Dataset) -> Stretches | None:
    """The first of files, columns, pauses and the order of rows that shows a configuration measured again."""
    configurations = [tuple(row[factor] for factor in dataset.description.factors) for row in dataset.rows]
    for by, labels, strict in _candidates(dataset):
        numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        of_row = tuple(numbers[label] for label in labels)
        repeats = tuple(_repeated(dataset, configurations, of_row, strict=strict))
        if repeats:
            return Stretches(by, of_row, repeats)
    return None


def _candidates(dataset: Dataset) -> Iterator[tuple[str, Sequence[Hashable], bool]]:
    """How rows may be told apart: the label of each row's stretch, and whether every configuration must fit."""
    described = dataset.description
    taken = {*described.factors, *described.metrics, described.block}
    columns = [column for column in (dataset.rows[0] if dataset.rows else {}) if column not in taken]
    if len(set(dataset.files)) > 1:
        yield "files", dataset.files, False
    for column in columns:
        if column.lower() in SESSIONS:
            yield f"column `{column}`", [row[column] for row in dataset.rows], False
    order: list[int] = []
    for column in columns:
        times = _times([row[column] for row in dataset.rows]) if column.lower() in TIMES else None
        if times is not None:
            yield f"pauses in `{column}`", _sessions(times), False
            if len(set(times)) == len(times):
                order = sorted(range(len(times)), key=times.__getitem__)
    by = "order of times" if order else "order of rows"
    order = order or list(range(len(dataset.rows)))
    if by == "order of times" or not _is_sorted(dataset):
        yield from ((by, labels, True) for labels in _runs(dataset, order))


def _repeated(
    dataset: Dataset, configurations: Sequence[Configuration], of_row: Sequence[int], *, strict: bool
) -> Iterator[Configuration]:
    """Configurations with several stretches of enough trials, fewer stretches than trials in each, nothing changed."""
    rows: dict[Configuration, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (configuration, stretch) in enumerate(zip(configurations, of_row, strict=True)):
        rows[configuration][stretch].append(row)
    shortest = {name: min(len(every) for every in by_stretch.values()) for name, by_stretch in rows.items()}
    if strict and min(shortest.values(), default=0) < SMALLEST:
        return
    for name, by_stretch in rows.items():
        long = shortest[name] >= max(SMALLEST, len(by_stretch) + 1)
        if len(by_stretch) > 1 and long and not _changed(dataset, list(by_stretch.values())):
            yield name


def _changed(dataset: Dataset, stretches: Sequence[Sequence[int]]) -> bool:
    """Whether a column that is not described has one value in each stretch, and not the same: blocks, versions."""
    described = dataset.description
    names = {*described.factors, *described.metrics}
    for column in dataset.rows[0]:
        if column in names or column.lower() in (*SESSIONS, *TIMES):
            continue
        values = [{dataset.rows[row][column] for row in rows} for rows in stretches]
        if all(len(each) == 1 for each in values) and len(set().union(*values)) > 1:
            return True
    return False


def _runs(dataset: Dataset, order: Sequence[int]) -> Iterator[list[int]]:
    """Runs of rows with equal levels of all factors, then of fewer: inside a cell, arms may be interleaved."""
    factors = list(dataset.description.factors)
    for size in range(len(factors), 0, -1):
        for chosen in combinations(factors, size):
            keys = [tuple(dataset.rows[row][factor] for factor in chosen) for row in order]
            labels = [0] * len(order)
            for (earlier, row), (before, after) in zip(pairwise(order), pairwise(keys), strict=True):
                labels[row] = labels[earlier] + (before != after)
            yield labels


def _is_sorted(dataset: Dataset) -> bool:
    """Whether a metric ascends or descends over all rows: then their order is not that of time."""
    for metric in dataset.description.metrics:
        steps = np.diff([float(row[metric]) for row in dataset.rows])
        if steps.any() and ((steps >= 0).all() or (steps <= 0).all()):
            return True
    return False


def _times(texts: Sequence[str]) -> list[float] | None:
    """Seconds, of numbers or of ISO 8601; None if any text is neither."""
    for read in (float, lambda text: datetime.fromisoformat(text).timestamp()):
        with contextlib.suppress(ValueError):
            times = [float(read(text)) for text in texts]
            return times if all(math.isfinite(each) for each in times) else None
    return None


def _sessions(times: Sequence[float]) -> list[int]:
    """The number of long pauses before each time."""
    order = sorted(range(len(times)), key=times.__getitem__)
    pauses = np.diff([times[row] for row in order])
    long = pauses > LONG_PAUSE * float(np.median(pauses)) if len(pauses) else pauses > 0
    sessions = [0] * len(times)
    for row, number in zip(order[1:], np.cumsum(long).tolist(), strict=True):
        sessions[row] = int(number)
    return sessions
