"""A service's own way to stop, and what happens where it fails."""

from __future__ import annotations

import signal
import time
from pathlib import Path, PurePosixPath

import pytest

from fairtrial.places import open_place
from fairtrial.systems.instance import Launch
from fairtrial.systems.service import Service
from fairtrial.systems.service.parameters import ServiceParameters
from fairtrial.wire.open_place import OpenPlace


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
