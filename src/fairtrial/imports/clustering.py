"""Samples of one trial as one row: the rows of an arm, cell and block that share a cluster, averaged.

Owns the averages and what they leave out. It must not know how columns are named by a user, or how trials are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from fairtrial.analyse.models import Doubt

# Columns of ours; the dot keeps clear of the user's.
CLUSTER: Final = "·cluster"
POSITION: Final = "·position"  # in time order, from 0
ROW: Final = "·row"  # in the order of the files


def averaged(frame: pl.DataFrame, *, values: Sequence[str], by: Sequence[str]) -> pl.DataFrame:
    """One row per cluster, where its first row stood, numbered anew; a value that no row of it has stays NaN.

    Means are geometric where all values of the metric in the cell are positive, as comparisons then are of logarithms.

    The frame has names as text, then `CLUSTER`, `ROW`, `POSITION` and values (NaN where there is none), in time order.
    """
    keys = frame.columns[: frame.columns.index(ROW)]
    positive = {name: (pl.col(name).is_nan() | (pl.col(name) > 0)).all() for name in values}
    clusters = frame.with_columns(
        (each.over(list(by)) if by else each).alias(_flag(name)) for name, each in positive.items()
    )
    means = clusters.group_by(keys, maintain_order=True).agg(
        pl.col(ROW).first(), pl.col(POSITION).first(), *(_mean(name) for name in values)
    )
    return means.drop(CLUSTER).with_columns(pl.int_range(pl.len()).alias(POSITION))


def doubts(frame: pl.DataFrame, *, values: Sequence[str]) -> Iterator[Doubt]:
    """Says how many rows averages leave out. It counts; a cluster without any is a missing trial."""
    keys = frame.columns[: frame.columns.index(ROW)]
    for name in values:
        without = frame.with_columns(pl.col(name).is_nan().all().over(keys).alias(_flag(name)))
        count = without.filter(pl.col(name).is_nan() & ~pl.col(_flag(name))).height
        if count:
            yield Doubt(
                code="missing",
                message=f"{count} of {frame.height} rows have no finite value and are left out of their clusters",
                advice="check those rows: the reason for a missing value may depend on the arm",
                metric=name,
            )


def _flag(name: str) -> str:
    return f"·of {name}"


def _mean(name: str) -> pl.Expr:
    """Of what there is. Equal values keep theirs to the last digit: a constant must not vary by rounding."""
    there = pl.col(name).fill_nan(None).drop_nulls()
    geometric = pl.when(pl.col(_flag(name)).first()).then(there.log().mean().exp()).otherwise(there.mean())
    mean = pl.when(there.min() == there.max()).then(there.min()).otherwise(geometric)
    return mean.fill_null(float("nan")).alias(name)
