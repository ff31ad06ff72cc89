"""A service's own way to stop, and what happens where it fails."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path, PurePosixPath

import pytest

from fairtrial.places import open_place
from fairtrial.systems import server
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
def test_a_command_that_does_not_stop_it_costs_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "shutdown_s=100000")  # whoever waits so long never comes to SIGTERM
    work = PurePosixPath(tmp_path)
    service = Service(ServiceParameters.model_validate({"run": "sleep 600", "stop": stop}))
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        place = OpenPlace(agent)
        instance = service.start(place, Launch(work, work, work / "log"))
        assert place.limits.shutdown_s == 100_000
        service.stop(place, instance, settled=False)
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


@pytest.mark.parametrize(
    ("start", "ends"),
    [
        # By its group, whose SIGTERM it ignores, though it has no mark; by its mark, in a session of its own.
        ("env -i sh -c 'trap \"\" TERM; echo $$ >child; while :; do sleep 0.05; done' & wait", False),
        ("setsid sh -c 'echo $$ >child; exec sleep 1000' & wait", False),
        ("sleep 1000 & echo $! >child", True),  # the service itself crashes
    ],
)
def test_what_a_service_leaves_running_is_not_beside_the_next_trial(tmp_path: Path, start: str, *, ends: bool) -> None:
    work, child = PurePosixPath(tmp_path), tmp_path / "child"
    run = shlex.join(["sh", "-c", start])
    service = Service(ServiceParameters.model_validate({"run": run, "ready": {"command": f"test -s {child}"}}))
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        place = OpenPlace(agent)
        if ends:
            server.spawned(place, ["sh", "-c", start], Launch(work, work, work / "log"), user=None).wait(60.0)
        else:
            service.stop(place, service.start(place, Launch(work, work, work / "log")), settled=False)
        assert is_running(child)
        bystander = agent.spawn("bystander", ["sleep", "1000"])
        assert agent.sweep(0.2).left == 0
        assert not is_running(child)
        assert bystander.exited is None, "what is no trial's stays"
        assert agent.sweep(0.2).programs == []


def is_running(child: Path) -> bool:
    """Whether the process whose number is in a file runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{child.read_text().strip()}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end while it is looked at
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
