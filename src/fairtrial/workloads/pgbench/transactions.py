"""pgbench's log of transactions as a table on the place's clock, and what our own files say of it.

pgbench reads the monotonic clock throughout; its log adds one difference from the time of day, taken as it starts. A
look at both clocks just before takes that off again. Source: pgbench.c of 15, `doLog`, `epoch_shift`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from fairtrial.errors import PlaceError
from fairtrial.workloads.latency_log import Line, written
from fairtrial.workloads.pgbench.parameters import PgbenchParameters, limit_us

FILE: Final = "transactions.parquet"
NANOSECONDS_PER_US: Final = 1000
MICROSECONDS_PER_S: Final = 1_000_000
SKIPPED: Final = "skipped"
GIVEN_UP: Final = ("serialization", "deadlock")
SCHEMA: Final = {
    "time_us": pl.Int64,
    "client": pl.Int32,
    "script": pl.Int16,
    "outcome": pl.String,
    "latency_us": pl.Int64,
    "lag_us": pl.Int64,
    "retries": pl.Int32,
}
_CLASS_BITS: Final = 10  # a class of three digits is a 1,024th of its power of two wide, or less (HdrHistogram)
_HALF: Final = 1 << 16  # a square is taken in parts of so many, whose sums stay within 64 bits
_NEVER_US: Final = 1 << 62
_COMMENT: Final = "{what} of pgbench's transactions, nanoseconds, from whole microseconds"


@dataclass(frozen=True)
class Layout:
    """Which columns a log has, and what its numbers mean.

    Attributes:
        types: of scripts, in pgbench's order.
        is_open: transactions have times at which they should begin.
        tries_again: their attempts are counted.
        limit_us: of latencies; None without one.
        interval_ns: width of the timeline's.
    """

    types: Sequence[str]
    is_open: bool
    tries_again: bool
    limit_us: int | None
    interval_ns: int

    @property
    def columns(self) -> list[str]:
        """Of a line of the log."""
        lag, retries = ["lag_us"] * self.is_open, ["retries"] * self.tries_again
        return ["client", "number", "latency", "script", "time_s", "time_rest_us", *lag, *retries]

    @classmethod
    def of(cls, asked: PgbenchParameters) -> Layout:
        """What a trial's parameters say of its log."""
        return cls(
            types=asked.types,
            is_open=asked.rate is not None,
            tries_again=asked.max_tries != 1,
            limit_us=None if asked.latency_limit is None else limit_us(asked.latency_limit),
            interval_ns=round(asked.interval * 1e9),
        )


def kept(logs: Sequence[Path], into: Path, *, layout: Layout, shift_us: int) -> None:
    """Writes all threads' logs as one table.

    Args:
        logs: of each thread.
        into: the table's file.
        layout: of a line.
        shift_us: the time of day without the place's monotonic clock.

    Raises:
        PlaceError: a line is cut or damaged.
    """
    parts = [_table(path, layout=layout, shift_us=shift_us) for path in logs if path.stat().st_size]
    table = pl.concat(parts) if parts else pl.LazyFrame(schema=SCHEMA)
    try:
        table.sink_parquet(into, compression="zstd")
    except pl.exceptions.PolarsError as error:
        raise _damaged(str(error).splitlines()[0]) from error
    whole = pl.all_horizontal(pl.col("time_us", "client", "script", "retries").is_not_null())
    known = pl.col("outcome").is_in([SKIPPED, *GIVEN_UP]) | (
        pl.col("outcome").is_null() & pl.col("latency_us").is_not_null()
    ).fill_null(value=False)
    wrong = pl.scan_parquet(into).filter(~(whole & known)).head(1).collect()
    if len(wrong):
        raise _damaged(f"{wrong.row(0, named=True)}")


def _damaged(words: str) -> PlaceError:
    said = f"pgbench's log of transactions has a damaged line: {words}"
    return PlaceError(said, hint="check whether the disk of the place was full")


def _table(path: Path, *, layout: Layout, shift_us: int) -> pl.LazyFrame:
    numbers = dict.fromkeys(layout.columns, pl.Int64)
    raw = pl.scan_csv(
        path,
        separator=" ",
        has_header=False,
        new_columns=layout.columns,
        schema_overrides={**numbers, "latency": pl.String},
        quote_char=None,
    )
    done = pl.col("latency").str.contains("^[0-9]+$")
    latency = pl.when(done).then(pl.col("latency"))
    found = {
        "time_us": pl.col("time_s") * MICROSECONDS_PER_S + pl.col("time_rest_us") - shift_us,
        "client": pl.col("client"),
        "script": pl.col("script"),
        "outcome": pl.when(~done).then(pl.col("latency")),
        "latency_us": latency,
        "lag_us": pl.when(done).then(pl.col("lag_us")) if layout.is_open else pl.lit(None),
        "retries": pl.col("retries") if layout.tries_again else pl.lit(0),
    }
    return raw.select(expression.cast(SCHEMA[name]).alias(name) for name, expression in found.items())


@dataclass(frozen=True)
class Edges:
    """When the first transaction began, or should have, and the last one ended, on the place's clock."""

    first_ns: int
    last_ns: int


def edges(path: Path) -> Edges | None:
    """None of a log without a transaction that ended well."""
    began = pl.col("time_us") - pl.col("latency_us")
    found = pl.scan_parquet(path).select(first=began.min(), last=pl.col("time_us").max()).collect().row(0, named=True)
    if found["first"] is None:
        return None
    return Edges(found["first"] * NANOSECONDS_PER_US, found["last"] * NANOSECONDS_PER_US)


@dataclass(frozen=True)
class Counted:
    """What came of transactions, by script, interval and outcome; latencies and lags by the histogram's classes.

    Attributes:
        latencies: `script`, `interval`, `outcome`, and what `tallied` gives.
        lags: `script`, and the same.
        starts_ns: of intervals.
        end_ns: of the last.
    """

    layout: Layout
    latencies: pl.DataFrame
    lags: pl.DataFrame
    starts_ns: Sequence[int]
    end_ns: int

    @classmethod
    def of(cls, path: Path, *, layout: Layout, window: tuple[int, int]) -> Counted:
        """Counts a table of transactions; a rest of less than half an interval belongs to the last one."""
        start_ns, end_ns = window
        many = max(1, round((end_ns - start_ns) / layout.interval_ns))
        after_ns = pl.col("time_us") * NANOSECONDS_PER_US - start_ns
        interval = (after_ns // layout.interval_ns).clip(0, many - 1).alias("interval")
        table = pl.scan_parquet(path)
        late = (pl.col("latency_us") > (_NEVER_US if layout.limit_us is None else layout.limit_us)).sum()
        more = [pl.col("retries").cast(pl.Int64).sum(), late.cast(pl.Int64).alias("late")]
        by = ["script", "interval", "outcome"]
        return cls(
            layout=layout,
            latencies=tallied(table.with_columns(interval), "latency_us", by=by, more=more),
            lags=tallied(table.filter(pl.col("lag_us").is_not_null()), "lag_us", by=["script"]),
            starts_ns=[start_ns + number * layout.interval_ns for number in range(many)],
            end_ns=end_ns,
        )

    @property
    def done(self) -> pl.DataFrame:
        """Those that ended well."""
        return self.latencies.filter(pl.col("outcome").is_null())

    def result(self) -> dict[str, Any]:
        """The part of `result.json` that the transactions give, in the shape of the load engine's."""
        scripts = range(len(self.layout.types))
        outcomes = {kind: self._outcome(script) for kind, script in zip(self.layout.types, scripts, strict=True)}
        kinds = {kind: self._n(self.latencies, kind) for kind in GIVEN_UP}
        kinds["retried"] = int(self.latencies["retries"].sum())
        late = None if self.layout.limit_us is None else int(self.done["late"].sum())
        return {
            "transactions": outcomes,
            "errors": [{"kind": kind, "count": count} for kind, count in kinds.items() if count],
            "skipped": self._n(self.latencies, SKIPPED),
            "late": late,
            "latency_us": sums(self.done),
            "lag_us": sums(self.lags) if self.layout.is_open else None,
        }

    def _outcome(self, script: int) -> dict[str, Any]:
        own = self.latencies.filter(pl.col("script") == script)
        return {
            "committed": int(own.filter(pl.col("outcome").is_null())["n"].sum()),
            "rolled_back": 0,
            "failed": sum(self._n(own, kind) for kind in GIVEN_UP),
            "retried": int(own["retries"].sum()),
            "skipped": self._n(own, SKIPPED),
            "latency_us": sums(own.filter(pl.col("outcome").is_null())),
        }

    def _n(self, table: pl.DataFrame, outcome: str) -> int:
        return int(table.filter(pl.col("outcome") == outcome)["n"].sum())

    def latency_log(self) -> str:
        """`latency.hlog`: a line for each interval and script."""
        ends_ns = [*self.starts_ns[1:], self.end_ns]
        groups = self.done.partition_by("interval", "script", as_dict=True, maintain_order=True)
        lines = (
            Line(
                tag=self.layout.types[script],
                start_ns=self.starts_ns[interval],
                end_ns=ends_ns[interval],
                counts=_bins(rows),
            )
            for (interval, script), rows in sorted(groups.items(), key=lambda group: group[0])
        )
        return written(_COMMENT.format(what="Latencies"), lines)

    def lateness_log(self) -> str:
        """`lateness.hlog`: a line for each script, of the window."""
        groups = self.lags.partition_by("script", as_dict=True, maintain_order=True)
        lines = [
            Line(
                tag=self.layout.types[script],
                start_ns=self.starts_ns[0],
                end_ns=self.end_ns,
                counts=_bins(rows),
            )
            for (script,), rows in sorted(groups.items(), key=lambda group: group[0])
        ]
        return written(_COMMENT.format(what="Schedule lags"), lines)

    def timeline(self) -> bytes:
        """`timeline.parquet`: how transactions ended in each interval."""
        columns: dict[str, pl.Series] = {}
        for script, kind in enumerate(self.layout.types):
            own = self.latencies.filter(pl.col("script") == script)
            for name, counted in {
                "committed": own.filter(pl.col("outcome").is_null()).select("interval", count="n"),
                "rolled_back": own.clear().select("interval", count="n"),
                "failed": own.filter(pl.col("outcome").is_in(GIVEN_UP)).select("interval", count="n"),
                "retried": own.select("interval", count="retries"),
            }.items():
                columns[f"{kind}_{name}"] = self._by_interval(counted)
        frame = pl.DataFrame(
            {
                "time_ns": pl.Series(self.starts_ns, dtype=pl.Int64),
                "measured": pl.Series([True] * len(self.starts_ns), dtype=pl.Boolean),
                **columns,
            }
        )
        content = io.BytesIO()
        frame.write_parquet(content)
        return content.getvalue()

    def _by_interval(self, counted: pl.DataFrame) -> pl.Series:
        found = dict(counted.group_by("interval").agg(pl.col("count").sum()).iter_rows())
        return pl.Series([found.get(number, 0) for number in range(len(self.starts_ns))], dtype=pl.UInt64)


def tallied(table: pl.LazyFrame, column: str, *, by: Sequence[str], more: Sequence[pl.Expr] = ()) -> pl.DataFrame:
    """Numbers of microseconds by the class of the histogram that they fall into, with exact sums.

    Args:
        table: a row for each number; nulls are a class of their own.
        column: of the numbers.
        by: other columns that tell groups apart.
        more: other sums.

    Returns:
        `by`, `class_ns` (the class's lowest), `n`, `sum`, `max`, the squares in three parts (see `sums`), and `more`.
    """
    number = pl.col(column)
    ns = number * NANOSECONDS_PER_US
    width = pl.lit(2, dtype=pl.Int64).pow((ns.clip(1).log(2).floor().cast(pl.Int64) - _CLASS_BITS).clip(0))
    high, low = number // _HALF, number % _HALF
    sums_of = {"sum": number, "high": high * high, "middle": high * low, "low": low * low}
    counted = table.group_by(*by, (ns // width * width).alias("class_ns")).agg(
        pl.len().cast(pl.Int64).alias("n"),
        number.max().alias("max"),
        *(expression.sum().alias(name) for name, expression in sums_of.items()),
        *more,
    )
    return counted.collect(engine="streaming").sort(*by, "class_ns")


def sums(table: pl.DataFrame) -> dict[str, int]:
    """Number, sum, sum of squares and largest of what was tallied, exact: squares of seconds leave 64 bits."""
    found = table.select("n", "sum", "high", "middle", "low").sum().row(0, named=True)
    squares = found["high"] * _HALF * _HALF + 2 * found["middle"] * _HALF + found["low"]
    return {"n": found["n"], "sum": found["sum"], "squares": squares, "max": table["max"].max() or 0}


def _bins(rows: pl.DataFrame) -> list[tuple[int, int]]:
    merged = rows.group_by("class_ns").agg(pl.col("n").sum()).sort("class_ns")
    return list(merged.iter_rows())
