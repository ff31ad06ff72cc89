"""What the workloads of the native load engine have in common: the parameters of a drive, and how one is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairtrial import metrics
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.quantities import Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.workload import Drive, Driven

DRIVE_GRACE_S = 300.0  # beyond ramp-up and window, for users to finish and files to be written
TRANSACTIONS_LIMIT_S = 6 * 3600.0  # a drive by count; the engine itself ends a drive that makes no progress


class DriveParameters(BaseModel):
    """What every drive takes, whatever its workload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    virtual_users: int = Field(1, ge=1, le=10_000, description="Users, each with a connection of its own.")
    ramp_up: Seconds = Field(10.0, ge=0, description="Load before the measured window, excluded from every figure.")
    duration: Seconds | None = Field(None, gt=0, description="Length of the measured window.")
    transactions: int | None = Field(
        None, ge=1, description="Length of the measured window as a number of transactions, instead of `duration`."
    )
    rate: float | None = Field(
        None,
        gt=0,
        le=1e8,
        description="Transactions per second, all users together, that should begin whether or not a user is free; "
        "latency counts from then. Without it a user begins its next when its last has ended.",
    )
    think_time: Seconds = Field(0.0, ge=0, le=86_400, description="Mean pause of a user after a transaction.")
    spacing: Literal["constant", "exponential"] = Field(
        "exponential", description="How times between arrivals (of a `rate`) and thinking times are spread."
    )
    retries: int = Field(20, ge=0, description="Attempts after the system rolled a transaction back.")
    interval: Seconds = Field(1.0, ge=0.1, le=60, description="Width of timeline and histogram intervals.")
    data_seed: int = Field(1, ge=0, description="Seed of the data.")
    load_threads: int = Field(2, ge=1, le=64, description="Connections that load in parallel.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.duration is None) == (self.transactions is None):
            raise ValueError("exactly one of `duration` and `transactions` ends the measured window")
        if self.rate is not None and self.think_time:
            raise ValueError("transactions of a `rate` begin when their time has come: leave `think_time` out")
        return self

    def loop_metrics(self) -> Mapping[str, MetricDefinition]:
        """The metrics that only an open loop has."""
        return metrics.arrivals.DEFINITIONS if self.rate is not None else {}


def duration_s(parameters: Mapping[str, Any], *, guessed_per_s: float) -> float:
    """Ramp-up and window; a window by count is guessed."""
    measured = parameters["duration"] or parameters["transactions"] / guessed_per_s
    return float(parameters["ramp_up"] + measured)


def run(
    place: OpenPlace, subcommand: str, parameters: Mapping[str, Any], *, drive: Drive, own: Mapping[str, Any]
) -> Driven:
    """Drives; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory.

    Args:
        place: where.
        subcommand: of the agent.
        parameters: of the workload.
        drive: this trial's.
        own: what the subcommand takes besides `drive`.

    Raises:
        PlaceError: the engine failed; its own words say why.
    """
    task = {
        "drive": {
            "endpoint": drive.endpoint,
            "virtual_users": parameters["virtual_users"],
            "seed": drive.seed,
            "ramp_up_s": parameters["ramp_up"],
            "duration_s": parameters["duration"],
            "transactions": parameters["transactions"],
            "arrivals": _arrivals(parameters),
            "retries": parameters["retries"],
            "interval_ms": round(parameters["interval"] * 1000),
            "output_directory": str(drive.directory),
        },
        **own,
    }
    timed = parameters["duration"] is not None
    place.native(
        subcommand,
        task,
        timeout_s=duration_s(parameters, guessed_per_s=1.0) + DRIVE_GRACE_S if timed else TRANSACTIONS_LIMIT_S,
        on_progress=drive.on_progress,
        environment=drive.environment,
        processors=drive.processors,
    )
    result = json.loads(place.agent.get(str(drive.directory / "result.json")))
    return Driven(
        window=Window.model_validate(result["window"]),
        effective=result["effective"],
        invalid_reason=why_invalid(result),
    )


def _arrivals(parameters: Mapping[str, Any]) -> dict[str, Any]:
    spacing = parameters["spacing"]
    if parameters["rate"] is None:
        return {"kind": "closed", "think_s": parameters["think_time"], "spacing": spacing}
    return {"kind": "open", "rate_per_s": parameters["rate"], "spacing": spacing}


def why_invalid(result: Mapping[str, Any]) -> str:
    """A lost connection means that the server went away: what follows is not the same experiment."""
    lost = sum(error["count"] for error in result["errors"] if error["kind"] == "connection")
    if lost:
        return f"{lost} transactions lost their connection to the server"
    if not any(outcome["committed"] for outcome in result["transactions"].values()):
        return "no transaction committed inside the measured window"
    return ""


def checks(result: Mapping[str, Any]) -> list[Check]:
    """Conditions as the engine checked them."""
    return [
        Check(
            name=condition["clause"],
            statement=condition["statement"],
            violations=condition["violations"],
            examples=condition["examples"],
        )
        for condition in result["conditions"]
    ]
