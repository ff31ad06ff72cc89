"""`tpcc`: TPC-C by the native load engine (specification 5.11)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, TypeAdapter, model_validator

from fairtrial.metrics import consistency, fidelity, latency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine import tpcc_scalars
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION = 1  # part of the key of prepared data: raise it when the loader writes other data
LOAD_S_PER_WAREHOUSE = 600.0  # a hung load ends some day; the slowest disk seen needs a tenth of this
CHECK_S = 3600.0
CHECKED_EACH_TRIAL_WAREHOUSES = 10  # above, one check per cell: a check reads all data
GUESSED_PER_S = 200.0  # to estimate a drive by count before anything was measured
BYTES_PER_WAREHOUSE = 110 << 20  # measured on MariaDB, the larger of the two systems


class TpccParameters(native.DriveParameters):
    """TPC-C's five transactions in the specification's mix."""

    warehouses: int = Field(1, ge=1, le=100_000, description="Scale: about 100 MiB of data each.")
    think_time_scale: float = Field(
        0.0, ge=0, description="Keying and thinking times of clause 5.2.5 times this; 0 leaves them out."
    )
    all_warehouses: bool = Field(
        default=True, description="Each transaction draws its home warehouse anew; false: each user keeps one."
    )
    procedures: bool = Field(
        default=False,
        description="Each transaction is one call of a stored procedure; false: it is sent statement by statement.",
    )

    @model_validator(mode="after")
    def _no_waits_at_a_rate(self) -> Self:
        if self.is_open and self.think_time_scale:
            raise ValueError("transactions of a `rate` begin when their time has come: leave `think_time_scale` out")
        return self


def _definitions(parameters: TpccParameters) -> Mapping[str, MetricDefinition]:
    latencies = latency.definitions(tpcc_scalars.TYPES)
    return {**tpcc_scalars.DEFINITIONS, **latencies, **parameters.loop_metrics()}


KIND = Kind(
    name="tpcc",
    summary="TPC-C by the native load engine.",
    parameters=TypeAdapter(TpccParameters),
    metrics=_definitions,
    throughput="throughput_tpm",
    example={"duration": "60s"},
    duration_s=lambda parameters: native.duration_s(parameters, guessed_per_s=GUESSED_PER_S),
    disk_bytes=lambda parameters: parameters["warehouses"] * BYTES_PER_WAREHOUSE,
    systems=frozenset({"mariadb", "mysql", "postgres", "sqlite"}),
)


def data(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Scale, seed and version of the loader."""
    return {
        "workload": "tpcc",
        "warehouses": parameters["warehouses"],
        "seed": parameters["data_seed"],
        "loader_version": LOADER_VERSION,
    }


def load(
    place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Loads the nine tables."""
    result = place.native(
        "load",
        {
            "endpoint": endpoint,
            "warehouses": parameters["warehouses"],
            "seed": parameters["data_seed"],
            "threads": parameters["load_threads"],
        },
        timeout_s=LOAD_S_PER_WAREHOUSE * parameters["warehouses"],
        on_progress=on_progress,
    )
    return Loaded(content_sha256=result["content_sha256"], rows=result["rows"])


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Runs the mix; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory."""
    own = {
        "warehouses": parameters["warehouses"],
        "load_seed": parameters["data_seed"],
        "think_time_scale": parameters["think_time_scale"],
        "procedures": parameters["procedures"],
        "all_warehouses": parameters["all_warehouses"],
    }
    return native.run(place, "drive", parameters, drive=drive, own=own)


def checks_after(parameters: Mapping[str, Any]) -> str:
    """A check reads all data, so large scales are checked once per cell."""
    return "every_trial" if parameters["warehouses"] <= CHECKED_EACH_TRIAL_WAREHOUSES else "once_per_cell"


def check(place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any]) -> list[Check]:
    """The specification's consistency conditions (clause 3.3.2)."""
    asked = {"endpoint": endpoint, "warehouses": parameters["warehouses"]}
    return native.checks(place.native("check", asked, timeout_s=CHECK_S))


def scalars(directory: Path, parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, errors and latency from `result.json` and `latency.hlog`."""
    own = tpcc_scalars.compute(directory, window=window, parameters=parameters)
    return {**own, **latency.compute(directory)}


def contradictions(directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Where the engine's files disagree, and transactions that ended and were never drawn."""
    return [*consistency.contradictions(directory), *fidelity.contradictions(directory)]
