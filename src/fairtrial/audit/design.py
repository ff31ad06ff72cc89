"""Problems of a design that the rows of its data show: arms never interleaved, factors that changed together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from fairtrial.audit.reading import Dataset
from fairtrial.study.tree.problems import listed

MOST_LEVELS: Final = 20  # a column with more values is a measurement, not something that was set


def problems(dataset: Dataset) -> Iterator[str]:
    """In sentences; nothing without data, or factors."""
    if not dataset.rows or not dataset.description.factors:
        return
    if dataset.description.order == "rows":
        yield from _order(dataset)
    yield from _together(dataset)
    yield from _left_out(dataset)


def _order(dataset: Dataset) -> Iterator[str]:
    """The arm's levels come one after the other, in every combination of the other factors that has them."""
    arm = dataset.description.arm
    others = [factor for factor in dataset.description.factors if factor != arm]
    cells: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in dataset.rows:
        cells[tuple(row[factor] for factor in others)].append(row[arm])
    compared = [levels for levels in cells.values() if len(set(levels)) > 1 and len(levels) > len(set(levels))]
    if compared and all(len(list(groupby(levels))) == len(set(levels)) for levels in compared):
        yield (
            f"levels of {arm} come one after the other in all {len(compared)} cells, never interleaved: "
            "any change over time counts as their effect"
        )


def _together(dataset: Dataset) -> Iterator[str]:
    """Columns that took another value with each level of the arm, and only then."""
    arm = dataset.description.arm
    for column in dataset.rows[0]:
        if column == arm or column in dataset.description.metrics:
            continue
        values: dict[str, set[str]] = defaultdict(set)
        for row in dataset.rows:
            values[row[arm]].add(row[column])
        every = set().union(*values.values())
        alone = all(len(levels) == 1 for levels in values.values())
        if len(values) > 1 and alone and 1 < len(every) <= MOST_LEVELS:
            yield f"{column} changed together with {arm}: their effects cannot be separated"


def _left_out(dataset: Dataset) -> Iterator[str]:
    """Rows of levels that nobody described: a blank behind a name is enough."""
    for factor in dataset.description.factors:
        strange = Counter(row[factor] for row in dataset.rows if row[factor] not in dataset.levels(factor))
        if strange:
            names = listed(sorted(strange))
            rows = f"{strange.total()} of {len(dataset.rows)} rows"
            yield f"{rows} are left out: {factor} has {names} there, which is not among its levels in the claims file"
