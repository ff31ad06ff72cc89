"""The load of one trial: by one client, or by several that begin at one instant.

Owns where each client works, the agreed start, and what becomes of the others when one fails.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.errors import AgentError, FairtrialError, PlaceError, StreamLostError, StuckError
from fairtrial.metrics import fleet
from fairtrial.protocol.endpoints import Endpoint
from fairtrial.protocol.generated import FleetShare, RateProgress, ReadyProgress, SqliteEndpoint, Tls
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import ClientRecord, ClockShift
from fairtrial.run import elsewhere
from fairtrial.run.trial import workspace
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.settings.steps.effect import Effect
from fairtrial.systems import Instance
from fairtrial.wire import Agent
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import Process
from fairtrial.workloads import Drive, DriveOutcome, OnProgress, Workload

POLL_S: Final = 0.01
# From the agreement to the start: a file with it goes to one client after the other, each a round trip or two away.
LEAD_NS: Final = 500_000_000
TELL: Final = 'echo "$2" >"$1.new" && mv "$1.new" "$1"'  # the file appears whole
HALF_TRIPS: Final = 6  # of each client: what bounds the error of its clock is half a trip at least
ENDED_S: Final = 30.0  # for clients that were told to end to write what they have


@dataclass(frozen=True)
class Driver:
    """Where a client works.

    Attributes:
        number: of the client, from 1.
        desk: the trial's directory there: `out` and, unless a setting moves it, `work`.
        work: for what becomes no part of the record.
        address: of the system's place as this client sees it; None: it is beside the system.
        title: the place in words.
        raw: where in the trial's directory its raw files go.
    """

    place: OpenPlace
    desk: PurePosixPath
    work: PurePosixPath
    number: int = 1
    address: str | None = None
    title: str = ""
    raw: str = ""

    @property
    def words(self) -> str:
        """How a sentence names it."""
        return f"client {self.number} ({self.title})"

    def endpoint(self, instance: Instance, *, authorities: bytes | None) -> Endpoint | None:
        """How it reaches a running system; `authorities`: who signed the server's certificate, if it has one."""
        if self.address is None:
            return instance.endpoint
        if instance.remote is None or isinstance(instance.remote, SqliteEndpoint) or not instance.is_at_place:
            return instance.remote
        changed: dict[str, object] = {"host": self.address}
        if authorities is not None:
            path = self.work / "authorities.pem"
            self.place.agent.put(str(path), authorities)
            changed["tls"] = Tls(authorities=str(path))
        return instance.remote.model_copy(update=changed)


def drivers(
    clients: Sequence[elsewhere.Client], *, beside: Driver, trial: tuple[str, str], chosen: str | None
) -> list[Driver]:
    """Where a trial's clients work.

    Args:
        clients: other places than the system's; none: its workload runs beside its system.
        beside: where it works then.
        trial: names of the run and the trial, by which its directories are found.
        chosen: the address of the system's place that the study chooses.
    """
    made: list[Driver] = []
    for number, client in enumerate(clients, start=1):
        desk = workspace.work_directory(client.place, *trial)
        made.append(
            Driver(
                place=client.place,
                desk=desk,
                work=desk / "work",
                number=number,
                address=chosen or client.address,
                title=client.title,
                raw=f"{fleet.DIRECTORY}/{number}" if len(clients) > 1 else "",
            )
        )
    return made or [beside]


def load_processors(effect: Effect, *, served: bool) -> tuple[int, ...] | None:
    """The client's set; without a server, the system runs in the load's process and the server's set is its."""
    return effect.client_processors if served else effect.server_processors or effect.client_processors


def load_groups(effect: Effect, *, served: bool) -> tuple[str, ...]:
    """The client's groups; without a server, the system runs in the load's process and the server's are its."""
    return effect.client_groups if served else effect.server_groups or effect.client_groups


@dataclass
class _Client:
    """One of several clients under way."""

    driver: Driver
    ready: threading.Event = field(default_factory=threading.Event)
    process: Process | None = None
    abandoned: bool = False

    def started(self, process: Process) -> None:
        self.process = process
        if self.abandoned:
            self.abandon()

    def abandon(self) -> None:
        """Ends it, now or as soon as it has started."""
        self.abandoned = True
        if self.process is not None and self.process.exited is None:
            with contextlib.suppress(FairtrialError, TimeoutError):
                self.process.stop(ENDED_S)


@dataclass
class _Progress:
    """Progress of several clients as one: the first one's phases, and rates added up."""

    inner: OnProgress
    rates: dict[int, RateProgress] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, client: _Client) -> OnProgress:
        """What a client's lines go to."""
        number = client.driver.number

        def hear(line: ProgressLine) -> None:
            if isinstance(line, ReadyProgress):
                client.ready.set()
            elif isinstance(line, RateProgress):
                with self.lock:
                    self.rates[number] = line
                    together = _rate(list(self.rates.values()))
                if number == 1:
                    self.inner(together)
            elif number == 1:
                self.inner(line)

        return hear


def _rate(rates: Sequence[RateProgress]) -> RateProgress:
    """All clients' last rates. Percentiles do not add up: the largest of them is shown."""
    return RateProgress(
        progress="rate",
        per_s=sum(rate.per_s for rate in rates),
        errors=sum(rate.errors for rate in rates),
        p95_ns=max((rate.p95_ns for rate in rates if rate.p95_ns is not None), default=None),
        p99_ns=max((rate.p99_ns for rate in rates if rate.p99_ns is not None), default=None),
    )


def driven(
    system: Agent, drivers: Sequence[Driver], drives: Sequence[Drive], *, workload: Workload[Any], kept: TrialOutcome
) -> DriveOutcome:
    """Drives with one client, or with several at once.

    Args:
        system: the agent of the system's place, by whose clock a start is agreed.
        drivers: the clients.
        drives: one for each client, of the whole workload.
        workload: which is divided among several.
        kept: notes how far the clients' clocks are from the system's, and when they were to begin.

    Returns:
        The first client's window, and the first reason why a client's part cannot count.

    Raises:
        StreamLostError: a client's stream ended; where there are several, the error names it.
        StuckError: a client's load does not end; the same.
        PlaceError: a client failed; the same.
    """
    shifts = [elsewhere.shift(system, driver.place.agent) for driver in drivers if driver.address is not None]
    kept.clock_shift = shifts[0] if shifts else None
    if len(drivers) > 1:
        return _Fleet(system, drivers, shifts, kept.clients).drive(workload, drives)
    return workload.drive(drivers[0].place, drives[0])


@dataclass
class _Fleet:
    """A drive by several clients; `records` is what the record keeps of them."""

    system: Agent
    drivers: Sequence[Driver]
    shifts: Sequence[ClockShift]
    records: list[ClientRecord]

    def drive(self, workload: Workload[Any], drives: Sequence[Drive]) -> DriveOutcome:
        """Drives with all clients at once."""
        numbers = workload.divided(len(self.drivers))
        progress = _Progress(drives[0].on_progress)
        clients = [_Client(driver) for driver in self.drivers]
        users = sum(len(own) for own in numbers)
        with concurrent.futures.ThreadPoolExecutor(len(clients), thread_name_prefix="fairtrial-client") as pool:
            futures = [
                pool.submit(
                    workload.drive,
                    client.driver.place,
                    replace(
                        drive,
                        share=FleetShare(
                            client=client.driver.number - 1,
                            clients=len(clients),
                            users=users,
                            user_numbers=own,
                            start_path=str(_start_path(client.driver)),
                        ),
                        on_progress=progress.of(client),
                        on_start=client.started,
                    ),
                )
                for client, drive, own in zip(clients, drives, numbers, strict=True)
            ]
            ended: list[concurrent.futures.Future[DriveOutcome]] = []
            for future in futures:
                future.add_done_callback(ended.append)
            try:
                self._start(clients, futures, users=[len(own) for own in numbers])
                concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
            finally:
                if any(not future.done() or future.exception() is not None for future in futures):
                    for client in clients:  # without one of them, the others measure something else
                        client.abandon()
        return _outcome(self.drivers, futures, ended)

    def _start(
        self,
        clients: Sequence[_Client],
        futures: Sequence[concurrent.futures.Future[DriveOutcome]],
        *,
        users: Sequence[int],
    ) -> None:
        """Waits until every client is ready, and tells each when to begin, in its own clock."""
        while not all(client.ready.is_set() for client in clients):
            if any(future.done() for future in futures):
                return  # before it was told to begin: it has failed
            time.sleep(POLL_S)
        lead_ns = LEAD_NS + HALF_TRIPS * sum(shift.error_ns for shift in self.shifts)
        start_ns = self.system.clock().monotonic_ns + lead_ns
        for client, shift, count in zip(clients, self.shifts, users, strict=True):
            own_ns = start_ns + shift.shift_ns
            self.records.append(
                ClientRecord(place=client.driver.title, users=count, start_ns=own_ns, clock_shift=shift)
            )
            with contextlib.suppress(StreamLostError):  # whoever waits for its drive is told, and names it
                _tell_start(client.driver, own_ns)


def _tell_start(driver: Driver, start_ns: int) -> None:
    """Without waiting for the disk, as `put` does: a start that comes late is none."""
    argv = ["sh", "-c", TELL, "sh", str(_start_path(driver)), str(start_ns)]
    driver.place.require(argv, hint="the client's place needs a shell, and room for files")


def _start_path(driver: Driver) -> PurePosixPath:
    return driver.work / "start"


def _outcome(
    drivers: Sequence[Driver],
    futures: Sequence[concurrent.futures.Future[DriveOutcome]],
    ended: Sequence[concurrent.futures.Future[DriveOutcome]],
) -> DriveOutcome:
    """What the drives of all clients come to.

    Where several failed, a lost stream is the cause of the rest, or the one that `ended` first.
    """
    of = dict(zip(futures, drivers, strict=True))
    failed = [(of[each], error) for each in ended if (error := each.exception())]
    failed.sort(key=lambda each: not isinstance(each[1], StreamLostError))
    for driver, error in failed:
        if isinstance(error, StreamLostError | StuckError):
            raise type(error)(f"{driver.words}: {error}", hint=error.hint) from error
        if isinstance(error, PlaceError) and not isinstance(error, AgentError):
            raise PlaceError(f"{driver.words}: {error}", hint=error.hint) from error
        raise error
    outcomes = [future.result() for future in futures]
    first = outcomes[0]
    reasons = [
        f"{driver.words}: {outcome.invalid_reason}"
        for driver, outcome in zip(drivers, outcomes, strict=True)
        if outcome.invalid_reason
    ]
    return replace(first, invalid_reason=reasons[0] if reasons else "")
