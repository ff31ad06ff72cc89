"""`tpcc`: TPC-C by the native load engine (specification 5.11)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from fairtrial.metrics import fidelity, fleet, latency
from fairtrial.protocol import generated as wire
from fairtrial.protocol import subcommands
from fairtrial.protocol.endpoints import Endpoint, database
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine import tpcc_scalars
from fairtrial.workloads.workload import Drive, DriveOutcome, When

# Part of the key of prepared data: raise it when the loader writes other data (2: tables of the default engine).
LOADER_VERSION = 2
LOAD_S_PER_WAREHOUSE = 600.0  # a hung load ends some day; the slowest disk seen needs a tenth of this
CHECK_S = 3600.0
CHECKED_EACH_TRIAL_WAREHOUSES = 10  # above, one check per cell: a check reads all data
GUESSED_PER_S = 200.0  # to estimate a drive by count before anything was measured
BYTES_PER_WAREHOUSE = 110 << 20  # measured on MariaDB, the larger of the two systems


class TpccParameters(native.DriveParameters):
    """TPC-C's five transactions in the specification's mix."""

    warehouses: int = Field(
        1, ge=1, le=100_000, description="Number of warehouses (scale), of about 100 MiB of data each."
    )
    think_time_scale: float = Field(
        0.0, ge=0, description="Factor applied to the keying and thinking times of clause 5.2.5; 0 leaves them out."
    )
    all_warehouses: bool = Field(
        default=True,
        description="Whether each transaction draws its home warehouse anew; otherwise each virtual user keeps one.",
    )
    procedures: bool = Field(
        default=False,
        description="Whether each transaction is one call of a stored procedure; otherwise it is sent statement by "
        "statement.",
    )

    @model_validator(mode="after")
    def _no_waits_at_a_rate(self) -> Self:
        if self.is_open and self.think_time_scale:
            raise ValueError("transactions of a `rate` begin at their scheduled times: leave `think_time_scale` out")
        return self


class Tpcc(native.NativeWorkload[TpccParameters]):
    """TPC-C by the native load generator."""

    name = "tpcc"
    summary = "TPC-C driven by the native load engine."
    model = TpccParameters
    throughput = "throughput_tpm"
    guessed_per_s = GUESSED_PER_S

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """Throughput, errors, latency by type; those of an open loop or a search."""
        latencies = latency.definitions(tpcc_scalars.TYPES)
        return {**tpcc_scalars.DEFINITIONS, **latencies, **self.parameters.loop_metrics()}

    def undividable(self, clients: int) -> str:
        """Where users keep their warehouses, a client has all users of its own ones."""
        homes = self._homes
        if homes is not None and homes < clients:
            return f"{clients} clients need a home warehouse each, and the virtual users have {homes}"
        return super().undividable(clients)

    def divided(self, clients: int) -> list[list[int]]:
        """By consecutive home warehouses, so that no terminal of a warehouse is at another client than the rest.

        A user's number decides its warehouse (clause 4.2.2 allows ten terminals each), whichever client has it.
        """
        homes, users = self._homes, range(self.parameters.virtual_users)
        if homes is None:
            return super().divided(clients)
        own = [set(each) for each in native.shares(homes, clients)]
        return [[user for user in users if user % self.parameters.warehouses in each] for each in own]

    @property
    def _homes(self) -> int | None:
        """Warehouses that are anyone's home; None where each transaction draws its own."""
        parameters = self.parameters
        return None if parameters.all_warehouses else min(parameters.warehouses, parameters.virtual_users)

    def disk_bytes(self) -> int:
        """Of all warehouses."""
        return self.parameters.warehouses * BYTES_PER_WAREHOUSE

    def data(self) -> Mapping[str, object]:
        """Scale, seed and version of the loader."""
        return {
            "workload": "tpcc",
            "warehouses": self.parameters.warehouses,
            "seed": self.parameters.data_seed,
            "loader_version": LOADER_VERSION,
        }

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> wire.Loaded:
        """Loads the nine tables."""
        request = wire.TpccLoad(
            endpoint=database(endpoint),
            warehouses=self.parameters.warehouses,
            seed=self.parameters.data_seed,
            threads=self.parameters.load_threads,
        )
        limit_s = LOAD_S_PER_WAREHOUSE * self.parameters.warehouses
        return place.native(subcommands.TPCC_LOAD, request, timeout_s=limit_s, on_progress=on_progress)

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Runs the mix; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory."""
        request = wire.TpccDrive(
            drive=native.task(place, self.parameters, drive),
            warehouses=self.parameters.warehouses,
            load_seed=self.parameters.data_seed,
            think_time_scale=self.parameters.think_time_scale,
            procedures=self.parameters.procedures,
            all_warehouses=self.parameters.all_warehouses,
        )
        return native.run(place, subcommands.TPCC_DRIVE, request, parameters=self.parameters, drive=drive)

    def checks_after(self) -> When:
        """A check reads all data, so large scales are checked once per cell."""
        return "every_trial" if self.parameters.warehouses <= CHECKED_EACH_TRIAL_WAREHOUSES else "once_per_cell"

    def check_data(self, place: OpenPlace, endpoint: Endpoint) -> list[Check]:
        """The specification's consistency conditions (clause 3.3.2)."""
        request = wire.TpccCheck(endpoint=database(endpoint), warehouses=self.parameters.warehouses)
        return native.checks(place.native(subcommands.TPCC_CHECK, request, timeout_s=CHECK_S))

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, errors and latency from `result.json` and `latency.hlog`."""
        own = tpcc_scalars.compute(directory, window=window, objective_s=self.parameters.objective)
        return {**own, **latency.compute(directory), **fleet.scalars(directory)}

    def contradictions(self, directory: Path) -> list[str]:
        """Where the engine's files disagree, and transactions that ended and were never drawn."""
        return [*super().contradictions(directory), *fidelity.contradictions(directory)]
