"""A service's own way to stop, and what happens where it fails."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from pathlib import Path, PurePosixPath

import pytest

from fairtrial.places import open_place
from fairtrial.systems.instance import Launch
from fairtrial.systems.service import Service
from fairtrial.systems.service.parameters import ServiceParameters
from fairtrial.wire.open_place import OpenPlace

# Writes down each SIGTERM, and takes some time to end after the first.
COUNTING = """
import pathlib, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
pathlib.Path("ready").touch()
signal.sigwait([signal.SIGTERM])
more = signal.sigtimedwait([signal.SIGTERM], 0.2)
pathlib.Path("count").write_text("1" if more is None else "2")
"""


@pytest.mark.parametrize("stop", ["false", "no-such-program"])
def test_a_command_that_does_not_stop_it_costs_no_time(tmp_path: Path, stop: str) -> None:
    work = PurePosixPath(tmp_path)
    service = Service(ServiceParameters.model_validate({"run": "sleep 600", "stop": stop}))
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        place = OpenPlace(agent)
        instance = service.start(place, Launch(work, work, work / "log"))
        began_s = time.monotonic()
        service.stop(place, instance, settled=False)
        assert time.monotonic() - began_s < place.limits.shutdown_s / 2
        assert instance.process is not None
        assert instance.process.exited is not None
        assert instance.process.exited.signal == signal.SIGTERM


def test_one_that_takes_a_second_sigterm_for_now_gets_one(tmp_path: Path) -> None:
    work = PurePosixPath(tmp_path)
    run = shlex.join([sys.executable, "-c", COUNTING])
    service = Service(ServiceParameters.model_validate({"run": run, "ready": {"command": f"test -e {work}/ready"}}))
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        place = OpenPlace(agent)
        service.stop(place, service.start(place, Launch(work, work, work / "log")), settled=False)
    assert (tmp_path / "count").read_text() == "1"
