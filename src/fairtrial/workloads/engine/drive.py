"""What the workloads of the native load engine have in common: the parameters of a drive, and how one is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairtrial.errors import PlaceError
from fairtrial.metrics import consistency, fleet
from fairtrial.metrics.drive import FILE
from fairtrial.programs import Act
from fairtrial.protocol import endpoints
from fairtrial.protocol import generated as wire
from fairtrial.protocol.subcommands import I, Subcommand
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.quantities import Rate, Seconds
from fairtrial.wire.messages import SAME_VERSION
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import arrival_scalars, arrivals, replay, search_scalars
from fairtrial.workloads.engine.arrivals import HIGHEST_PER_S, Arrivals, Offered, Search, Spacing
from fairtrial.workloads.workload import Drive, DriveOutcome, When, Workload

CHECKED: Final[Mapping[When, str]] = {
    "every_trial": "after every trial",
    "once_per_cell": "after one trial of each cell",
}
DRIVE_GRACE_S = 300.0  # beyond ramp-up and window, for users to finish and files to be written
LARGEST = 2**32 - 1  # of the engine's counts within a transaction
TRANSACTIONS_LIMIT_S = 6 * 3600.0  # a drive by count, at least; the engine itself ends one that makes no progress
LATE = 3.0  # times what a drive by count is expected to take
GUESSED_PER_S = 1.0  # where the study does not say: hardly a drive is slower
LONGEST_S = 90 * 86_400.0

PIPELINING = (
    "MariaDB, MySQL and PostgreSQL: send {what} before reading the answer of the first, as [drivers do it]"
    "(../explanation/developing.md#pipelining). Other load generators do not: leave it off to compare with them."
)


class DriveParameters(BaseModel):
    """What every drive takes, whatever its workload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    virtual_users: int = Field(1, ge=1, le=10_000, description="Virtual users, each with a connection of its own.")
    ramp_up: Seconds = Field(
        10.0, ge=0, description="Length of ramp-up: load before the measurement window, excluded from all metrics."
    )
    ramp_up_transactions: int | None = Field(
        None,
        ge=1,
        description="Length of ramp-up as a number of transactions, instead of `ramp_up`. With `transactions` "
        "every trial does the same work, and counts per transaction do not depend on the speed of the place.",
    )
    duration: Seconds | None = Field(None, gt=0, description="Length of the measurement window.")
    transactions: int | None = Field(
        None, ge=1, description="Length of the measurement window as a number of transactions, instead of `duration`."
    )
    expected_rate: Rate | None = Field(
        None,
        gt=0,
        le=HIGHEST_PER_S,
        description="Estimated throughput, used only to predict how long a number of transactions takes.",
    )
    rate: Rate | None = Field(
        None,
        gt=0,
        le=HIGHEST_PER_S,
        description="Rate at which transactions should begin, all virtual users together, whether or not one is "
        "free; latency counts from then. Without it and `arrivals`, a virtual user begins its next transaction "
        "when its last has ended.",
    )
    arrivals: Arrivals | None = Field(
        None,
        description="Arrivals at a changing rate, from a file, or in search of the highest rate: exactly one of its "
        "keys.",
    )
    queue_timeout: Seconds | None = Field(
        None,
        gt=0,
        le=86_400,
        description="Longest wait for a virtual user, after which a transaction is given up: it counts as timed "
        "out and has no latency (default: no limit). Only with `rate` or `arrivals`.",
    )
    think_time: Seconds = Field(0.0, ge=0, le=86_400, description="Mean pause of a virtual user after a transaction.")
    spacing: Spacing = Field(
        "exponential",
        description="Distribution of the times between arrivals (of `rate` or `arrivals`) and of thinking times.",
    )
    retries: int = Field(
        20, ge=0, le=LARGEST, description="Number of retries after the system rolled a transaction back."
    )
    objective: Seconds | None = Field(
        None,
        gt=0,
        le=3600,
        description="Latency within which a committed transaction counts as goodput (default: no limit).",
    )
    lost_connections_limit: int = Field(
        0,
        ge=0,
        description="Number of connections that a valid trial may lose or be refused inside the measurement window.",
    )
    failed_share_limit: float = Field(
        1.0, ge=0, le=1, description="Largest share of transactions that may have been given up in a valid trial."
    )
    interval: Seconds = Field(1.0, ge=0.1, le=60, description="Width of timeline and histogram intervals.")
    data_seed: int = Field(1, ge=0, description="Seed of the data.")
    load_threads: int = Field(2, ge=1, le=64, description="Number of connections that load data in parallel.")

    @model_validator(mode="before")
    @classmethod
    def _one_ramp_up(cls, values: Any) -> Any:
        """The default of `ramp_up` is for those who say nothing."""
        if not isinstance(values, dict) or values.get("ramp_up_transactions") is None:
            return values
        return {"ramp_up": 0.0, **values}

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.ramp_up_transactions is not None and self.ramp_up:
            raise ValueError("expected one of `ramp_up` and `ramp_up_transactions`, found both: leave one out")
        if self.search is not None:
            if (self.duration, self.transactions, self.ramp_up_transactions) != (None, None, None):
                raise ValueError(
                    "a search has windows of its own: leave `duration`, `transactions` and `ramp_up_transactions` out"
                )
        elif (self.duration is None) == (self.transactions is None):
            raise ValueError("expected exactly one of `duration` and `transactions`, which ends the measurement window")
        return self

    @model_validator(mode="after")
    def _one_loop(self) -> Self:
        if self.rate is not None and self.arrivals is not None:
            raise ValueError("expected one of `rate` and `arrivals`, found both: leave one out")
        if self.is_open and self.think_time:
            source = "a `rate`" if self.rate is not None else "`arrivals`"
            raise ValueError(f"transactions of {source} begin at their scheduled times: leave `think_time` out")
        if self.queue_timeout is not None and not self.is_open:
            raise ValueError("`queue_timeout` needs a `rate` or `arrivals`: leave it out")
        return self

    @property
    def is_open(self) -> bool:
        """Whether transactions begin when their time has come, not when their users like."""
        return self.rate is not None or self.arrivals is not None

    @property
    def search(self) -> Search | None:
        """The search for a rate that a trial is; None if it is not."""
        return self.arrivals.search if self.arrivals is not None else None

    def loop_metrics(self) -> Mapping[str, MetricDefinition]:
        """The metrics that only an open loop has, those of a queue that is left, and those of a search."""
        return {
            **(arrival_scalars.DEFINITIONS if self.is_open else {}),
            **(arrival_scalars.TIMED_OUT if self.queue_timeout is not None else {}),
            **(search_scalars.definitions(self.search.precision) if self.search is not None else {}),
        }


Parameters = TypeVar("Parameters", bound=DriveParameters)
Left = TypeVar("Left", bound=BaseModel)


def engine_act(subcommand: str) -> Act:
    """A drive of the native load generator, which starts no other program."""
    return Act("runs", f"fairtrial-agent {subcommand}")


def loader_act(subcommand: str) -> Act:
    """A loader of ours, which starts no other program either."""
    return Act("runs", f"fairtrial-agent {subcommand}", "to make data")


class NativeWorkload(Workload[Parameters]):
    """What the workloads of the native load generator on databases have in common.

    Attributes:
        guessed_per_s: transactions per second, to estimate a drive by count before anything was measured.
        checked_by: what the agent checks data with; its own check of the workload if empty.
    """

    example = MappingProxyType({"duration": "60s"})
    systems = frozenset({"mariadb", "mysql", "postgres", "sqlite"})
    is_native = True
    guessed_per_s: ClassVar[float]
    checked_by: ClassVar[str] = ""

    def duration_s(self) -> float:
        """Ramp-up and window, or a search's probes; a window by count is guessed."""
        return duration_s(self.parameters, guessed_per_s=self.guessed_per_s)

    def acts(self) -> Iterator[Act]:
        """The load generator, and what looks at the data afterwards."""
        yield engine_act(f"{self.name}-drive")
        if when := CHECKED.get(self.checks_after()):
            yield Act("runs", f"fairtrial-agent {self.checked_by or f'{self.name}-check'}", when)

    def loading(self) -> Iterator[Act]:
        """Our own loader, unless no data are needed."""
        if self.data() is not None:
            yield loader_act(f"{self.name}-load")

    def undividable(self, clients: int) -> str:
        """Clients share one window, which only a time ends, and each has users of its own."""
        parameters = self.parameters
        if parameters.search is not None:
            return "a search has one client, as its next rate depends on all of the last one"
        if parameters.duration is None or parameters.ramp_up_transactions is not None:
            return "several clients share one window, which only a time can end: use `duration` and `ramp_up`"
        if parameters.virtual_users < clients:
            return f"{clients} clients need a virtual user each, and there are {parameters.virtual_users}"
        return ""

    def divided(self, clients: int) -> list[list[int]]:
        """Consecutive numbers; what is left over goes to the first clients."""
        return shares(self.parameters.virtual_users, clients)

    def judged(self, directory: Path) -> str:
        """As of one client."""
        result = wire.Driven.model_validate_json((directory / FILE).read_bytes())
        return why_invalid(result, self.parameters)

    def contradictions(self, directory: Path) -> list[str]:
        """Where the engine's files disagree."""
        return [*consistency.contradictions(directory), *fleet.contradictions(directory)]


def shares(count: int, clients: int) -> list[list[int]]:
    """Consecutive numbers from 0 on for each client, the first ones having one more where there is a rest."""
    each, rest = divmod(count, clients)
    starts = [client * each + min(client, rest) for client in range(clients + 1)]
    return [list(range(first, end)) for first, end in pairwise(starts)]


def duration_s(parameters: DriveParameters, *, guessed_per_s: float) -> float:
    """Ramp-up and window, or a search's probes; a window by count is guessed."""
    if parameters.search is not None:
        return parameters.ramp_up + arrivals.duration_s(parameters.search)
    counted = (parameters.ramp_up_transactions or 0) + (parameters.transactions or 0)
    return parameters.ramp_up + (parameters.duration or 0) + counted / (parameters.expected_rate or guessed_per_s)


def task(place: OpenPlace, parameters: DriveParameters, drive: Drive) -> wire.Drive:
    """What the engine is told of a drive, whatever its workload; recorded arrivals are sent to the place.

    Raises:
        PlaceError: the system is not a database.
        InputError: a file of arrivals is not what it was when the study was read.
    """
    return wire.Drive(
        endpoint=endpoints.database(drive.endpoint),
        virtual_users=parameters.virtual_users if drive.share is None else len(drive.share.user_numbers),
        seed=drive.seed,
        ramp_up_s=parameters.ramp_up,
        ramp_up_transactions=parameters.ramp_up_transactions,
        duration_s=parameters.duration,
        transactions=parameters.transactions,
        arrivals=_arrivals(place, parameters, drive),
        queue_timeout_s=parameters.queue_timeout,
        retries=parameters.retries,
        interval_ms=round(parameters.interval * 1000),
        output_directory=str(drive.directory),
        fleet=drive.share,
    )


def run(
    place: OpenPlace, subcommand: Subcommand[I, None], request: I, *, parameters: DriveParameters, drive: Drive
) -> DriveOutcome:
    """Drives; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory.

    Args:
        place: where.
        subcommand: of the agent.
        request: what the subcommand takes.
        parameters: of the workload.
        drive: this trial's.

    Raises:
        PlaceError: the engine failed; its own words say why.
    """
    limit_s = _limit_s(parameters)
    place.native(
        subcommand,
        request,
        timeout_s=limit_s,
        on_progress=drive.on_progress,
        on_start=drive.on_start,
        **drive.process_options,
    )
    result = read_result(place, drive)
    judge = why_invalid if drive.share is None else why_lost  # shares are of all clients together: see `judged`
    return DriveOutcome(window=window(result), effective=result.effective, invalid_reason=judge(result, parameters))


def read_result(place: OpenPlace, drive: Drive) -> wire.Driven:
    """The `result.json` that a drive has left at the place.

    Raises:
        PlaceError: it is not what this version reads.
    """
    return left(place, drive.directory / FILE, wire.Driven)


def left(place: OpenPlace, path: PurePosixPath, model: type[Left]) -> Left:
    """What the agent has left in a file at the place.

    Raises:
        PlaceError: it is not what this version reads.
    """
    try:
        return model.model_validate_json(place.agent.get(str(path)))
    except ValidationError as error:
        raise PlaceError(f"{path} is not what this version reads: {error}", hint=SAME_VERSION) from error


def window(result: wire.Driven) -> Window:
    """The measured window, as a record has it."""
    return Window(start_ns=result.window.start_ns, end_ns=result.window.end_ns)


def _limit_s(parameters: DriveParameters) -> float:
    """When a drive hangs: the engine itself ends one that makes no progress."""
    if parameters.search is not None:
        return parameters.ramp_up + arrivals.longest_s(parameters.search) + DRIVE_GRACE_S
    if parameters.duration is None or parameters.ramp_up_transactions is not None:
        return min(max(TRANSACTIONS_LIMIT_S, LATE * duration_s(parameters, guessed_per_s=GUESSED_PER_S)), LONGEST_S)
    return duration_s(parameters, guessed_per_s=1.0) + DRIVE_GRACE_S


def _arrivals(place: OpenPlace, parameters: DriveParameters, drive: Drive) -> Offered:
    if parameters.arrivals is not None:
        path = drive.work_directory / "arrivals"
        if parameters.arrivals.replay is not None:
            place.agent.put(str(path), replay.content(parameters.arrivals.replay.file))
        return arrivals.offered(parameters.arrivals, spacing=parameters.spacing, path=str(path))
    if parameters.rate is None:
        return wire.ClosedArrivals(think_s=parameters.think_time, spacing=parameters.spacing)
    return wire.OpenArrivals(rate_per_s=parameters.rate, spacing=parameters.spacing)


def why_invalid(result: wire.Driven, parameters: DriveParameters) -> str:
    """Why a trial is invalid by the study's rule, with the commonest error; empty if it is valid.

    A trial without any commit measured nothing, whatever the study says.
    """
    if lost := why_lost(result, parameters):
        return lost
    searched = result.search
    outcomes = result.transactions.values()
    failed = sum(outcome.failed for outcome in outcomes)
    ended = failed + sum(outcome.committed + outcome.rolled_back for outcome in outcomes)
    if searched and (censored := search_scalars.why_censored(searched)):
        return censored
    if ended and failed / ended > parameters.failed_share_limit:
        return (
            f"{failed} of {ended} transactions failed, more than a share of "
            f"{parameters.failed_share_limit:g}{_commonest(result)}"
        )
    if not any(outcome.committed for outcome in outcomes):
        return f"no transaction committed inside the measurement window{_commonest(result)}"
    return ""


def why_lost(result: wire.Driven, parameters: DriveParameters) -> str:
    """Whether more connections were lost than a valid trial may lose, which holds of one of several clients, too.

    A lost connection means that the server went away: what follows is not the same experiment, unless the study says
    how many may be lost.
    """
    lost = (
        sum(probe.connections_lost for probe in result.search.probes)
        if result.search
        else sum(error.count for error in result.errors if error.kind == "connection")
    )
    limit = parameters.lost_connections_limit
    if lost <= limit:
        return ""
    allowed = f", {limit} allowed" if limit else ""
    return f"{lost} connections to the server were lost or refused{allowed}{_commonest(result)}"


def _commonest(result: wire.Driven) -> str:
    if not result.errors:
        return ""
    most = max(result.errors, key=lambda error: error.count)
    return f" ({most.count} times {most.code}: {most.message})"


def checks(result: wire.Checked) -> list[Check]:
    """Conditions as the engine checked them."""
    return [
        Check(name=each.clause, statement=each.statement, violations=each.violations, examples=each.examples)
        for each in result.conditions
    ]
