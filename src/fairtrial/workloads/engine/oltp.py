"""`oltp`: the OLTP family by the native load engine, with the tables and statements of sysbench 1.0.20."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from fairtrial.metrics import fleet, latency
from fairtrial.protocol import generated as wire
from fairtrial.protocol import subcommands
from fairtrial.protocol.endpoints import Endpoint, database
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import distributions, oltp_scalars
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine.distributions import Distribution
from fairtrial.workloads.workload import Drive, DriveOutcome, When

# Part of the key of prepared data: raise it when the loader writes other data (2: tables of the default engine).
LOADER_VERSION = 2
LOAD_ROWS_PER_S = 500.0  # a hung load ends some day; the slowest disk seen loads ten times as fast
LOAD_GRACE_S = 600.0
CHECK_S = 3600.0
CHECKED_EACH_TRIAL_ROWS = 1_000_000  # above, one check per cell: a check reads all data
GUESSED_PER_S = 500.0  # to estimate a drive by count before anything was measured
BYTES_PER_ROW = 260  # 188 of values with InnoDB's header, pages fifteen sixteenths full, and the index on k
MOST_TABLES: Final = 10_000
MOST_ROWS: Final = 2**31 - 1  # of a table: keys are integers of SQL
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

    profile: Profile = Field("read_write", description="Profile: what a transaction does.")
    tables: int = Field(1, ge=1, le=MOST_TABLES, description="Number of tables.")
    table_size: int = Field(
        10_000, ge=1, le=MOST_ROWS, description="Number of rows in each table; a row has about 250 bytes of data."
    )
    distribution: Distribution = Field("special", description="Distribution of keys (default of sysbench: `special`).")
    iterations: int = Field(
        12, ge=1, le=1000, description="Number of uniform draws averaged into one draw of `gaussian` and `special`."
    )
    hot_percent: int = Field(1, ge=1, le=100, description="Size of the hot part of `special`, percent of the keys.")
    hot_draws_percent: int = Field(
        75, ge=0, lt=100, description="Share of draws that hit the hot part of `special`, percent."
    )
    pareto_h: float = Field(
        0.2, gt=0, lt=1, description="Shape of `pareto`: 0.2 sends 80 % of the draws to 20 % of the keys."
    )
    zipfian_exponent: float = Field(
        0.8, ge=0, description="Exponent of `zipfian`: how steeply frequency falls with rank."
    )
    data_distribution: Distribution = Field(
        "special", description="Distribution of the indexed column, with sysbench's parameters; part of the data."
    )
    protocol: Literal["prepared", "text"] = Field(
        "prepared", description="Whether statements are prepared once per connection, or sent as text each time."
    )
    skip_transactions: bool = Field(default=False, description="Whether to leave out `BEGIN` and `COMMIT`.")
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
    range_size: int = Field(100, ge=1, le=native.LARGEST, description="Number of rows in a range.")
    random_points: int = Field(
        10, ge=1, le=10_000, description="Number of values in a statement of `select_random_points`."
    )
    random_ranges: int = Field(
        10, ge=1, le=10_000, description="Number of ranges in a statement of `select_random_ranges`."
    )
    random_range_delta: int = Field(
        5, ge=0, le=native.LARGEST, description="Distance from the first value of such a range to its last."
    )

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
            raise ValueError("`pipelining` needs prepared statements: leave `protocol: text` out")
        repeated = {"update_index": self.index_updates, "update_non_index": self.non_index_updates}
        if self.profile not in SEVERAL_STATEMENTS and repeated.get(self.profile, 1) < 2:  # noqa: PLR2004
            raise ValueError(f"a transaction of `{self.profile}` has a single statement: leave `pipelining` out")
        return self

    @property
    def rows(self) -> int:
        """Of all tables."""
        return self.tables * self.table_size

    @property
    def layout(self) -> Literal["rows", "bulk"]:
        """What columns the tables have, as the loader names it."""
        return "bulk" if self.profile == "bulk_insert" else "rows"

    @property
    def mix(self) -> wire.Mix:
        """What a transaction is made of, as the engine takes it."""
        return wire.Mix(
            point_selects=self.point_selects,
            simple_ranges=self.simple_ranges,
            sum_ranges=self.sum_ranges,
            order_ranges=self.order_ranges,
            distinct_ranges=self.distinct_ranges,
            range_size=self.range_size,
            index_updates=self.index_updates,
            non_index_updates=self.non_index_updates,
            delete_inserts=self.delete_inserts,
            random_points=self.random_points,
            random_ranges=self.random_ranges,
            random_range_delta=self.random_range_delta,
        )


class Oltp(native.NativeWorkload[OltpParameters]):
    """The OLTP family by the native load generator."""

    name = "oltp"
    summary = "The OLTP family, compatible with sysbench, driven by the native load engine."
    model = OltpParameters
    throughput = "throughput_tps"
    guessed_per_s = GUESSED_PER_S

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """Throughput, errors, latency; those of an open loop or a search."""
        return {**oltp_scalars.DEFINITIONS, **latency.definitions(), **self.parameters.loop_metrics()}

    def disk_bytes(self) -> int:
        """Of all rows."""
        return self.parameters.rows * BYTES_PER_ROW

    def data(self) -> Mapping[str, object]:
        """Layout, scale, seed and version of the loader."""
        return {
            "workload": "oltp",
            "layout": self.parameters.layout,
            "tables": self.parameters.tables,
            "table_size": self.parameters.table_size,
            "distribution": self.parameters.data_distribution,
            "seed": self.parameters.data_seed,
            "loader_version": LOADER_VERSION,
        }

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> wire.Loaded:
        """Loads the tables `sbtest1`, `sbtest2` and so on."""
        request = wire.OltpLoad(
            endpoint=database(endpoint),
            layout=self.parameters.layout,
            tables=self.parameters.tables,
            table_size=self.parameters.table_size,
            distribution=distributions.shape(self.parameters.data_distribution, OltpParameters.model_construct()),
            seed=self.parameters.data_seed,
            threads=self.parameters.load_threads,
        )
        limit_s = LOAD_GRACE_S + self.parameters.rows / LOAD_ROWS_PER_S
        return place.native(subcommands.OLTP_LOAD, request, timeout_s=limit_s, on_progress=on_progress)

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Runs the profile; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory."""
        request = wire.OltpDrive(
            drive=native.task(place, self.parameters, drive),
            profile=self.parameters.profile,
            tables=self.parameters.tables,
            table_size=self.parameters.table_size,
            protocol=self.parameters.protocol,
            skip_transactions=self.parameters.skip_transactions,
            pipelining=self.parameters.pipelining,
            distribution=distributions.shape(self.parameters.distribution, self.parameters),
            mix=self.parameters.mix,
        )
        return native.run(place, subcommands.OLTP_DRIVE, request, parameters=self.parameters, drive=drive)

    def checks_after(self) -> When:
        """A check reads all data, so large scales are checked once per cell; bulk inserts leave nothing to check."""
        if self.parameters.profile == "bulk_insert":
            return "never"
        return "every_trial" if self.parameters.rows <= CHECKED_EACH_TRIAL_ROWS else "once_per_cell"

    def check_data(self, place: OpenPlace, endpoint: Endpoint) -> list[Check]:
        """What every profile leaves true of its tables."""
        request = wire.OltpCheck(
            endpoint=database(endpoint),
            profile=self.parameters.profile,
            tables=self.parameters.tables,
            table_size=self.parameters.table_size,
        )
        return native.checks(place.native(subcommands.OLTP_CHECK, request, timeout_s=CHECK_S))

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, errors and latency from `result.json` and `latency.hlog`."""
        own = oltp_scalars.compute(directory, window=window, objective_s=self.parameters.objective)
        return {**own, **latency.compute(directory, by_type=False), **fleet.scalars(directory)}
