"""What the controller of a farm decides: who gets which block, what is void, which host gets no more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.instant_farm import InstantFarm
from support.progress import Told
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.cli.running import run as command
from fairtrial.cli.running.farming import ALONE, Farm
from fairtrial.errors import InputError, PlaceError
from fairtrial.farm import handing
from fairtrial.farm.controller import FarmRun
from fairtrial.farm.executor import Returned
from fairtrial.farm.orders import Failure, Order, Outcome, order
from fairtrial.record import Record
from fairtrial.record.events import BlockLeased, FarmServed, HostLeft, RunInterrupted
from fairtrial.record.models import Cell, Plan, TrialData
from fairtrial.record.writer import Changes
from fairtrial.run import steering
from fairtrial.run.conducting import Decision
from fairtrial.study.resolved import Section


def plan(*, blocks: int = 4, cells: tuple[str, ...] = ("all",), **design: Any) -> Plan:
    """So many blocks of every cell."""
    tiny = tiny_plan()
    trials = [planned(block, arm, cell=cell) for block in range(1, blocks + 1) for cell in cells for arm in ("a", "b")]
    return tiny.model_copy(
        update={
            "cells": [Cell(name=cell, levels={}) for cell in cells],
            "resolved": {cell: {"a": RESOLVED, "b": RESOLVED} for cell in cells},
            "trials": trials,
            "design": tiny.design.model_copy(update={"blocks": blocks, "voided_limit": 4, **design}),
        }
    )


def conducted(directory: Path, farm: InstantFarm, made: Plan) -> tuple[Record, Told]:
    """A run to its end."""
    writer = record.create(directory / "run", plan=made, sources={"study.yaml": ""})
    told = Told()
    try:
        FarmRun(writer=writer, progress=told, farm=farm).execute()
    finally:
        writer.close()
        assert farm.closed
    return record.read(directory / "run"), told


def left(found: Record) -> list[str]:
    return [event.host for event in found.events if isinstance(event, HostLeft)]


def test_blocks_that_come_back_in_another_order_are_one_record(tmp_path: Path) -> None:
    found, _ = conducted(tmp_path, InstantFarm("x", "y", "z"), plan())
    assert found.finished
    assert {trial.trial.id for trial in found.trials} == {trial.id for trial in found.plan.trials}
    hosts = {trial.trial.block: trial.host for trial in found.trials}
    assert [(event.block, event.host) for event in found.events if isinstance(event, BlockLeased)] == sorted(
        hosts.items()
    )
    assert record.verify_hashes(found) == []


def test_a_host_gets_blocks_of_every_cell(tmp_path: Path) -> None:
    farm = InstantFarm("x", "y")
    conducted(tmp_path, farm, plan(blocks=6, cells=("p", "q")))
    for host in ("x", "y"):
        assert sorted(cell for each, cell, _block in farm.ran if each == host) == ["p"] * 3 + ["q"] * 3


def test_a_lost_block_is_void_and_another_host_may_run_its_replacement(tmp_path: Path) -> None:
    def fate(host: str, order: Order, outcome: Outcome) -> Outcome | str:
        return "it burned down" if (host, order.block) == ("x", 1) else outcome

    found, told = conducted(tmp_path, InstantFarm("x", "y", fate=fate), plan())
    assert [(event.block, event.reason) for event in found.voided] == [(1, "x lost it: it burned down")]
    assert [(event.block, event.replaces) for event in found.added] == [(5, 1)]
    assert {trial.trial.block for trial in found.trials} == {2, 3, 4, 5}
    assert "block 5 of all replaces block 1" in told.notes


def test_a_host_that_fails_twice_in_a_row_gets_no_more(tmp_path: Path) -> None:
    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        failure = Failure(message="its disk is full", hint="make room")
        return outcome.model_copy(update={"failure": failure}) if host == "x" else outcome

    farm = InstantFarm("x", "y", fate=fate)
    found, told = conducted(tmp_path, farm, plan())
    assert left(found) == ["x"]
    assert found.finished
    assert {trial.host for trial in found.trials} == {"y"}
    assert "x gets no more blocks: its disk is full" in told.notes
    assert sum(host == "x" for host, _cell, _block in farm.ran) == 2


def test_the_last_reason_is_told_when_no_host_is_left(tmp_path: Path) -> None:
    def fate(_host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        return outcome.model_copy(update={"failure": Failure(message="its disk is full", hint="make room")})

    with pytest.raises(PlaceError, match="its disk is full") as raised:
        conducted(tmp_path, InstantFarm("x", fate=fate), plan())
    assert raised.value.hint == "make room"


def unreachable(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
    """Of hosts that are dead no trial begins."""
    failure = Failure(message="Permission denied (publickey)", hint="load the key")
    gone = {"failure": failure, "begun": False, "trials": [], "finished": [], "places": []}
    return outcome.model_copy(update=gone) if host.startswith("dead") else outcome


def test_hosts_that_begin_no_trial_cost_no_block(tmp_path: Path) -> None:
    dead = [f"dead{number}" for number in range(6)]
    found, told = conducted(tmp_path, InstantFarm(*dead, "good", fate=unreachable), plan(blocks=4))
    assert (found.finished, list(found.voided), sorted(left(found))) == (True, [], dead)
    assert {trial.trial.block for trial in found.trials} == {1, 2, 3, 4}
    assert any(
        note.endswith("is handed out again: dead0 lost it: Permission denied (publickey)") for note in told.notes
    )


def test_a_run_whose_hosts_were_all_unreachable_is_resumed_as_if_nothing_was(tmp_path: Path) -> None:
    dead = [f"dead{number}" for number in range(6)]
    with pytest.raises(PlaceError, match=r"Permission denied \(publickey\)"):
        conducted(tmp_path, InstantFarm(*dead, fate=unreachable), plan(blocks=4))
    writer = record.resume(tmp_path / "run")
    FarmRun(writer=writer, progress=Told(), farm=InstantFarm("good")).execute()
    writer.close()
    found = record.read(tmp_path / "run")
    assert (found.finished, list(found.voided)) == (True, [])


def test_a_cell_that_is_decided_may_lose_as_many_blocks_as_it_likes(tmp_path: Path) -> None:
    writer = record.create(tmp_path / "run", plan=plan(blocks=8), sources={"study.yaml": ""})
    run = FarmRun(writer=writer, progress=Told(), farm=InstantFarm("x"))
    run.schedule.decided.add("all")
    for block in range(1, 7):
        run._void("all", block, "lost")
    writer.close()
    assert run.schedule.losses("all") == 6


def test_a_host_whose_process_was_killed_is_named(tmp_path: Path) -> None:
    farm = InstantFarm("x")
    farm.killed = ["fairtrial x"]
    _, told = conducted(tmp_path, farm, plan())
    assert told.notes[-1].startswith("the process `fairtrial x` was killed: its host may not be as it was")


def test_a_process_that_was_lost_is_a_reason_too(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"x lost its block: its process ended \(signal 9\)"):
        conducted(tmp_path, InstantFarm("x", fate=lambda *_: "its process ended (signal 9)"), plan())


class Gone(InstantFarm):
    """A cluster that is gone after four blocks."""

    def idle(self) -> Sequence[str]:
        if len(self.ran) >= 4:
            raise PlaceError("the cluster has no node that takes a block", hint="start nodes")
        return super().idle()


def test_a_reason_that_is_over_is_not_told_when_the_cluster_is_gone(tmp_path: Path) -> None:
    def fate(_host: str, order: Order, outcome: Outcome) -> Outcome | str:
        full = Failure(message="its disk was full for a moment", hint="make room")
        return outcome.model_copy(update={"failure": full}) if order.block == 1 else outcome

    with pytest.raises(PlaceError, match="the cluster has no node that takes a block"):
        conducted(tmp_path, Gone("x", fate=fate), plan(blocks=10))


def test_a_mistake_in_the_study_ends_the_run_at_once(tmp_path: Path) -> None:
    wrong = InputError([], hint="fix it")

    def fate(_host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        problem = {"message": "no such option", "file": "the study", "field": "system"}
        failure = Failure.model_validate({"message": "", "hint": wrong.hint, "problems": [problem]})
        return outcome.model_copy(update={"failure": failure})

    farm = InstantFarm("x", "y", fate=fate)
    with pytest.raises(InputError, match="no such option"):
        conducted(tmp_path, farm, plan())
    assert len(farm.ran) == 2


@pytest.mark.parametrize("name", ["kernel", "processor_model"])
def test_a_host_unlike_the_first_is_refused_unless_hosts_are_a_factor(tmp_path: Path, name: str) -> None:
    facts = {"y": {name: "another"}}
    found, _ = conducted(tmp_path, InstantFarm("y", "x", facts=facts), plan())
    assert left(found) == ["y"]
    assert {trial.host for trial in found.trials} == {"x"}
    other = tmp_path / "factor"
    found, _ = conducted(other, InstantFarm("y", "x", facts=facts), plan(hosts="factor"))
    assert left(found) == []
    assert {trial.host for trial in found.trials} == {"x", "y"}


def told_apart(outcome: Outcome, *, subject: str, content: Callable[[str], str]) -> Outcome:
    """With another kernel, and data by arm."""
    trials = [
        trial.model_copy(
            update={
                "subject": {"kernel": subject},
                "system_facts": {"sha256": "s"},
                "data": TrialData(content_sha256=content(trial.trial.arm)),
            }
        )
        for trial in outcome.trials
    ]
    return outcome.model_copy(update={"trials": trials})


def test_hosts_may_start_from_data_of_their_own_where_arms_of_a_block_share_them(tmp_path: Path) -> None:
    """A loader without a seed makes other rows on each."""

    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        return told_apart(outcome, subject="6.1", content=lambda _arm: f"of {host}")

    found, _ = conducted(tmp_path, InstantFarm("x", "y", fate=fate), plan())
    assert left(found) == []
    assert {trial.host for trial in found.trials} == {"x", "y"}


def test_a_block_that_is_refused_is_no_measure_for_others(tmp_path: Path) -> None:
    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        return told_apart(outcome, subject=host, content=lambda arm: arm if host == "refused" else "same")

    found, _ = conducted(tmp_path, InstantFarm("good", "refused", fate=fate), plan())
    assert left(found) == ["refused"]
    assert {trial.host for trial in found.trials} == {"good"}


KERNELS = ("debian-6.1", "debian-6.12")


@pytest.mark.parametrize("odd", ["", "y"])
def test_guests_of_arms_may_differ_and_those_of_hosts_may_not(tmp_path: Path, odd: str) -> None:
    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        (place,) = outcome.places
        guests = [
            place.model_copy(
                update={
                    "place": Section({"vm": {"kernel": kernel}}),
                    "facts": {**place.facts, "kernel": kernel, "processor_model": "odd" if host == odd else "one"},
                }
            )
            for kernel in KERNELS
        ]
        return outcome.model_copy(update={"places": guests})

    found, _ = conducted(tmp_path, InstantFarm("y", "x", fate=fate), plan(blocks=2))
    assert left(found) == ([odd] if odd else [])
    assert {trial.host for trial in found.trials} == {"x", "y"} - {odd}


def test_hosts_whose_first_guests_differ_are_compared_by_their_processors(tmp_path: Path) -> None:
    """Nobody has seen both guests when each host brings one."""

    def fate(host: str, order: Order, outcome: Outcome) -> Outcome | str:
        (place,) = outcome.places
        guest = Section({"vm": {"kernel": KERNELS[0], "memory": {"p": "1GiB", "q": "2GiB"}[order.cell]}})
        facts = {**place.facts, "processor_model": host}
        return outcome.model_copy(update={"places": [place.model_copy(update={"place": guest, "facts": facts})]})

    found, _ = conducted(tmp_path, InstantFarm("x", "y", fate=fate), plan(cells=("p", "q")))
    assert (left(found), found.finished) == (["x"], True)
    assert {(trial.trial.cell, trial.host) for trial in found.trials} == {("p", "y"), ("q", "y")}


@pytest.mark.parametrize(("odd", "gone"), [("", []), ("y", ["y"])])
def test_an_imitated_processor_is_compared_with_its_like(tmp_path: Path, odd: str, gone: list[str]) -> None:
    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        (place,) = outcome.places
        guests = [
            place.model_copy(
                update={
                    "place": Section({"vm": {"kernel": KERNELS[0], "accelerator": accelerator}}),
                    "facts": {**place.facts, "processor_model": model, "emulated": model == "imitated"},
                }
            )
            for accelerator, model in (
                ("kvm", "one"),
                ("tcg", "imitated"),
                ("auto", "imitated" if host == odd else "one"),
            )
        ]
        return outcome.model_copy(update={"places": [place, *guests]})

    found, _ = conducted(tmp_path, InstantFarm("y", "x", fate=fate), plan(blocks=2))
    assert left(found) == gone


def test_a_stop_is_one_whatever_fails_meanwhile_and_says_what_did(tmp_path: Path) -> None:
    def fate(_host: str, _order: Order, _outcome: Outcome) -> Outcome | str:
        try:
            raise KeyboardInterrupt
        finally:
            raise PlaceError("its disk is full", hint="make room")

    writer, told = record.create(tmp_path / "run", plan=plan(), sources={"study.yaml": ""}), Told()
    with pytest.raises(KeyboardInterrupt):
        FarmRun(writer=writer, progress=told, farm=InstantFarm("x", fate=fate)).execute()
    writer.close()
    assert "while stopping: its disk is full" in told.notes
    (interrupted,) = [event for event in writer.record().events if isinstance(event, RunInterrupted)]
    assert interrupted.reason == "stopped by the user"


def test_files_that_changed_on_the_way_are_not_believed(tmp_path: Path) -> None:
    farm = InstantFarm("x", "y")

    def fate(host: str, order: Order, outcome: Outcome) -> Outcome | str:
        if (host, order.block) == ("y", 2):
            (farm.directory / host / order.trials[0].id / "trial.json").write_text("{}", encoding="utf-8")
        return outcome

    farm.fate = fate
    found, _ = conducted(tmp_path, farm, plan())
    assert left(found) == ["y"]
    assert [event.block for event in found.voided] == [2]
    assert "not those that y wrote" in found.voided[0].reason


def test_a_block_that_a_kill_tore_is_void(tmp_path: Path) -> None:
    made = plan(blocks=2)
    writer = record.create(tmp_path / "run", plan=made, sources={"study.yaml": ""})
    farm = InstantFarm("x")(tmp_path / "before")
    farm.submit(Order(run="run", plan=made.model_copy(update={"trials": made.trials[:2]}), started=[]), host="x")
    (returned,) = farm.returned(0)
    assert returned.outcome is not None
    assert returned.directory is not None
    writer.begin("all.b01.a")
    writer.commit(returned.outcome.trials[0])
    writer.close()
    writer = record.resume(tmp_path / "run")
    FarmRun(writer=writer, progress=Told(), farm=InstantFarm("x")).execute()
    writer.close()
    found = record.read(tmp_path / "run")
    assert [event.block for event in found.voided] == [1]
    assert sorted(trial.trial.id for trial in found.trials) == [
        *("all.b01.a", "all.b02.a", "all.b02.b", "all.b03.a", "all.b03.b")
    ]


class WithSlowHost(InstantFarm):
    """Its host `slow` takes as long for its first block as the others do for eight."""

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        slow = {host: order for host, order in self.out.items() if host == "slow" and len(self.ran) < 9}
        self.out = {host: order for host, order in self.out.items() if host not in slow}
        returned = super().returned(timeout_s)
        self.out |= slow
        return returned


def test_a_slow_host_holds_back_looks_at_its_round_and_no_other_host(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def rule(changes: Changes) -> Decision:
        latest = seen[-1][1] if seen else 0
        seen.append((len(seen) + 1, max([latest, *(trial.trial.block for trial in changes.trials)])))
        return Decision("continue")

    farm = WithSlowHost("slow", "x", "y")
    writer = record.create(tmp_path / "run", plan=plan(blocks=12), sources={"study.yaml": ""})
    FarmRun(writer=writer, progress=Told(), farm=farm, stopping=rule).execute()
    writer.close()
    assert sorted(block for _host, _cell, block in farm.ran) == [*range(1, 13)], "nothing is handed out twice"
    assert farm.ran[0] == ("slow", "all", 1)
    assert {host for host, _cell, block in farm.ran if 1 < block < 9} == {"x", "y"}
    assert [round_ for round_, _latest in seen] == [*range(1, 13)]
    assert seen[0][1] >= 8, "the first round is looked at once the slow host is through, and others went on"


HOUR_S = 3600.0


def test_the_time_left_is_that_of_the_blocks_that_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0

    class Hourly(InstantFarm):
        def returned(self, timeout_s: float) -> Sequence[Returned]:
            nonlocal now_s
            now_s += HOUR_S if self.out else 0.0
            return super().returned(timeout_s)

    monkeypatch.setattr(handing, "time", SimpleNamespace(monotonic=lambda: now_s))
    writer = record.create(tmp_path / "run", plan=plan(blocks=4), sources={"study.yaml": ""})
    told = Told()
    run = FarmRun(writer=writer, progress=told, farm=Hourly("x"))
    run.began_s = 0.0
    run.execute()
    writer.close()
    left_h = [left_s / HOUR_S for left_s in told.left_s]
    assert left_h == pytest.approx([4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5])


def test_what_the_farm_used_is_in_the_record(tmp_path: Path) -> None:
    def fate(_host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        return outcome.model_copy(update={"processor_s": 0.25, "elapsed_s": 10.0})

    found, _ = conducted(tmp_path, InstantFarm("x", fate=fate), plan())
    assert [event for event in found.events if isinstance(event, FarmServed)] == [
        FarmServed(host="x", processor_s=1.0, elapsed_s=40.0)
    ]


def test_a_pause_hands_out_nothing_and_takes_in_what_is_out(tmp_path: Path) -> None:
    made = plan(blocks=6)
    writer = record.create(tmp_path / "run", plan=made, sources={"study.yaml": ""})
    told = Told()
    committed: list[int] = []

    def fate(_host: str, order: Order, outcome: Outcome) -> Outcome | str:
        if order.block == 1:
            steering.ask(writer.directory, steering.Request(act="pause"))
        return outcome

    farm = InstantFarm("x", "y", fate=fate)
    run = FarmRun(writer=writer, progress=told, farm=farm)

    def paused(*, waits: bool) -> None:
        committed.append(len(run.schedule.finished))
        if waits:
            assert not farm.out or committed == [4]
            steering.ask(writer.directory, steering.Request(act="resume"))

    told.paused = paused  # type: ignore[method-assign]
    run.execute()
    writer.close()
    assert committed == [4, 4]
    assert "paused: no more blocks are handed out; hosts finish those that they have" in told.notes
    assert record.read(writer.directory).finished


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"place": {"vm": {"kernel": "debian-6.1"}}}, r"place: expected a place that the farm's hosts have \(local\)"),
        ({"workload_place": {"ssh": {"host": "b"}}}, "no second one for the load"),
        ({"place": {"local": {"state_directory": "/new"}}}, "place of its own: .*, found state_directory"),
        (
            {"system": {"service": {"at": {"host": "cache-1", "ports": {"redis": 6379}}}}},
            r"service\.at: .* cache-1:6379",
        ),
    ],
)
def test_a_study_that_a_farm_cannot_run_is_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    made, farm = plan(), InstantFarm("x")
    trial = type(RESOLVED).model_validate({**RESOLVED.model_dump(), **given})
    with pytest.raises(InputError, match=message):
        conducted(tmp_path, farm, made.model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}}))
    assert not farm.ran


def test_a_server_of_each_hosts_own_is_loaded_by_it(tmp_path: Path) -> None:
    system = Section({"service": {"at": {"host": "127.0.0.1", "ports": {"redis": 6379}}}})
    both = dict.fromkeys(("a", "b"), RESOLVED.model_copy(update={"system": system}))
    assert conducted(tmp_path, InstantFarm("x"), plan().model_copy(update={"resolved": {"all": both}}))[0].finished


def test_an_order_without_blocks_on_a_host_is_refused_before_a_block_is_void(tmp_path: Path) -> None:
    made = plan(order="sequential")
    writer = record.create(tmp_path / "run", plan=made, sources={"study.yaml": ""})
    writer.begin(made.trials[0].id)
    writer.commit(trial_record(made.trials[0]))  # by this machine, before the run was resumed
    with contextlib.closing(writer), pytest.raises(InputError, match=r"trials\.order: a host of a farm runs whole"):
        FarmRun(writer=writer, progress=Told(), farm=InstantFarm("x")).execute()
    assert not record.read(tmp_path / "run").voided


def test_a_load_that_the_study_names_beside_its_system_goes_along_to_the_host() -> None:
    local, alpha = RESOLVED.place, Section({"ssh": {"host": "alpha"}})
    named, unnamed = RESOLVED.model_copy(update={"workload_place": local}), RESOLVED
    made = tiny_plan().model_copy(update={"resolved": {"all": {"a": named, "b": unnamed}}})
    moved = order(made, made.trials[:2], run="run", started=[]).at(alpha).plan.resolved["all"]
    assert [(moved[arm].place, moved[arm].clients) for arm in "ab"] == [(alpha, (alpha,)), (alpha, ())]


@pytest.mark.parametrize(
    ("farm", "options"),
    [
        (ALONE, ""),
        (Farm(places=Path("my hosts.yaml")), " --places 'my hosts.yaml'"),
        (Farm(cluster="head:6379", insecure=True), " --farm head:6379 --insecure-farm"),
    ],
)
def test_whoever_stops_a_farms_run_is_told_how_it_goes_on_there(farm: Farm, options: str) -> None:
    assert command._options(farm) == options
