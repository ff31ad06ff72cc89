"""A system and a workload that tell what was asked of them, and when, for trials with a real agent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.protocol.endpoints import FilesEndpoint
from fairtrial.record import Writer
from fairtrial.record.models import Check, PlannedTrial, TrialRecord, Window
from fairtrial.run.kinds import Parts
from fairtrial.run.trial import runner as trial_module
from fairtrial.run.trial.runner import TrialRunner
from fairtrial.settings import Effect
from fairtrial.systems import Identity, Instance
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Drive, DriveOutcome
from support.progress import Told
from support.records import planned

WHOLE = Check(name="sum", statement="nothing is lost", violations=0)
BROKEN = Check(name="sum", statement="nothing is lost", violations=2)


@dataclass
class Staged:
    """A system and a workload on stage: `calls` has what was asked, in order; attributes say how they behave."""

    calls: list[str] = field(default_factory=list)
    process: Callable[[OpenPlace], Any] | None = None
    start_error: str = ""
    drive_error: str = ""
    invalid: str = ""
    when: str = "every_trial"
    checks: list[Check] = field(default_factory=lambda: [WHOLE])
    check_error: str = ""
    scalars: Callable[[], dict[str, float]] = lambda: {"elapsed_s": 1.5}
    contradictions: Callable[[Path], list[str]] = lambda _directory: []
    at: dict[str, Callable[[Any], None]] = field(default_factory=dict)
    drives: list[Drive] = field(default_factory=list)
    launches: list[Any] = field(default_factory=list)
    announces: bool = False
    embedded: bool = False
    found: Identity = Identity(version="7", sha256="e" * 64, facts={"build": "x"})  # noqa: RUF009 - it is frozen

    def _reach(self, name: str, what: Any = None) -> None:
        self.calls.append(name)
        self.at.get(name, lambda _what: None)(what)

    def identity(self, _place: Any) -> Identity:
        self._reach("identity")
        return self.found

    def start(self, place: OpenPlace, launch: Any) -> Instance:
        self._reach("start", launch)
        self.launches.append(launch)
        if self.start_error:
            raise SystemStartError(self.start_error, hint="none")
        process = None if self.process is None else self.process(place)
        return Instance(endpoint=FilesEndpoint(directory="/nowhere"), process=process, options={"cache": "1"})

    def stop(self, _place: Any, _instance: Any, *, settled: bool) -> None:
        self._reach("stop slowly" if settled else "stop")

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        self._reach("drive", drive)
        self.drives.append(drive)
        if self.drive_error:
            raise PlaceError(self.drive_error, hint="none")
        start_ns = time.monotonic_ns()
        place.execute(["sleep", "0.05"])
        window = Window(start_ns=start_ns, end_ns=time.monotonic_ns())
        return DriveOutcome(window=window, effective={"isolation": "read"}, invalid_reason=self.invalid)

    def check_data(self, _place: Any, _endpoint: Any) -> list[Check]:
        self._reach("check")
        if self.check_error:
            raise PlaceError(self.check_error, hint="none")
        return self.checks

    @property
    def parts(self) -> Parts:
        system = SimpleNamespace(
            identity=self.identity,
            start=self.start,
            stop=self.stop,
            has_server=lambda: not self.embedded,
            has_data_directory=lambda: False,
            there=lambda: None,
            existing=lambda: None,
            disturbance=lambda *_: "",
            user=lambda place: place.server_user,
            initial=dict,
        )
        workload = SimpleNamespace(
            announces=self.announces,
            data=lambda: None,
            drive=self.drive,
            checks_after=lambda: self.when,
            check_data=self.check_data,
            scalars=lambda *_: self.scalars(),
            contradictions=self.contradictions,
        )
        return Parts(system=cast("Any", system), workload=cast("Any", workload))


@dataclass
class Stage:
    """Everything a test of one trial needs."""

    staged: Staged
    runner: TrialRunner
    writer: Writer
    progress: Told
    monkeypatch: pytest.MonkeyPatch
    directory: Path

    def run(self, of: PlannedTrial | None = None, *, has_started: bool = True) -> TrialRecord:
        return self.runner.run(of or planned(1, "a"), has_started=has_started)

    def effect(self, effect: Effect) -> None:
        """What the trial's settings do."""
        self.monkeypatch.setattr(trial_module.settings, "effects", lambda *_, **_trial: effect)

    @property
    def committed(self) -> list[str]:
        return [each.trial.id for each in self.writer.record().committed]
