"""`tpcc`: TPC-C by the native load engine (specification 5.11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from fairtrial import metrics
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.study.quantities import Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION = 1  # part of the key of prepared data: raise it when the loader writes other data
LOAD_S_PER_WAREHOUSE = 600.0  # a hung load ends some day; the slowest disk seen needs a tenth of this
DRIVE_GRACE_S = 300.0  # beyond ramp-up and window, for users to finish and files to be written
TRANSACTIONS_LIMIT_S = 6 * 3600.0  # a drive by count; the engine itself ends a drive that makes no progress
CHECK_S = 3600.0
CHECKED_EACH_TRIAL_WAREHOUSES = 10  # above, one check per cell: a check reads all data
GUESSED_PER_S = 200.0  # to estimate a drive by count before anything was measured
BYTES_PER_WAREHOUSE = 110 << 20  # measured on MariaDB, the larger of the two systems


class TpccParameters(BaseModel):
    """TPC-C's five transactions in the specification's mix."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    warehouses: int = Field(1, ge=1, le=100_000, description="Scale: about 100 MiB of data each.")
    virtual_users: int = Field(1, ge=1, le=10_000, description="Emulated terminals.")
    ramp_up: Seconds = Field(10.0, ge=0, description="Load before the measured window, excluded from every figure.")
    duration: Seconds | None = Field(None, gt=0, description="Length of the measured window.")
    transactions: int | None = Field(
        None, ge=1, description="Length of the measured window as a number of transactions, instead of `duration`."
    )
    think_time_scale: float = Field(
        0.0, ge=0, description="Keying and thinking times of clause 5.2.5 times this; 0 leaves them out."
    )
    all_warehouses: bool = Field(
        default=True, description="Each transaction draws its home warehouse anew; false: each user keeps one."
    )
    retries: int = Field(20, ge=0, description="Attempts after the system rolled a transaction back.")
    interval: Seconds = Field(1.0, ge=0.1, le=60, description="Width of timeline and histogram intervals.")
    data_seed: int = Field(1, ge=0, description="Seed of the data.")
    load_threads: int = Field(2, ge=1, le=64, description="Connections that load in parallel.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.duration is None) == (self.transactions is None):
            raise ValueError("exactly one of `duration` and `transactions` ends the measured window")
        return self


def _definitions(_parameters: object) -> Mapping[str, MetricDefinition]:
    return {**metrics.tpcc.DEFINITIONS, **metrics.latency.DEFINITIONS}


def _duration_s(parameters: Mapping[str, Any]) -> float:
    measured = parameters["duration"] or parameters["transactions"] / GUESSED_PER_S
    return float(parameters["ramp_up"] + measured)


KIND = Kind(
    name="tpcc",
    summary="TPC-C by the native load engine.",
    parameters=TypeAdapter(TpccParameters),
    metrics=_definitions,
    example={"duration": "60s"},
    duration_s=_duration_s,
    disk_bytes=lambda parameters: parameters["warehouses"] * BYTES_PER_WAREHOUSE,
    systems=frozenset({"mariadb", "sqlite"}),
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
    task = {
        "endpoint": drive.endpoint,
        "warehouses": parameters["warehouses"],
        "virtual_users": parameters["virtual_users"],
        "seed": drive.seed,
        "load_seed": parameters["data_seed"],
        "ramp_up_s": parameters["ramp_up"],
        "duration_s": parameters["duration"],
        "transactions": parameters["transactions"],
        "think_time_scale": parameters["think_time_scale"],
        "all_warehouses": parameters["all_warehouses"],
        "retries": parameters["retries"],
        "interval_ms": round(parameters["interval"] * 1000),
        "output_directory": str(drive.directory),
    }
    limit = _duration_s(parameters) + DRIVE_GRACE_S if parameters["duration"] else TRANSACTIONS_LIMIT_S
    place.native(
        "drive",
        task,
        timeout_s=limit,
        on_progress=drive.on_progress,
        environment=drive.environment,
        processors=drive.processors,
    )
    result = json.loads(place.agent.get(str(drive.directory / "result.json")))
    return Driven(
        window=Window.model_validate(result["window"]),
        effective=result["effective"],
        invalid_reason=_why_invalid(result),
    )


def _why_invalid(result: Mapping[str, Any]) -> str:
    """A lost connection means that the server went away: what follows is not the same experiment."""
    lost = sum(error["count"] for error in result["errors"] if error["kind"] == "connection")
    if lost:
        return f"{lost} transactions lost their connection to the server"
    if not any(outcome["committed"] for outcome in result["transactions"].values()):
        return "no transaction committed inside the measured window"
    return ""


def checks_after(parameters: Mapping[str, Any]) -> str:
    """A check reads all data, so large scales are checked once per cell."""
    return "every_trial" if parameters["warehouses"] <= CHECKED_EACH_TRIAL_WAREHOUSES else "once_per_cell"


def check(place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any]) -> list[Check]:
    """The specification's consistency conditions (clause 3.3.2)."""
    result = place.native("check", {"endpoint": endpoint, "warehouses": parameters["warehouses"]}, timeout_s=CHECK_S)
    return [
        Check(
            name=condition["clause"],
            statement=condition["statement"],
            violations=condition["violations"],
            examples=condition["examples"],
        )
        for condition in result["conditions"]
    ]


def scalars(directory: Path, _parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, errors and latency from `result.json` and `latency.hlog`."""
    return {**metrics.tpcc.compute(directory, window=window), **metrics.latency.compute(directory)}
