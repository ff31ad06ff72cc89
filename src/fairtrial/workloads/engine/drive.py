"""What the workloads of the native load engine have in common: the parameters of a drive, and how one is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.quantities import Rate, Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import arrival_scalars, arrivals, replay, search_scalars
from fairtrial.workloads.engine.arrivals import HIGHEST_PER_S, Arrivals
from fairtrial.workloads.workload import Drive, Driven

DRIVE_GRACE_S = 300.0  # beyond ramp-up and window, for users to finish and files to be written
TRANSACTIONS_LIMIT_S = 6 * 3600.0  # a drive by count; the engine itself ends a drive that makes no progress


PIPELINING = (
    "MariaDB and PostgreSQL: send {what} before reading the answer of the first, as [drivers do it]"
    "(../explanation/developing.md#pipelining). Other load generators do not: leave it off to compare with them."
)


class DriveParameters(BaseModel):
    """What every drive takes, whatever its workload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    virtual_users: int = Field(1, ge=1, le=10_000, description="Users, each with a connection of its own.")
    ramp_up: Seconds = Field(10.0, ge=0, description="Load before the measured window, excluded from every figure.")
    ramp_up_transactions: int | None = Field(
        None,
        ge=1,
        description="Length of ramp-up as a number of transactions, instead of `ramp_up`. With `transactions` every "
        "trial does the same work, and what is counted per transaction does not depend on how fast its place is.",
    )
    duration: Seconds | None = Field(None, gt=0, description="Length of the measured window.")
    transactions: int | None = Field(
        None, ge=1, description="Length of the measured window as a number of transactions, instead of `duration`."
    )
    expected_rate: Rate | None = Field(
        None,
        gt=0,
        le=HIGHEST_PER_S,
        description="About how many transactions to expect, only to say beforehand how long a number of them takes.",
    )
    rate: Rate | None = Field(
        None,
        gt=0,
        le=HIGHEST_PER_S,
        description="Transactions, all users together, that should begin whether or not a user is free; latency counts "
        "from then. Without it and `arrivals` a user begins its next when its last has ended.",
    )
    arrivals: Arrivals | None = Field(
        None,
        description="The same with a rate that changes, from a file, or in search of the highest: one of its keys.",
    )
    queue_timeout: Seconds | None = Field(
        None,
        gt=0,
        le=86_400,
        description="A transaction that has waited longer than this for a user is given up: it counts as timed out and "
        "has no latency. Without it all wait. Only with `rate` or `arrivals`.",
    )
    think_time: Seconds = Field(0.0, ge=0, le=86_400, description="Mean pause of a user after a transaction.")
    spacing: Literal["constant", "exponential"] = Field(
        "exponential", description="How times between arrivals (of `rate` or `arrivals`) and thinking times are spread."
    )
    retries: int = Field(20, ge=0, description="Attempts after the system rolled a transaction back.")
    objective: Seconds | None = Field(
        None,
        gt=0,
        le=3600,
        description="Latency within which a committed transaction counts as goodput; without it every one does.",
    )
    lost_connections_limit: int = Field(
        0, ge=0, description="Connections that a valid trial may lose or be refused inside the measured window."
    )
    failed_share_limit: float = Field(
        1.0, ge=0, le=1, description="Largest share of transactions that may have been given up in a valid trial."
    )
    interval: Seconds = Field(1.0, ge=0.1, le=60, description="Width of timeline and histogram intervals.")
    data_seed: int = Field(1, ge=0, description="Seed of the data.")
    load_threads: int = Field(2, ge=1, le=64, description="Connections that load in parallel.")

    @model_validator(mode="before")
    @classmethod
    def _one_ramp_up(cls, given: Any) -> Any:
        """The default of `ramp_up` is for those who say nothing."""
        if not isinstance(given, dict) or given.get("ramp_up_transactions") is None:
            return given
        return {"ramp_up": 0.0, **given}

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.ramp_up_transactions is not None and self.ramp_up:
            raise ValueError("`ramp_up` and `ramp_up_transactions` both end ramp-up: leave one out")
        if self.is_search:
            if (self.duration, self.transactions, self.ramp_up_transactions) != (None, None, None):
                raise ValueError(
                    "a search has windows of its own: leave `duration`, `transactions` and `ramp_up_transactions` out"
                )
        elif (self.duration is None) == (self.transactions is None):
            raise ValueError("exactly one of `duration` and `transactions` ends the measured window")
        return self

    @model_validator(mode="after")
    def _one_loop(self) -> Self:
        if self.rate is not None and self.arrivals is not None:
            raise ValueError("`rate` and `arrivals` both say when transactions begin: leave one out")
        if self.is_open and self.think_time:
            given = "a `rate`" if self.rate is not None else "`arrivals`"
            raise ValueError(f"transactions of {given} begin when their time has come: leave `think_time` out")
        if self.queue_timeout is not None and not self.is_open:
            raise ValueError("without a `rate` or `arrivals` nobody queues: leave `queue_timeout` out")
        return self

    @property
    def is_open(self) -> bool:
        """Whether transactions begin when their time has come, not when their users like."""
        return self.rate is not None or self.arrivals is not None

    @property
    def is_search(self) -> bool:
        """Whether a trial searches for a rate."""
        return self.arrivals is not None and self.arrivals.search is not None

    def loop_metrics(self) -> Mapping[str, MetricDefinition]:
        """The metrics that only an open loop has, those of a queue that is left, and those of a search."""
        return {
            **(arrival_scalars.DEFINITIONS if self.is_open else {}),
            **(arrival_scalars.TIMED_OUT if self.queue_timeout is not None else {}),
            **(search_scalars.DEFINITIONS if self.is_search else {}),
        }


def drives(parameters: Mapping[str, Any]) -> bool:
    """Whether a workload with these parameters is one of the native load engine's."""
    return DriveParameters.model_fields.keys() <= parameters.keys()


def announces(parameters: Mapping[str, Any]) -> bool:
    """Whether a workload with these parameters says when its window begins: all do that warm up."""
    return bool({"ramp_up", "warm_up_accesses"} & parameters.keys())


def duration_s(parameters: Mapping[str, Any], *, guessed_per_s: float) -> float:
    """Ramp-up and window, or a search's probes; a window by count is guessed."""
    searched = _search(parameters)
    if searched is not None:
        return float(parameters["ramp_up"] + arrivals.duration_s(searched))
    counted = (parameters["ramp_up_transactions"] or 0) + (parameters["transactions"] or 0)
    per_s = parameters["expected_rate"] or guessed_per_s
    return float(parameters["ramp_up"] + (parameters["duration"] or 0) + counted / per_s)


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
        InputError: a file of arrivals is not what it was when the study was read.
    """
    task = {
        "drive": {
            "endpoint": drive.endpoint,
            "virtual_users": parameters["virtual_users"],
            "seed": drive.seed,
            "ramp_up_s": parameters["ramp_up"],
            "ramp_up_transactions": parameters["ramp_up_transactions"],
            "duration_s": parameters["duration"],
            "transactions": parameters["transactions"],
            "arrivals": _arrivals(place, parameters, drive),
            "queue_timeout_s": parameters["queue_timeout"],
            "retries": parameters["retries"],
            "interval_ms": round(parameters["interval"] * 1000),
            "output_directory": str(drive.directory),
        },
        **own,
    }
    place.native(
        subcommand,
        task,
        timeout_s=_limit_s(parameters),
        on_progress=drive.on_progress,
        **drive.starting,
    )
    result = json.loads(place.agent.get(str(drive.directory / "result.json")))
    return Driven(
        window=Window.model_validate(result["window"]),
        effective=result["effective"],
        invalid_reason=why_invalid(result, parameters),
    )


def _search(parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
    asked = parameters["arrivals"]
    found: Mapping[str, Any] | None = asked["search"] if asked else None
    return found


def _limit_s(parameters: Mapping[str, Any]) -> float:
    """When a drive hangs: the engine itself ends one that makes no progress."""
    searched = _search(parameters)
    if searched is not None:
        return float(parameters["ramp_up"] + arrivals.longest_s(searched) + DRIVE_GRACE_S)
    if parameters["duration"] is None or parameters["ramp_up_transactions"] is not None:
        return TRANSACTIONS_LIMIT_S
    return duration_s(parameters, guessed_per_s=1.0) + DRIVE_GRACE_S


def _arrivals(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> dict[str, Any]:
    spacing = parameters["spacing"]
    if parameters["arrivals"]:
        path = drive.work_directory / "arrivals"
        recorded = parameters["arrivals"]["replay"]
        if recorded:
            place.agent.put(str(path), replay.content(replay.Recording.model_validate(recorded["file"])))
        return arrivals.task(parameters["arrivals"], spacing=spacing, path=str(path))
    if parameters["rate"] is None:
        return {"kind": "closed", "think_s": parameters["think_time"], "spacing": spacing}
    return {"kind": "open", "rate_per_s": parameters["rate"], "spacing": spacing}


def why_invalid(result: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Why a trial is invalid by the study's rule, with the commonest error; empty if it is valid.

    A lost connection means that the server went away: what follows is not the same experiment, unless the study says
    how many may be lost. A trial without any commit measured nothing, whatever the study says.
    """
    searched = result.get("search")
    lost = (
        sum(probe["connections_lost"] for probe in searched["probes"])
        if searched
        else sum(error["count"] for error in result["errors"] if error["kind"] == "connection")
    )
    outcomes = result["transactions"].values()
    failed = sum(outcome["failed"] for outcome in outcomes)
    ended = failed + sum(outcome["committed"] + outcome["rolled_back"] for outcome in outcomes)
    limit = parameters["lost_connections_limit"]
    if lost > limit:
        allowed = f", {limit} may be" if limit else ""
        return f"{lost} connections to the server were lost or refused{allowed}{_commonest(result)}"
    if searched and (censored := search_scalars.why_censored(searched)):
        return str(censored)
    if ended and failed / ended > parameters["failed_share_limit"]:
        return (
            f"{failed} of {ended} transactions failed, more than a share of "
            f"{parameters['failed_share_limit']:g}{_commonest(result)}"
        )
    if not any(outcome["committed"] for outcome in outcomes):
        return f"no transaction committed inside the measured window{_commonest(result)}"
    return ""


def _commonest(result: Mapping[str, Any]) -> str:
    errors = result["errors"]
    if not errors:
        return ""
    most = max(errors, key=lambda error: int(error["count"]))
    return f" ({most['count']} times {most['code']}: {most['message']})"


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
