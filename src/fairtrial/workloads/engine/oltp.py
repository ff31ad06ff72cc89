"""`oltp`: the OLTP family by the native load engine, with the tables and statements of sysbench 1.0.20."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from fairtrial.metrics import consistency, latency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import distributions, oltp_scalars
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine.distributions import Distribution
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION = 1  # part of the key of prepared data: raise it when the loader writes other data
LOAD_ROWS_PER_S = 500.0  # a hung load ends some day; the slowest disk seen loads ten times as fast
LOAD_GRACE_S = 600.0
CHECK_S = 3600.0
CHECKED_EACH_TRIAL_ROWS = 1_000_000  # above, one check per cell: a check reads all data
GUESSED_PER_S = 500.0  # to estimate a drive by count before anything was measured
BYTES_PER_ROW = 260  # 188 of values with InnoDB's header, pages fifteen sixteenths full, and the index on k
MOST_TABLES: Final = 10_000
MOST_ROWS: Final = 2**31 - 1  # of a table: keys are integers of SQL
OWN = ("profile", "tables", "table_size", "protocol", "skip_transactions", "pipelining")
MIX = (
    "point_selects",
    "simple_ranges",
    "sum_ranges",
    "order_ranges",
    "distinct_ranges",
    "range_size",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
    "random_points",
    "random_ranges",
    "random_range_delta",
)

SEVERAL_STATEMENTS = ("read_only", "read_write", "write_only")

Profile = Literal[
    "point_select",
    "read_only",
    "read_write",
    "write_only",
    "update_index",
    "update_non_index",
    "insert",
    "delete",
    "bulk_insert",
    "select_random_points",
    "select_random_ranges",
]


def _statements(default: int, of: str) -> Any:
    return Field(default, ge=0, le=10_000, description=f"{of} per transaction of `read_only`, `read_write`, …")


class OltpParameters(native.DriveParameters):
    """One profile of the OLTP family: sysbench's script of the same name, on tables either tool can use."""

    profile: Profile = Field("read_write", description="What a transaction does.")
    tables: int = Field(1, ge=1, le=MOST_TABLES, description="Number of tables.")
    table_size: int = Field(10_000, ge=1, le=MOST_ROWS, description="Rows of each table: about 250 bytes of data each.")
    distribution: Distribution = Field("special", description="How keys are drawn; sysbench's default is `special`.")
    iterations: int = Field(12, ge=1, le=1000, description="Uniform draws behind one of `gaussian` and `special`.")
    hot_percent: int = Field(1, ge=1, le=100, description="Size of the hot part of `special`, percent of the keys.")
    hot_draws_percent: int = Field(75, ge=0, lt=100, description="Draws that go to it, percent.")
    pareto_h: float = Field(0.2, gt=0, lt=1, description="`pareto`: this share of the keys gets the rest of the draws.")
    zipfian_exponent: float = Field(0.8, ge=0, description="`zipfian`: how steeply frequency falls with rank.")
    data_distribution: Distribution = Field(
        "special", description="How the indexed column was filled, with sysbench's parameters; part of the data."
    )
    protocol: Literal["prepared", "text"] = Field(
        "prepared", description="Statements prepared once per connection, or sent as text each time."
    )
    skip_transactions: bool = Field(default=False, description="Leave `BEGIN` and `COMMIT` out.")
    pipelining: bool = Field(
        default=False, description=native.PIPELINING.format(what="a transaction's prepared statements")
    )
    point_selects: int = _statements(10, "Rows read by key")
    simple_ranges: int = _statements(1, "Ranges read")
    sum_ranges: int = _statements(1, "Ranges summed")
    order_ranges: int = _statements(1, "Ranges read in order")
    distinct_ranges: int = _statements(1, "Ranges read in order without repetitions")
    index_updates: int = _statements(1, "Updates of the indexed column")
    non_index_updates: int = _statements(1, "Updates of a column without an index")
    delete_inserts: int = _statements(1, "Deletions followed by an insertion of the same key")
    range_size: int = Field(100, ge=1, description="Rows of a range.")
    random_points: int = Field(10, ge=1, le=10_000, description="Values in a statement of `select_random_points`.")
    random_ranges: int = Field(10, ge=1, le=10_000, description="Ranges in a statement of `select_random_ranges`.")
    random_range_delta: int = Field(5, ge=0, description="From such a range's first value to its last.")

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.profile.startswith("select_random") and self.tables != 1:
            raise ValueError(f"`{self.profile}` has one table")
        if self.profile == "bulk_insert" and self.virtual_users > self.tables:
            raise ValueError("`bulk_insert` needs as many `tables` as `virtual_users`")
        return self

    @model_validator(mode="after")
    def _something_to_pipeline(self) -> Self:
        if not self.pipelining:
            return self
        if self.protocol == "text":
            raise ValueError("`pipelining` is of prepared statements: leave `protocol: text` out")
        repeated = {"update_index": self.index_updates, "update_non_index": self.non_index_updates}
        if self.profile not in SEVERAL_STATEMENTS and repeated.get(self.profile, 1) < 2:  # noqa: PLR2004
            raise ValueError(f"a transaction of `{self.profile}` has one statement: there is nothing for `pipelining`")
        return self


def _definitions(parameters: OltpParameters) -> Mapping[str, MetricDefinition]:
    return {**oltp_scalars.DEFINITIONS, **latency.definitions(), **parameters.loop_metrics()}


def _rows(parameters: Mapping[str, Any]) -> int:
    return int(parameters["tables"] * parameters["table_size"])


KIND = Kind(
    name="oltp",
    summary="The OLTP family, compatible with sysbench, by the native load engine.",
    parameters=TypeAdapter(OltpParameters),
    metrics=_definitions,
    throughput="throughput_tps",
    example={"duration": "60s"},
    duration_s=lambda parameters: native.duration_s(parameters, guessed_per_s=GUESSED_PER_S),
    disk_bytes=lambda parameters: _rows(parameters) * BYTES_PER_ROW,
    systems=frozenset({"mariadb", "mysql", "postgres", "sqlite"}),
)


def data(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Layout, scale, seed and version of the loader."""
    return {
        "workload": "oltp",
        "layout": _layout(parameters),
        "tables": parameters["tables"],
        "table_size": parameters["table_size"],
        "distribution": parameters["data_distribution"],
        "seed": parameters["data_seed"],
        "loader_version": LOADER_VERSION,
    }


def load(
    place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Loads the tables `sbtest1`, `sbtest2` and so on."""
    task = {
        "endpoint": endpoint,
        "layout": _layout(parameters),
        "tables": parameters["tables"],
        "table_size": parameters["table_size"],
        "distribution": distributions.wire(
            parameters["data_distribution"], OltpParameters.model_construct().model_dump()
        ),
        "seed": parameters["data_seed"],
        "threads": parameters["load_threads"],
    }
    limit = LOAD_GRACE_S + _rows(parameters) / LOAD_ROWS_PER_S
    result = place.native("oltp-load", task, timeout_s=limit, on_progress=on_progress)
    return Loaded(content_sha256=result["content_sha256"], rows=result["rows"])


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Runs the profile; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory."""
    own = {
        **{name: parameters[name] for name in OWN},
        "distribution": distributions.wire(parameters["distribution"], parameters),
        "mix": {name: parameters[name] for name in MIX},
    }
    return native.run(place, "oltp-drive", parameters, drive=drive, own=own)


def _layout(parameters: Mapping[str, Any]) -> str:
    return "bulk" if parameters["profile"] == "bulk_insert" else "rows"


def checks_after(parameters: Mapping[str, Any]) -> str:
    """A check reads all data, so large scales are checked once per cell; bulk inserts leave nothing to check."""
    if parameters["profile"] == "bulk_insert":
        return "never"
    return "every_trial" if _rows(parameters) <= CHECKED_EACH_TRIAL_ROWS else "once_per_cell"


def check(place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any]) -> list[Check]:
    """What every profile leaves true of its tables."""
    asked = {"endpoint": endpoint, **{name: parameters[name] for name in ("profile", "tables", "table_size")}}
    return native.checks(place.native("oltp-check", asked, timeout_s=CHECK_S))


def scalars(directory: Path, parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, errors and latency from `result.json` and `latency.hlog`."""
    own = oltp_scalars.compute(directory, window=window, parameters=parameters)
    return {**own, **latency.compute(directory, by_type=False)}


def contradictions(directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Where the engine's files disagree: each counts all transactions."""
    return consistency.contradictions(directory)
