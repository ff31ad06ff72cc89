"""The load of a trial by several clients: real load generators against the no-operation server, and their ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.command_line import eventually
from support.machines.places import place_here, place_in_memory, spawned
from support.progress import Told

from fairtrial.errors import PlaceError, StreamLostError
from fairtrial.metrics import fleet
from fairtrial.protocol.generated import MysqlEndpoint, RateProgress
from fairtrial.record.models import ClockShift
from fairtrial.run import elsewhere
from fairtrial.run.trial import driving, sampling, workspace
from fairtrial.run.trial.driving import Driver
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.settings import Effect
from fairtrial.systems import Instance
from fairtrial.wire import find_agent
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS, Drive

HOUR_NS = 3_600_000_000_000


class Later:
    """An agent whose clock tells an hour more than it is, and hears of times by that clock."""

    def __init__(self, place: OpenPlace) -> None:
        self._agent = place.agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def clock(self) -> Any:
        found = self._agent.clock()
        return found.model_copy(update={"monotonic_ns": found.monotonic_ns - HOUR_NS})


@dataclass
class Fleet:
    """Two clients at places of this machine, and what they load."""

    system: OpenPlace
    drivers: list[Driver]
    socket: Path
    told: Told = field(default_factory=Told)
    kept: TrialOutcome = field(default_factory=TrialOutcome)

    def drive(self, **parameters: Any) -> Any:
        workload = WORKLOADS["oltp"](WORKLOADS["oltp"].model.model_validate({**PARAMETERS, **parameters}))
        drives = [
            Drive(
                endpoint=MysqlEndpoint(socket=str(self.socket), user="root", database="none"),
                seed=1,
                directory=driver.desk / "out",
                work_directory=driver.work,
                environment={},
                processors=None,
                on_progress=self.told.load,
            )
            for driver in self.drivers
        ]
        return driving.driven(self.system.agent, self.drivers, drives, workload=workload, kept=self.kept)

    def collected(self, local: Path) -> Path:
        for driver in self.drivers:
            workspace.fetch(driver.place, driver.desk / "out", local / driver.raw)
        sampling.to_parquet(local)
        fleet.merge(local)
        return local


# What the server's canned answer says of any table is that its last key is 1.
PARAMETERS: dict[str, Any] = {
    "profile": "point_select",
    "table_size": 1,
    "virtual_users": 3,
    "ramp_up": 0.1,
    "duration": 2,
    "interval": 0.1,
    "distribution": "uniform",
}


def serve(socket: Path) -> subprocess.Popen[str]:
    """A server that answers and does nothing, until its input ends."""
    server = subprocess.Popen([find_agent(), "noop"], stdin=subprocess.PIPE, text=True)
    assert server.stdin is not None
    server.stdin.write(json.dumps({"socket": str(socket)}) + "\n")
    server.stdin.flush()
    return server


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(driving, "LEAD_NS", 6_000_000_000)  # who tells the start may be stopped while it does
    socket = tmp_path / "socket"
    with (
        place_here(tmp_path / "system") as system,
        place_here(tmp_path / "one") as one,
        place_here(tmp_path / "other") as other,
    ):
        server = serve(socket)
        clients = [elsewhere.Client(place=place, address="10.0.0.1", title="here") for place in (one, other)]
        beside = Driver(system, PurePosixPath("/unused"), PurePosixPath("/unused"))
        drivers = driving.drivers(clients, beside=beside, trial=("run", "trial"), chosen=None)
        for driver in drivers:
            workspace.make(driver.place, driver.desk / "out")
            workspace.make(driver.place, driver.work)
        eventually(socket.exists, "the no-operation server")
        yield Fleet(system, drivers, socket)
        server.communicate()
        assert server.returncode == 0


@pytest.mark.waits
def test_clients_drive_together_and_their_files_add_up(both: Fleet, tmp_path: Path) -> None:
    outcome = both.drive(think_time=0.01)
    assert outcome.invalid_reason == ""
    first, second = both.kept.clients
    assert (first.users, second.users) == (2, 1), "what is left over goes to the first"
    assert both.kept.clock_shift == first.clock_shift
    assert outcome.window.start_ns == first.start_ns + 100_000_000
    for driver, client in zip(both.drivers, both.kept.clients, strict=True):
        result = json.loads(Path(driver.desk / "out" / "result.json").read_bytes())
        assert result["window"]["start_ns"] == client.start_ns + 100_000_000, "each began when it was told"
    local = both.collected(tmp_path / "record")
    results = [json.loads((each / "result.json").read_bytes()) for each in fleet.directories(local)]
    whole = json.loads((local / "result.json").read_bytes())
    done = [result["transactions"]["point_select"]["committed"] for result in results]
    assert min(done) > 0
    assert whole["transactions"]["point_select"]["committed"] == sum(done)
    assert len(whole["loops"]) == sum(len(result["loops"]) for result in results)
    workload = WORKLOADS["oltp"](WORKLOADS["oltp"].model.model_validate({**PARAMETERS, "think_time": 0.01}))
    assert workload.contradictions(local) == []
    scalars = workload.scalars(local, outcome.window)
    assert scalars["throughput_tps"] == pytest.approx(sum(done) / 2)
    assert scalars["latency_count"] == sum(scalars[f"client_{number}_latency_count"] for number in (1, 2))
    assert scalars["client_busy_share"] == max(scalars[f"client_{number}_busy_share"] for number in (1, 2))
    kinds = [line.progress for line in both.told.lines]
    assert kinds.count("ramp_up") == kinds.count("measuring") == 1, "the first client's phases are those of all"


def test_a_client_is_told_the_start_in_its_own_clock(both: Fleet) -> None:
    other = both.drivers[1].place
    other.agent = Later(other)  # type: ignore[assignment]
    with pytest.raises(PlaceError, match=r"client 2 \(here\): oltp-drive: no start together .* too late"):
        both.drive()
    first, second = both.kept.clients
    assert abs(second.start_ns - first.start_ns + HOUR_NS) <= first.clock_shift.error_ns + second.clock_shift.error_ns


@pytest.mark.waits
def test_an_open_loop_has_the_arrivals_of_one_client(both: Fleet, tmp_path: Path) -> None:
    both.drive(rate=100, spacing="constant")
    local = both.collected(tmp_path / "record")
    whole = json.loads((local / "result.json").read_bytes())
    assert whole["arrivals"]["offered"] == 200
    results = [json.loads((each / "result.json").read_bytes()) for each in fleet.directories(local)]
    assert [result["arrivals"]["offered"] for result in results] == [100, 100]
    assert (local / "lateness.hlog").exists()


def test_a_client_that_dies_ends_the_others_and_is_named(both: Fleet) -> None:
    threading.Thread(target=kill, args=(both.drivers[1],), daemon=True).start()
    with pytest.raises(PlaceError, match=r"client 2 \(here\): `oltp-drive` ended with signal SIGKILL"):
        both.drive(duration=60)


@pytest.mark.waits
def test_a_lost_client_is_named_and_the_others_are_ended(both: Fleet) -> None:
    def lose() -> None:
        eventually(lambda: "measuring" in [line.progress for line in both.told.lines], "the window")
        both.drivers[0].place.agent._stream.lose("cut on purpose")

    threading.Thread(target=lose, daemon=True).start()
    with pytest.raises(StreamLostError, match=r"client 1 \(here\): .*cut on purpose"):
        both.drive(duration=60, think_time=0.01)
    assert not drives(both.drivers[1])


def drives(driver: Driver) -> list[int]:
    """Load generators of a client, which write below its desk."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            is_ours = entry.name.isdigit() and b"oltp-drive" in (entry / "cmdline").read_bytes()
            open_files = [str(each.readlink()) for each in (entry / "fd").iterdir()] if is_ours else []
        except OSError:
            continue
        if any(path.startswith(str(driver.desk)) for path in open_files):
            found.append(int(entry.name))
    return found


def kill(driver: Driver) -> None:
    eventually(lambda: drives(driver), "a load generator")
    for process in drives(driver):
        os.kill(process, signal.SIGKILL)


def test_a_load_beside_its_system_has_the_trials_own_files() -> None:
    with place_in_memory() as (place, _):
        beside = Driver(place, PurePosixPath("/desk"), PurePosixPath("/work"))
        assert driving.drivers([], beside=beside, trial=("run", "trial"), chosen=None) == [beside]
        client = elsewhere.Client(place=place, address="10.0.0.1", title="ssh far")
        (alone,) = driving.drivers([client], beside=beside, trial=("run", "trial"), chosen="10.9.9.9")
        assert (alone.raw, alone.address) == ("", "10.9.9.9")
        pair = driving.drivers([client, client], beside=beside, trial=("run", "trial"), chosen=None)
        assert [driver.raw for driver in pair] == ["clients/1", "clients/2"]
        assert pair[1].words == "client 2 (ssh far)"


def test_a_client_reaches_the_server_at_its_address_and_knows_who_signed_for_it() -> None:
    with place_in_memory() as (place, fake):
        driver = Driver(place, PurePosixPath("/desk"), PurePosixPath("/work"), address="10.0.0.1")
        remote = MysqlEndpoint(host="10.0.0.9", port=1, user="u", password="p", database="d")
        instance = Instance(endpoint=None, process=None, remote=remote)
        found = driver.endpoint(instance, authorities=None)
        assert isinstance(found, MysqlEndpoint)
        assert (found.host, found.port, found.tls) == ("10.0.0.1", 1, None)
        found = driver.endpoint(instance, authorities=b"PEM")
        assert isinstance(found, MysqlEndpoint)
        assert found.tls is not None
        assert fake.files[found.tls.authorities or ""] == b"PEM"
        there = Instance(endpoint=None, process=None, remote=remote, is_at_place=False)
        assert driver.endpoint(there, authorities=None) == remote, "a server there already says itself where it is"


def test_the_start_is_told_in_time_whatever_a_clients_disk_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `put` waits for it a second, as disks that are busy take, every start would come too late."""
    shift = ClockShift(shift_ns=7, error_ns=1)
    with place_in_memory() as (system, _), place_in_memory() as (place, fake):
        client = driving._Client(Driver(place, PurePosixPath("/desk"), PurePosixPath("/work"), title="far"))
        client.ready.set()
        subject = driving._Fleet(system.agent, [client.driver], [shift], [])
        monkeypatch.setattr(place.agent, "put", lambda *_: pytest.fail("it waits for the disk"))
        subject._start([client], [], users=[1])
        told = spawned(fake, "sh").argv
    assert told[-2:] == ["/work/start", str(subject.records[0].start_ns)]


def test_rates_of_clients_add_up_and_percentiles_do_not() -> None:
    rates = [RateProgress(per_s=10.0, errors=1, p95_ns=5, p99_ns=None), RateProgress(per_s=2.5, errors=0, p95_ns=7)]
    assert driving._rate(rates) == RateProgress(per_s=12.5, errors=1, p95_ns=7, p99_ns=None)


def test_one_process_has_one_set_of_processors_and_groups() -> None:
    effect = Effect(server_processors=(0,), server_groups=("g",))
    assert driving.load_processors(effect, served=True) is None
    assert driving.load_processors(effect, served=False) == (0,)
    assert driving.load_groups(effect, served=False) == ("g",)


def test_a_client_that_starts_after_the_others_were_given_up_is_ended(both: Fleet) -> None:
    client = driving._Client(both.drivers[0])
    client.abandon()
    process = both.system.agent.spawn("client", ["sleep", "1000"])
    client.started(process)
    assert process.exited is not None
