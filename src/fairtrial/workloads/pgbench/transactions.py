"""pgbench's log of transactions as a table on the place's clock, and what our own files say of it.

pgbench reads the monotonic clock throughout; its log adds one difference from the time of day, taken as it starts. A
look at both clocks just before takes that off again. Source: pgbench.c of 15, `doLog`, `epoch_shift`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
from pydantic import BaseModel

from fairtrial.errors import PlaceError
from fairtrial.metrics import drive
from fairtrial.record.models import Window
from fairtrial.workloads import made_files
from fairtrial.workloads.made_files import HistogramLine
from fairtrial.workloads.pgbench.parameters import PgbenchParameters, limit_us

FILE: Final = "transactions.parquet"
NANOSECONDS_PER_US: Final = 1000
MICROSECONDS_PER_S: Final = 1_000_000
NANOSECONDS_PER_S: Final = 1e9
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


class Sums(BaseModel):
    """Number, sum, sum of squares and largest of whole microseconds, exact: squares of seconds leave 64 bits."""

    n: int = 0
    sum: int = 0
    squares: int = 0
    max: int = 0

    @property
    def mean(self) -> float:
        """0 of none."""
        return self.sum / self.n if self.n else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation, of the whole population; 0 of none."""
        return math.sqrt(max(0.0, self.squares / self.n - self.mean**2)) if self.n else 0.0


class ScriptOutcomes(drive.TransactionOutcomes):
    """How transactions of one script ended."""

    skipped: int
    latency_us: Sums


class PgbenchResult(made_files.ToolResult):
    """`result.json`; `late` is of trials with a limit, `lag_us` of open loops."""

    transactions: dict[str, ScriptOutcomes]  # type: ignore[assignment]  # a drive has no other kind
    skipped: int
    late: int | None
    latency_us: Sums
    lag_us: Sums | None
    connecting_ms: float = 0.0


def columns(parameters: PgbenchParameters) -> list[str]:
    """Of a line of the log."""
    lag, retries = ["lag_us"] * parameters.is_open, ["retries"] * (parameters.max_tries != 1)
    return ["client", "number", "latency", "script", "time_s", "time_rest_us", *lag, *retries]


def kept(logs: Sequence[Path], into: Path, *, parameters: PgbenchParameters, shift_us: int) -> None:
    """Writes all threads' logs as one table.

    Args:
        logs: of each thread.
        into: the table's file.
        parameters: of the workload; they say what a line has.
        shift_us: the time of day without the place's monotonic clock.

    Raises:
        PlaceError: a line is cut or damaged.
    """
    parts = [_table(path, parameters, shift_us=shift_us) for path in logs if path.stat().st_size]
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


def _table(path: Path, parameters: PgbenchParameters, *, shift_us: int) -> pl.LazyFrame:
    names = columns(parameters)
    raw = pl.scan_csv(
        path,
        separator=" ",
        has_header=False,
        new_columns=names,
        schema_overrides={**dict.fromkeys(names, pl.Int64), "latency": pl.String},
        quote_char=None,
    )
    done = pl.col("latency").str.contains("^[0-9]+$")
    expressions = {
        "time_us": pl.col("time_s") * MICROSECONDS_PER_S + pl.col("time_rest_us") - shift_us,
        "client": pl.col("client"),
        "script": pl.col("script"),
        "outcome": pl.when(~done).then(pl.col("latency")),
        "latency_us": pl.when(done).then(pl.col("latency")),
        "lag_us": pl.when(done).then(pl.col("lag_us")) if "lag_us" in names else pl.lit(None),
        "retries": pl.col("retries") if "retries" in names else pl.lit(0),
    }
    return raw.select(expression.cast(SCHEMA[name]).alias(name) for name, expression in expressions.items())


def edges(path: Path) -> Window | None:
    """When the first transaction began, or should have, and the last ended; None if none ended well."""
    began = pl.col("time_us") - pl.col("latency_us")
    first, last = pl.scan_parquet(path).select(first=began.min(), last=pl.col("time_us").max()).collect().row(0)
    if first is None:
        return None
    return Window(start_ns=first * NANOSECONDS_PER_US, end_ns=last * NANOSECONDS_PER_US)


@dataclass(frozen=True)
class TransactionHistograms:
    """What came of transactions, by script, interval and outcome; latencies and lags by the histogram's classes.

    Attributes:
        latencies: `script`, `interval`, `outcome`, and what `tallied` gives.
        lags: `script`, and the same.
        starts_ns: of intervals.
        window: from the first one's start to the last one's end.
    """

    parameters: PgbenchParameters
    latencies: pl.DataFrame
    lags: pl.DataFrame
    starts_ns: Sequence[int]
    window: Window

    @classmethod
    def of(cls, path: Path, parameters: PgbenchParameters, *, window: Window) -> TransactionHistograms:
        """Counts a table of transactions; a rest of less than half an interval belongs to the last one."""
        interval_ns = round(parameters.interval * NANOSECONDS_PER_S)
        many = max(1, round((window.end_ns - window.start_ns) / interval_ns))
        after_ns = pl.col("time_us") * NANOSECONDS_PER_US - window.start_ns
        interval = (after_ns // interval_ns).clip(0, many - 1).alias("interval")
        table = pl.scan_parquet(path)
        late = (
            pl.col("latency_us")
            > (_NEVER_US if parameters.latency_limit is None else limit_us(parameters.latency_limit))
        ).sum()
        more = [pl.col("retries").cast(pl.Int64).sum(), late.cast(pl.Int64).alias("late")]
        by = ["script", "interval", "outcome"]
        return cls(
            parameters=parameters,
            latencies=tallied(table.with_columns(interval), "latency_us", by=by, more=more),
            lags=tallied(table.filter(pl.col("lag_us").is_not_null()), "lag_us", by=["script"]),
            starts_ns=[window.start_ns + number * interval_ns for number in range(many)],
            window=window,
        )

    @property
    def done(self) -> pl.DataFrame:
        """Those that ended well."""
        return self.latencies.filter(pl.col("outcome").is_null())

    def result(self) -> PgbenchResult:
        """What the transactions give."""
        kinds = {kind: _n(self.latencies, kind) for kind in GIVEN_UP}
        kinds["retried"] = int(self.latencies["retries"].sum())
        return PgbenchResult(
            window=self.window,
            transactions={kind: self._outcomes(script) for script, kind in enumerate(self.parameters.types)},
            errors=[drive.ErrorCount(kind=kind, count=count) for kind, count in kinds.items() if count],
            skipped=_n(self.latencies, SKIPPED),
            late=None if self.parameters.latency_limit is None else int(self.done["late"].sum()),
            latency_us=sums(self.done),
            lag_us=sums(self.lags) if self.parameters.is_open else None,
        )

    def _outcomes(self, script: int) -> ScriptOutcomes:
        own = self.latencies.filter(pl.col("script") == script)
        done = sums(own.filter(pl.col("outcome").is_null()))
        return ScriptOutcomes(
            committed=done.n,
            rolled_back=0,
            failed=sum(_n(own, kind) for kind in GIVEN_UP),
            retried=int(own["retries"].sum()),
            skipped=_n(own, SKIPPED),
            latency_us=done,
        )

    def latency_log(self) -> str:
        """`latency.hlog`: a line for each interval and script."""
        groups = self.done.partition_by("interval", "script", as_dict=True)
        starts_ns, ends_ns = self.starts_ns, [*self.starts_ns[1:], self.window.end_ns]
        lines = (
            self._line(groups[interval, script], script, Window(start_ns=starts_ns[interval], end_ns=ends_ns[interval]))
            for interval, script in sorted(groups)
        )
        return made_files.latency_log(_COMMENT.format(what="Latencies"), lines)

    def lateness_log(self) -> str:
        """`lateness.hlog`: a line for each script, of the window."""
        groups = self.lags.partition_by("script", as_dict=True)
        lines = (self._line(groups[script,], script, self.window) for (script,) in sorted(groups))
        return made_files.latency_log(_COMMENT.format(what="Schedule lags"), lines)

    def _line(self, rows: pl.DataFrame, script: int, span: Window) -> HistogramLine:
        merged = rows.group_by("class_ns").agg(pl.col("n").sum()).sort("class_ns")
        kind = self.parameters.types[script]
        return HistogramLine(tag=kind, start_ns=span.start_ns, end_ns=span.end_ns, counts=list(merged.iter_rows()))

    def timeline(self) -> bytes:
        """`timeline.parquet`: how transactions ended in each interval."""
        counts = {}
        for script, kind in enumerate(self.parameters.types):
            own = self.latencies.filter(pl.col("script") == script)
            counts[kind] = {
                "committed": self._by_interval(own.filter(pl.col("outcome").is_null()), "n"),
                "failed": self._by_interval(own.filter(pl.col("outcome").is_in(GIVEN_UP)), "n"),
                "retried": self._by_interval(own, "retries"),
            }
        return made_files.timeline(self.starts_ns, counts)

    def _by_interval(self, rows: pl.DataFrame, column: str) -> list[int]:
        counts = dict(rows.group_by("interval").agg(pl.col(column).sum()).iter_rows())
        return [counts.get(number, 0) for number in range(len(self.starts_ns))]


def _n(table: pl.DataFrame, outcome: str) -> int:
    return int(table.filter(pl.col("outcome") == outcome)["n"].sum())


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


def sums(table: pl.DataFrame) -> Sums:
    """Of what was tallied."""
    row = table.select("n", "sum", "high", "middle", "low").sum().row(0, named=True)
    squares = row["high"] * _HALF * _HALF + 2 * row["middle"] * _HALF + row["low"]
    return Sums(n=row["n"], sum=row["sum"], squares=squares, max=table["max"].max() or 0)
