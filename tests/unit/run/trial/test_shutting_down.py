"""A server that is shut down slowly: a real process at a real agent, whatever it does when it is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from support.machines.places import place_here

from fairtrial.errors import PlaceError
from fairtrial.metrics.telemetry import shutdown
from fairtrial.protocol.endpoints import FilesEndpoint
from fairtrial.run.kinds import Parts
from fairtrial.run.trial.shutting_down import LoadedServer, shut_down_slowly
from fairtrial.systems import Instance, Launch
from fairtrial.wire.open_place import OpenPlace

ENDS = "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"
FAILS = "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done"
DIES = "trap 'kill -9 $$' TERM; echo up; while :; do sleep 0.1; done"
FIRST, AGAIN = FilesEndpoint(directory="/first"), FilesEndpoint(directory="/again")
BEFORE_S = 5.0  # it was told so long after its load had ended
STAYS = "trap '' TERM; echo up; while :; do sleep 0.1; done"


@dataclass
class Staged:
    """A system whose server is a shell."""

    started: list[Launch] = field(default_factory=list)

    def stop(self, _place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        assert settled
        assert instance.process is not None
        assert instance.slow_shutdown_s is not None
        instance.process.stop(instance.slow_shutdown_s)

    def start(self, _place: OpenPlace, launch: Launch) -> Instance:
        self.started.append(launch)
        return Instance(endpoint=AGAIN, process=None)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as found:
        yield found


def shut_down(place: OpenPlace, here: Path, script: str, *, limit_s: float | None) -> tuple[Instance, Staged]:
    """Of a server whose load has ended `BEFORE_S` ago."""
    staged = Staged()
    process = place.agent.spawn(name="server", argv=["sh", "-c", script])
    next(process.lines())  # it handles the signal from here on
    launch = Launch(
        PurePosixPath(here / "data"), PurePosixPath(here), PurePosixPath(here / "out" / "log" / "server.log")
    )
    parts = Parts(system=cast("Any", staged), workload=cast("Any", None))
    found = shut_down_slowly(
        place,
        parts,
        LoadedServer(
            Instance(endpoint=FIRST, process=process, slow_shutdown_s=limit_s),
            launch,
            load_ended_ns=place.agent.clock().monotonic_ns - int(BEFORE_S * 1e9),
        ),
        phase=lambda _name: contextlib.nullcontext(),
    )
    if process.exited is None:
        process.stop(0.1)
    return found, staged


def test_one_that_is_not_asked_for_is_none(place: OpenPlace, tmp_path: Path) -> None:
    found, staged = shut_down(place, tmp_path, ENDS, limit_s=None)
    assert found.endpoint == FIRST
    assert staged.started == []
    assert shutdown.compute(tmp_path / "out") == {}


def test_a_server_that_ends_by_itself_is_timed_and_started_again(place: OpenPlace, tmp_path: Path) -> None:
    found, staged = shut_down(place, tmp_path, ENDS, limit_s=200)
    assert found.endpoint == AGAIN
    assert len(staged.started) == 1
    scalars = shutdown.compute(tmp_path / "out")
    assert BEFORE_S <= scalars["slow_shutdown_gap_s"] < scalars["slow_shutdown_s"] < 200
    assert scalars["slow_shutdown_censored"] == 0


def test_one_that_does_not_end_is_cut_off_at_its_limit_and_not_started(place: OpenPlace, tmp_path: Path) -> None:
    found, staged = shut_down(place, tmp_path, STAYS, limit_s=0.3)
    assert (found.process, found.endpoint) == (None, None)
    assert staged.started == []
    scalars = shutdown.compute(tmp_path / "out")
    assert scalars["slow_shutdown_s"] - scalars["slow_shutdown_gap_s"] >= 0.3, "the limit is the server's own"
    assert scalars["slow_shutdown_gap_s"] >= BEFORE_S
    assert scalars["slow_shutdown_censored"] == 1
    assert json.loads((tmp_path / "out" / shutdown.FILE).read_text())["limit_s"] == 0.3


def test_one_that_ends_in_another_way_is_an_error(place: OpenPlace, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="ended with exit code 3"):
        shut_down(place, tmp_path, FAILS, limit_s=200)


def test_one_that_somebody_else_kills_before_its_limit_is_an_error(place: OpenPlace, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="ended with signal SIGKILL"):
        shut_down(place, tmp_path, DIES, limit_s=200)
    assert shutdown.compute(tmp_path / "out") == {}
