"""Blocks on several hosts: the same tests for hosts that places reach and for nodes of a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command_line import Desk, desk, eventually
from support.machines.holding import Held
from support.machines.ray_cluster import ray_cluster
from support.spread_runs import study_of, whole

from fairtrial import record
from fairtrial.record.events import HostLeft
from fairtrial.run.processes import parent

BOTH = pytest.mark.parametrize("hosts", ["places", "ray"], indirect=True)
PLACES_FIRST = pytest.mark.parametrize("hosts", ["places", pytest.param("ray", marks=pytest.mark.long)], indirect=True)
HOSTS = ("alpha", "beta", "gamma")


@dataclass
class Farm:
    """A farm of three hosts on this machine.

    Attributes:
        options: of `fairtrial run`.
        states: where the hosts' state directories are.
    """

    here: Desk
    options: tuple[str, ...]
    states: Path
    environment: dict[str, str] = field(default_factory=dict)

    def study(self, *, blocks: int = 6) -> Path:
        return self.here.study(study_of(Held(self.here).run, blocks=blocks))

    def agents(self) -> dict[str, int]:
        """The agent of every host that has one, by the host's name."""
        return {name: pid for name in HOSTS for pid in Desk(self.here.directory, self.states / name).agent_pids()}


@pytest.fixture(scope="module")
def hosts(request: pytest.FixtureRequest) -> Iterator[Farm]:
    with desk() as here:
        states = here.directory / "hosts"
        states.mkdir()
        if request.param == "places":
            lines = [f"  {name}: {{local: {{state_directory: {states / name}}}}}" for name in HOSTS]
            file = here.study("\n".join(["hosts:", *lines]), "hosts.yaml")
            yield Farm(here, ("--places", str(file)), states)
        else:
            with ray_cluster(states, HOSTS) as cluster:
                yield Farm(here, ("--farm", cluster.address), states, cluster.environment)


@pytest.fixture
def farm(hosts: Farm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    for name, value in hosts.environment.items():
        monkeypatch.setenv(name, value)
    with desk() as here:
        yield Farm(here, hosts.options, hosts.states)
    assert hosts.agents() == {}, "agents were left behind"


@BOTH
def test_every_host_runs_blocks_and_the_record_is_one(farm: Farm) -> None:
    held = Held(farm.here)
    study = farm.study()
    held.hold()
    run = farm.here.start("run", study, *farm.options)
    # Else two that come up quickly may have run all blocks before the third is there.
    eventually(lambda: len(farm.agents()) == len(HOSTS), "every host has a block")
    held.release()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    found = record.read(farm.here.run)
    assert set(whole(found, blocks=6)) == set(HOSTS)
    assert {place.host for place in found.places} == set(HOSTS)
    assert "3 hosts" in output
    assert not (found.directory / ".farm").exists()
    farm.here.fairtrial("verify", found.directory)


@PLACES_FIRST
def test_a_host_whose_process_is_killed_loses_its_block_alone(farm: Farm) -> None:
    held = Held(farm.here)
    study = farm.study()
    held.hold()
    run = farm.here.start("run", study, *farm.options)
    eventually(lambda: len(farm.agents()) == len(HOSTS), "every host has a block")
    os.kill(parent(farm.agents()["beta"]), signal.SIGKILL)
    held.release()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    found = record.read(farm.here.run)
    whole(found, blocks=6)
    assert len(found.voided) == 1
    assert [event.replaces for event in found.added] == [found.voided[0].block]
    farm.here.fairtrial("verify", found.directory)


@PLACES_FIRST
def test_a_killed_controller_goes_on_where_it_was(farm: Farm) -> None:
    held = Held(farm.here)
    study = farm.study(blocks=9)
    held.hold(after=7)  # each of three hosts may have half a block
    run = farm.here.start("run", study, *farm.options)
    eventually(lambda: farm.here.runs and len(list(farm.here.run.glob("trials/*.*"))) >= 4, "some trials are committed")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    held.release()
    before = {trial.trial.id: trial.finished for trial in record.read(farm.here.run).trials}
    farm.here.fairtrial("run", farm.here.run, "--resume", *farm.options)
    found = record.read(farm.here.run)
    whole(found, blocks=9)
    assert before.items() <= {trial.trial.id: trial.finished for trial in found.trials}.items()
    farm.here.fairtrial("verify", found.directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
@pytest.mark.parametrize("hosts", ["places"], indirect=True)
def test_a_host_with_a_full_disk_gets_no_more_blocks(farm: Farm) -> None:
    small = farm.states / "alpha"
    small.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "none", small], check=True)
    try:
        farm.here.fairtrial("run", farm.study(), *farm.options)
    finally:
        subprocess.run(["umount", "-l", small], check=True)
    found = record.read(farm.here.run)
    assert set(whole(found, blocks=6)) == {"beta", "gamma"}
    (left,) = [event for event in found.events if isinstance(event, HostLeft)]
    assert left.host == "alpha"
    assert "the disk of" in left.reason
