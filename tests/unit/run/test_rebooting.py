"""A place that boots before every trial: this machine, with a boot that is counted in the stead of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.progress import Told
from support.records import RESOLVED, section, tiny_plan
from support.trials import Quick, run

from fairtrial import record
from fairtrial.errors import HostBootError, PlaceError
from fairtrial.places import PLACES
from fairtrial.places.local import Local
from fairtrial.places.ssh import Ssh
from fairtrial.record import Writer
from fairtrial.record.events import RunInterrupted
from fairtrial.record.models import PlannedTrial
from fairtrial.run import Run, rebooting
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import SYSTEMS
from fairtrial.wire import Agent
from fairtrial.workloads import WORKLOADS


class Boots:
    """What happened to the place, in order: `boot`, `failed`, `default`."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.failing: list[int] = []
        self.stays = False

    def open(self, agent: Agent) -> Agent:
        number = sum(each != "default" for each in self.seen)
        if number in self.failing:
            agent.close()
            self.seen.append("failed")
            raise HostBootError("debian-6.12 did not come up, in 2 attempts", hint="look at it")
        self.seen.append("boot")
        return agent

    def leave(self, _place: Local, *, holder: str) -> None:
        assert "run " in holder
        self.seen.append("default")
        if self.stays:
            raise PlaceError("the host does not come back", hint="look at it")


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> Boots:
    found, opens = Boots(), Local.open

    def opened(place: Local, **options: Any) -> Agent:
        return found.open(opens(place, **options))

    monkeypatch.setattr(PLACES["local"], "boots_anew", True)
    monkeypatch.setattr(PLACES["local"], "open", opened)
    monkeypatch.setattr(PLACES["local"], "leave", lambda place, *, holder: found.leave(place, holder=holder))
    return found


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    command = {"system": section(SYSTEMS, "command"), "workload": section(WORKLOADS, "command", run="true")}
    arms = {"all": {arm: ResolvedTrial(place={"local": {}}, **command) for arm in "ab"}}
    plan = tiny_plan().model_copy(update={"resolved": arms})
    found = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "study: tiny\n"})
    yield found
    found.close()


class WithData(Quick):
    """Trials that start from prepared data."""

    def prepare(self, trial: PlannedTrial) -> str:  # type: ignore[override]
        super().prepare(trial)
        return "key"


def test_every_trial_begins_with_a_boot(writer: Writer, boots: Boots, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert len(quick.ran) == 4
    assert boots.seen == [*["boot"] * 4, "default"]
    assert writer.record().finished


def test_trials_that_are_planned_for_one_boot_share_it(
    writer: Writer, boots: Boots, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Round 1: both arms in a boot each; round 2: one boot for both, as cells of a round have it.
    labels = ["b01.a", "b01.b", "b02", "b02"]
    shared = [trial.model_copy(update={"boot": boot}) for trial, boot in zip(writer.plan.trials, labels, strict=True)]
    writer.plan.trials[:] = shared
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert len(quick.ran) == 4
    assert boots.seen == [*["boot"] * 3, "default"]


def test_no_trial_follows_the_making_of_data(writer: Writer, boots: Boots, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = WithData()
    run(writer, quick, monkeypatch)
    assert len(quick.ran) == 4
    assert boots.seen == ["boot", *["boot"] * 4, "default"]


def test_a_kernel_that_does_not_come_up_costs_its_block_and_not_the_run(
    writer: Writer, boots: Boots, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots.failing = [1]  # the second trial's
    quick = Quick()
    run(writer, quick, monkeypatch)
    found = writer.record()
    (lost,) = [trial for trial in found.trials if not trial.valid]
    assert lost.trial.id == found.plan.trials[1].id
    assert lost.invalid_reason == "debian-6.12 did not come up, in 2 attempts"
    assert [(event.cell, event.block) for event in found.voided] == [(lost.trial.cell, lost.trial.block)]
    assert len(found.added) == 1
    assert sum(trial.valid for trial in found.trials) == 5
    assert boots.seen[-1] == "default"


def test_the_default_kernel_comes_back_when_a_run_ends_in_an_error(
    writer: Writer, boots: Boots, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots.stays = True
    with pytest.raises(PlaceError, match="starts from other data"):
        run(writer, Quick(content="hash-of-"), monkeypatch)
    assert boots.seen[-1] == "default"


def test_a_run_whose_host_does_not_come_back_is_not_finished(
    writer: Writer, boots: Boots, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots.stays = True
    with pytest.raises(PlaceError, match="does not come back"):
        run(writer, Quick(), monkeypatch)
    assert isinstance(writer.record().events[-1], RunInterrupted)


@pytest.fixture
def with_clients(tmp_path: Path) -> Iterator[Writer]:
    """A run whose system and both clients are on hosts that boot."""
    system, *clients = (
        Section({"ssh": {"host": host, "boot": {"by": "kexec", "kernel": "debian-6.12"}}})
        for host in ("db", "c1", "c2")
    )
    trial = RESOLVED.model_copy(
        update={"place": system, "workload_place": clients[0], "further_places": tuple(clients[1:])}
    )
    plan = tiny_plan().model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}})
    found = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "study: tiny\n"})
    yield found
    found.close()


def leaving(monkeypatch: pytest.MonkeyPatch, lost: Mapping[str, BaseException]) -> list[str]:
    """Hosts that were told to go back, as they are told; those of `lost` do not."""
    seen: list[str] = []

    def leave(place: Ssh, *, holder: str) -> None:
        assert "run " in holder
        seen.append(place.parameters.host)
        if place.parameters.host in lost:
            raise lost[place.parameters.host]

    monkeypatch.setattr(Ssh, "leave", leave)
    return seen


def test_hosts_of_clients_go_back_to_their_default_too_whichever_of_them_does_not(
    with_clients: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {host: PlaceError(f"{host} does not come back", hint="look at it") for host in ("db", "c1")}
    seen = leaving(monkeypatch, lost)
    with pytest.raises(PlaceError, match="db does not come back"), rebooting.default_again(with_clients, Told()):
        pass
    assert seen == ["db", "c1", "c2"]


def test_a_host_that_does_not_come_back_is_waited_for_once_however_many_kernels_it_booted(
    with_clients: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its power is turned each time that it is."""
    of_arms = with_clients.plan.resolved["all"]
    for arm, (port, kernel) in {"b": (None, "debian-6.1"), "c": (2201, "debian-6.1")}.items():
        ssh = {"host": "db", "port": port, "boot": {"by": "kexec", "kernel": kernel}}
        of_arms[arm] = of_arms["a"].model_copy(update={"place": Section({"ssh": ssh})})
    seen = leaving(monkeypatch, {"db": PlaceError("db does not come back", hint="look at it")})
    with pytest.raises(PlaceError, match="db does not come back"), rebooting.default_again(with_clients, Told()):
        pass
    assert seen == ["db", "c1", "c2", "db"], "that of another port is another"


def test_a_second_interrupt_leaves_no_host_behind_without_a_word(
    with_clients: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, told = leaving(monkeypatch, {"db": KeyboardInterrupt()}), Told()
    with pytest.raises(KeyboardInterrupt, match="the first"), rebooting.default_again(with_clients, told):
        raise KeyboardInterrupt("the first")
    assert seen == ["db", "c1", "c2"]
    assert told.notes[0] == "bringing hosts back to their default kernels, which may take a restart"
    assert [note.split(":")[0] for note in told.notes[1:]] == [
        "ssh db booting debian-6.12 may still run a kernel of this run (interrupted)"
    ]
    with pytest.raises(KeyboardInterrupt), rebooting.default_again(with_clients, told):
        seen.clear()
    assert seen == ["db", "c1", "c2"]


def test_kernels_of_clients_are_fetched_before_anything_starts(
    with_clients: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(Ssh, "fetched", lambda place: fetched.append(place.parameters.host))
    Run(writer=with_clients, progress=Told())._fetch()
    assert fetched == ["db", "c1", "c2"]
