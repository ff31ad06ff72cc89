"""Duets: which processors are halves, and what becomes of a block of which one half is lost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from support.instant_farm import unstarted
from support.progress import Told
from support.records import RESOLVED, planned, tiny_plan

from fairtrial import record
from fairtrial.cli.running.farming import Farm
from fairtrial.errors import InputError, PlaceError
from fairtrial.farm import processors
from fairtrial.farm.duet import DuetRun
from fairtrial.farm.executor import Returned
from fairtrial.farm.halves import READY, Halves, Phase
from fairtrial.farm.orders import Order, Outcome
from fairtrial.record.models import Clock, PlaceOpened, Plan
from fairtrial.study.resolved import Section

HALF = {"a": 1, "b": 2}


def cores(directory: Path, *siblings: str) -> Path:
    """What the kernel says of cores, each given as its list of threads."""
    for threads in siblings:
        for processor in threads.split(","):
            topology = directory / f"cpu{processor}" / "topology"
            topology.mkdir(parents=True)
            (topology / "thread_siblings_list").write_text(f"{threads}\n", encoding="ascii")
    return directory


@pytest.mark.parametrize(
    ("siblings", "nodes", "expected"),
    [
        (("0", "1"), {"0": [0, 1]}, ((0,), (1,))),
        (("0,4", "1,5", "2,6", "3,7"), {"0": [*range(8)]}, ((0, 1, 4, 5), (2, 3, 6, 7))),
        (("0", "1", "2", "3"), {"0": [0, 2], "1": [1, 3]}, ((0, 2), (1, 3))),
        (("0", "1", "2"), {"0": [0, 1, 2]}, ((0,), (1,))),
    ],
)
def test_halves_are_whole_cores_and_nodes(
    tmp_path: Path, *, siblings: tuple[str, ...], nodes: dict[str, list[int]], expected: processors.Halves
) -> None:
    usable = {int(number) for threads in siblings for number in threads.split(",")}
    assert processors.halves(usable, nodes=nodes, topology=cores(tmp_path, *siblings)) == expected


@pytest.mark.parametrize(
    ("siblings", "message"),
    [
        (("0",), "needs two cores of processors, found 1"),
        (("0,1",), "needs two cores of processors, found 1"),
        (("0,1", "2"), "the halves of this machine differ: processors 0,1 and 2"),
    ],
)
def test_a_machine_without_two_equal_halves_is_refused(tmp_path: Path, siblings: tuple[str, ...], message: str) -> None:
    usable = {int(number) for threads in siblings for number in threads.split(",")}
    with pytest.raises(PlaceError, match=message) as raised:
        processors.halves(usable, nodes={"0": sorted(usable)}, topology=cores(tmp_path, *siblings))
    assert raised.value.field == "trials.order"


def plan(state: Path, *, blocks: int = 2, b: str = "true", **resolved: Any) -> Plan:
    """Duets of two commands at a place of their own."""
    place = Section({"local": {"state_directory": str(state)}})
    a = RESOLVED.model_copy(update={"place": place, **resolved})
    arms = {"a": a, "b": a.model_copy(update={"workload": Section({"command": {"run": b}})})}
    tiny = tiny_plan()
    trials = [
        planned(block, arm).model_copy(update={"half": half})
        for block in range(1, blocks + 1)
        for arm, half in HALF.items()
    ]
    design = tiny.design.model_copy(update={"blocks": blocks, "order": "duet", "voided_limit": 1})
    return tiny.model_copy(update={"resolved": {"all": arms}, "trials": trials, "design": design})


def test_a_farm_is_refused_for_duets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--places, --farm: trials\.order: `order: duet` runs both arms"):
        Farm(places=tmp_path / "hosts.yaml").require_fits(plan(tmp_path))


def test_a_half_that_fails_voids_its_block_and_lets_the_other_wait_in_vain(tmp_path: Path) -> None:
    once = tmp_path / "once"
    fails_first = f"sh -c 'test -e {once} || {{ touch {once}; exit 1; }}'"
    writer = record.create(tmp_path / "run", plan=plan(tmp_path / "state", b=fails_first), sources={"study.yaml": ""})
    told = Told()
    DuetRun(writer=writer, progress=told).execute()
    writer.close()
    found = record.read(tmp_path / "run")
    assert found.finished
    assert [(event.block, event.reason) for event in found.voided] == [(1, "all.b01.b is invalid")]
    assert [event.replaces for event in found.added] == [1]
    assert all(trial.trial.half in HALF.values() and not trial.host for trial in found.trials)
    assert record.verify_hashes(found) == []
    assert not (tmp_path / "run" / ".farm").exists()


def test_a_half_that_says_nothing_is_ended_and_its_block_void(tmp_path: Path) -> None:
    slow = {"system": Section({"command": {"run": None}})}
    writer = record.create(
        tmp_path / "run", plan=plan(tmp_path / "state", blocks=1, **slow), sources={"study.yaml": ""}
    )
    run = DuetRun(writer=writer, progress=Told(), silent_s=-1.0)  # whoever is not ready at once
    with pytest.raises(PlaceError, match="more than the limit of 1"):
        run.execute()
    writer.close()
    found = record.read(tmp_path / "run")
    assert "its process ended" in found.voided[0].reason
    assert not found.trials


class SilentHalf:
    """Two halves: the first is lost at once, and the second says nothing until it is ended."""

    def __init__(self, order: Order) -> None:
        self._order, self._lost, self._looks = order, ["duet-1"], 0

    def returned(self, _timeout_s: float) -> list[Returned]:
        self._looks += 1
        assert self._looks < 10, "waits for ever"
        lost, self._lost = self._lost, []
        return [Returned(self._order, host, lost="it ended") for host in lost]

    def ready(self) -> list[str]:
        return []

    def silent_s(self, host: str) -> float:
        assert host == "duet-2"
        return math.inf

    def end(self, host: str) -> None:
        self._lost.append(host)


def test_a_half_that_says_nothing_is_ended_when_the_other_is_lost_too(tmp_path: Path) -> None:
    made = plan(tmp_path / "state", blocks=1)
    writer = record.create(tmp_path / "run", plan=made, sources={"study.yaml": ""})
    run = DuetRun(writer=writer, progress=Told())
    run.halves = SilentHalf(Order(run="run", plan=made, started=[]))  # type: ignore[assignment]
    back, stayed = run._together({"duet-1", "duet-2"})
    assert [each.host for each in back] == ["duet-1", "duet-2"]
    assert stayed == set()
    writer.close()


def test_a_resumed_duet_does_not_go_on_on_another_machine(tmp_path: Path) -> None:
    made = plan(tmp_path / "state")
    writer = record.create(tmp_path / "run", plan=made, sources={"study.yaml": ""})
    clock, order = Clock(monotonic_ns=0, realtime_ns=0), Order(run="run", plan=made, started=[])

    def opened_at(machine: str) -> Returned:
        facts: dict[str, Any] = {"machine": machine, "processors": [0]}
        place = Section({"through": {"command": "taskset -c 0"}})
        half = PlaceOpened(place=place, facts=facts, agent_sha256="0", clock=clock, server_user=None)
        return Returned(order, "duet-1", outcome=Outcome(host="", places=[half]))

    DuetRun(writer=writer, progress=Told())._take_notes(opened_at("x86_64"), failed=False)
    DuetRun(writer=writer, progress=Told())._take_notes(opened_at("x86_64"), failed=False)
    with pytest.raises(PlaceError, match="machine was x86_64, is aarch64"):
        DuetRun(writer=writer, progress=Told())._take_notes(opened_at("aarch64"), failed=False)
    writer.close()
    assert [each.facts["machine"] for each in record.read(tmp_path / "run").places] == ["x86_64"]


def test_a_half_that_dies_while_it_waits_is_ready_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = unstarted(monkeypatch, ended="signal 9")
    halves = Halves(((0,), (1,)), tmp_path, tmp_path)
    halves.submit(Order(run="run", plan=plan(tmp_path / "state"), started=[]), host="duet-1")
    theirs[0].send_bytes(Phase(phase=READY).model_dump_json().encode())
    assert halves.returned(1) == []
    assert halves.ready() == ["duet-1"]
    theirs[0].close()
    (returned,) = halves.returned(1)
    assert returned.lost == "its process ended (signal 9)"
    assert halves.ready() == [], "its new process would take the answer for an order"
