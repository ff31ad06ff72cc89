"""Raw data as tables: raw_data.csv for machines, the page's for eyes. One row per trial, whatever became of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import polars as pl

from fairtrial.imports import STOPPED_BY
from fairtrial.metrics import frames
from fairtrial.record import Record
from fairtrial.report.scene import Scene
from fairtrial.words import csv_cell

LEADING: Final = ("id", "block", "round", "position", "seed", "started", "valid", "used", "invalid_reason")


def csv(record: Record, *, used: Collection[str] | None = None) -> str:
    """One row per trial: factors, place in the plan, validity and every scalar at full precision.

    `used` are the ids of the trials that the report's contrast uses; without it, those that the plan's arm does.
    A rule that could stop the run is a column, as `fairtrial analyse` reads it: its p values do not allow for looks.
    """
    frame, factors, where = _trials(record, used=used)
    scalars = sorted(set(frame.columns) - {*frames.IDENTITY, *factors, *where})
    design = record.plan.design
    rule = pl.lit(f"{design.stop}, looks from {design.min_blocks} to {design.blocks} blocks").alias(STOPPED_BY)
    stopped = [] if design.stop == "fixed" or STOPPED_BY in frame.columns else [rule]
    table = frame.select(*factors, *LEADING, *where, *stopped, *scalars)
    text: str = table.select(_cells(table[name]).alias(csv_cell(name)) for name in table.columns).write_csv()
    return text


def _cells(column: pl.Series) -> pl.Series:
    """Text as no spreadsheet computes it; numbers stay numbers."""
    if column.dtype != pl.String:
        return column
    return pl.Series([None if text is None else csv_cell(text) for text in column], dtype=pl.String)


def _trials(record: Record, *, used: Collection[str] | None) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Every trial, the columns of factors, and those of the host, the layout and the boot if trials share any."""
    frame = frames.trials(record)
    if used is not None:
        frame = frame.with_columns(used=pl.col("id").is_in(list(used)))
    factors = [frames.factor_column(factor) for factor in record.plan.factors]
    where = [name for name in ("host", "layout") if any(getattr(each, name) for each in record.trials)]
    for name in ("boot", "repeat"):
        if record.plan.design.per_boot > 1 and name not in frame.columns:
            frame = frame.with_columns(pl.Series(name, [getattr(each.trial, name) for each in record.trials]))
            where.append(name)
    return frame, factors, where


def shown(scene: Scene) -> dict[str, Any]:
    """The page's table: factors, place in the run and the analysed metrics, as printed; `left` columns are text."""
    record = scene.record
    frame, factors, where = _trials(record, used=scene.used)
    metrics = frames.metric_columns(record)
    tables = [table for table in scene.tables if table.definition.name in metrics]
    fates = {trial.trial.id: scene.fate(trial) for trial in record.trials}
    rows = [
        {
            "used": row["used"],
            "fields": [
                row["id"],
                *(row[name] for name in (*factors, *where)),
                fates[row["id"]],
                str(row["block"]),
                str(row["position"]),
                *(table.scale.value(row[metrics[table.definition.name]]) for table in tables),
            ],
        }
        for row in frame.iter_rows(named=True)
    ]
    header = ["trial", *record.plan.factors, *where, "fate", "block", "position"]
    header += [f"{table.definition.label} ({table.scale.unit})".removesuffix(" ()") for table in tables]
    return {"header": header, "left": 2 + len(factors) + len(where), "rows": rows}
