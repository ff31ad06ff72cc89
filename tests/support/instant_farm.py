"""A back end whose hosts take no time: blocks come back in an order of its own, as a test says what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import PlaceError
from fairtrial.farm import children
from fairtrial.farm.controller import FarmRun
from fairtrial.farm.executor import Returned
from fairtrial.farm.orders import Order, Outcome
from fairtrial.record import Writer
from fairtrial.record.files import hashes
from fairtrial.record.models import Clock, PlaceOpened, TrialFinished
from fairtrial.study.resolved import Section
from support.progress import Told
from support.records import trial_record

Fate = Callable[[str, Order, Outcome], Outcome | str]
UNDONE = "default kernel again"
LEAVING_S = {"alpha": 0.3, "slow": 60.0}


def as_it_was(_host: str, _order: Order, outcome: Outcome) -> Outcome:
    """Every block comes back whole."""
    return outcome


class InstantFarm:
    """See `Executor`.

    Args:
        hosts: by name.
        fate: what becomes of a block on a host: another outcome, or why it was lost.
        facts: of the hosts that differ from others.
    """

    kinds: Sequence[str] = ("local",)
    has_places = True

    def __init__(
        self,
        *hosts: str,
        fate: Fate = as_it_was,
        facts: dict[str, dict[str, str]] | None = None,
        invalid: Sequence[str] = (),
    ) -> None:
        self.hosts, self.fate, self.facts, self.invalid = list(hosts), fate, facts or {}, invalid
        self.out: dict[str, Order] = {}
        self.ran: list[tuple[str, str, int]] = []
        self.closed, self.killed = False, list[str]()

    def __call__(self, directory: Path) -> InstantFarm:
        """Where blocks come back."""
        self.directory = directory
        return self

    def idle(self) -> Sequence[str]:
        if not self.hosts:
            raise PlaceError("no host is left", hint="")
        return [host for host in self.hosts if host not in self.out]

    def submit(self, order: Order, *, host: str) -> None:
        self.out[host] = order
        self.ran.append((host, order.cell, order.block))

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        del timeout_s
        out, self.out = self.out, {}
        return [self._back(host, order) for host, order in reversed(out.items())]

    def _back(self, host: str, order: Order) -> Returned:
        outcome = self.fate(host, order, self._outcome(host, order))
        if isinstance(outcome, str):
            return Returned(order, host, lost=outcome)
        return Returned(order, host, outcome, self.directory / host)

    def _outcome(self, host: str, order: Order) -> Outcome:
        trials, finished = [], []
        for planned in order.trials:
            trial = trial_record(planned, valid=planned.id not in self.invalid)
            directory = self.directory / host / planned.id
            directory.mkdir(parents=True)
            (directory / "trial.json").write_text(trial.model_dump_json(), encoding="utf-8")
            trials.append(trial)
            finished.append(TrialFinished(trial=planned.id, valid=trial.valid, files=hashes(directory)))
        facts = {"kernel": "6.1", "processor_model": "one", **self.facts.get(host, {})}
        place = PlaceOpened(
            place=Section({"local": {}}),
            facts=dict(facts),
            agent_sha256="a",
            clock=Clock(monotonic_ns=1, realtime_ns=2),
            server_user=None,
            host=host,
        )
        return Outcome(host=host, trials=trials, finished=finished, places=[place])

    def bar(self, host: str) -> None:
        self.hosts.remove(host)

    def close(self) -> Sequence[str]:
        self.closed = True
        return self.killed


def executed(writer: Writer, farm: InstantFarm) -> FarmRun:
    """A run, to its end or its error."""
    run = FarmRun(writer=writer, progress=Told(), farm=farm)
    try:
        run.execute()
    finally:
        writer.close()
    return run


def leaving(host: str, directory: Path, connection: Connection) -> None:
    """Takes its time to undo what its block changed, as a host that boots does."""
    directory.mkdir(parents=True)
    try:
        connection.send_bytes(b"in its block")
        connection.poll(None)
        time.sleep(60)  # the signal comes once the connection is closed
    except KeyboardInterrupt:
        time.sleep(LEAVING_S[host])
        (directory / UNDONE).touch()


def unstarted(monkeypatch: pytest.MonkeyPatch, *, ended: str) -> list[Connection]:
    """Children of a farm that are no processes: the other ends of their connections, and how each is said to end."""
    others: list[Connection] = []

    def child(*_arguments: Any, name: str) -> tuple[str, Connection]:
        ours, theirs = Pipe()
        others.append(theirs)
        return name, ours

    monkeypatch.setattr(children, "child", child)
    monkeypatch.setattr(children, "how", lambda _process: ended)
    return others
