"""A trial's latency distributions, added up once: what reports and notebooks read of a long run.

A log has a line per second and type; hundreds of trials of them take minutes to decode, their sums take a moment. The
run writes the sums beside the log when it commits a trial; `verify` adds the log up again.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from fairtrial.errors import RecordError
from fairtrial.metrics import latency, parquet
from fairtrial.metrics.latency import Distribution

FILE: Final = "latency-merged.parquet"
SCHEMA: Final = {"type": pl.String, "lowest_ns": pl.Int64, "highest_ns": pl.Int64, "count": pl.Int64}


def write(directory: Path) -> None:
    """Adds up `latency.hlog` in `directory` and writes `FILE` beside it; nothing without a log.

    Raises:
        RecordError: a line of the log cannot be decoded.
    """
    if not (directory / latency.FILE).exists():
        return
    content = io.BytesIO()
    frame(latency.read(directory)).write_parquet(content)
    (directory / FILE).write_bytes(content.getvalue())  # Python writes: its OSError says "disk full"


def frame(distributions: Mapping[str, Distribution]) -> pl.DataFrame:
    """One row per type and value class, `SCHEMA`'s columns; a type without observations has a row without bounds."""
    parts = []
    for kind, each in distributions.items():
        columns = {"lowest_ns": each.lowest_ns, "highest_ns": each.highest_ns, "count": each.counts}
        rows = columns if each.n else {"lowest_ns": [None], "highest_ns": [None], "count": [0]}
        parts.append(pl.DataFrame({"type": [kind] * (len(each.counts) or 1), **rows}, schema=SCHEMA))
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA)


def read(directory: Path) -> dict[str, Distribution]:
    """`latency.read`, from the sums where there are some: records of older versions have the log only.

    Raises:
        RecordError: the file is damaged.
    """
    rows = _rows(directory)
    if rows is None:
        return latency.read(directory)
    by_type = rows.partition_by("type", as_dict=True, maintain_order=True, include_key=False)
    return {str(kind): _distribution(each) for (kind,), each in by_type.items()}


def whole(directory: Path) -> Distribution | None:
    """All types of `read` together; None without any.

    Raises:
        RecordError: the file is damaged.
    """
    rows = _rows(directory)
    if rows is not None:
        return latency.merged([_distribution(rows)]) if rows.height else None
    by_type = latency.read(directory)
    return latency.merged(by_type.values()) if by_type else None


def _rows(directory: Path) -> pl.DataFrame | None:
    path = directory / FILE
    if not path.exists():
        return None
    try:
        rows = parquet.read(path).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
        if rows.filter(pl.col("count") != 0).null_count().sum_horizontal().item():
            raise ValueError("observations without a value class")  # noqa: TRY301 - the same sentence about the file
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint="restore the trial from a copy") from error
    return rows


def contradictions(directory: Path) -> list[str]:
    """Where the sums are not those of the log, a sentence per type; empty if nowhere, or without either file.

    Raises:
        RecordError: a file is damaged.
    """
    if not (directory / FILE).exists():
        return []
    stored, logged = read(directory), latency.read(directory)
    return [
        f"{FILE}: {kind} has {_said(stored.get(kind))}, {latency.FILE} adds up to {_said(logged.get(kind))}"
        for kind in dict.fromkeys([*stored, *logged])
        if not _same(stored.get(kind), logged.get(kind))
    ]


def _distribution(rows: pl.DataFrame) -> Distribution:
    """Of rows with observations."""
    used = rows.filter(pl.col("count") > 0)
    lowest, highest, counts = (used[name].to_numpy().astype(np.int64) for name in ("lowest_ns", "highest_ns", "count"))
    return Distribution(lowest_ns=lowest, highest_ns=highest, counts=counts)


def _same(one: Distribution | None, other: Distribution | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("lowest_ns", "highest_ns", "counts")
    )


def _said(distribution: Distribution | None) -> str:
    return "nothing" if distribution is None else f"{distribution.n} observations in {len(distribution.counts)} classes"
