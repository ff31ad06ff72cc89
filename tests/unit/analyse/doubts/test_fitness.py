"""Findings of places as doubts: those that shift results, each with where it was seen and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts.fitness import doubts
from fairtrial.record.models import Clock, Finding, Grade, PlaceOpened, Plan
from fairtrial.study.resolved import Section


def finding(grade: Grade, **changed: Any) -> Finding:
    values = {
        "name": "other_load",
        "value": "40 % busy",
        "why": "it takes processors",
        "fix": "stop it",
        "biases": True,
    }
    return Finding.model_validate({**values, "grade": grade, **changed})


def opened(*findings: Finding, place: str = "local", facts: dict[str, Any] | None = None) -> PlaceOpened:
    return PlaceOpened(
        place={place: {}},
        facts=facts or {},
        agent_sha256="ab",
        clock=Clock(monotonic_ns=1, realtime_ns=2),
        server_user=None,
        findings=list(findings),
    )


def test_what_biases_is_a_doubt_with_its_figure_and_its_fix() -> None:
    (doubt,) = doubts(tiny_plan(), [opened(finding("unfit"))])
    assert doubt.code == "place_unfit"
    assert doubt.message == "before the run, at the place, other load: 40 % busy; it takes processors"
    assert doubt.advice == "stop it"


@pytest.mark.parametrize(
    ("grade", "biases", "count"),
    [("unfit", True, 1), ("caution", True, 1), ("fine", True, 0), ("unknown", True, 0), ("unfit", False, 0)],
)
def test_what_is_fine_unseen_or_only_costs_time_is_none(grade: Grade, *, biases: bool, count: int) -> None:
    assert len(list(doubts(tiny_plan(), [opened(finding(grade, biases=biases))]))) == count


def test_of_several_places_the_doubtful_one_is_named_and_a_host_is_told_from_its_guest() -> None:
    found = doubts(tiny_plan(), [opened(finding("fine")), opened(finding("caution", of_host=True), place="vm")])
    assert [doubt.message.split(", other")[0] for doubt in found] == ["before the run, at the host of the place vm"]


def test_an_analysis_has_the_doubts_of_its_places() -> None:
    trials = [trial_record(planned(block, arm)) for block in (1, 2) for arm in "ab"]
    quiet = analyse(tiny_plan(), trials, events=[opened(finding("fine"))])
    busy = analyse(tiny_plan(), trials, events=[opened(finding("caution"))])
    assert [doubt.code for doubt in busy.doubts if doubt not in quiet.doubts] == ["place_unfit"]


def test_what_every_trial_sets_for_itself_is_no_doubt_and_a_setting_of_one_arm_is() -> None:
    plan = tiny_plan()
    slow = opened(finding("caution", name="frequency_scaling"), finding("caution", name="steal"))
    arms = plan.resolved["all"]
    fixed = {arm: trial.model_copy(update={"settings": {"governor": "performance"}}) for arm, trial in arms.items()}
    every = plan.model_copy(update={"resolved": {"all": fixed}})
    one = plan.model_copy(update={"resolved": {"all": {**fixed, "a": arms["a"]}}})
    assert ["steal" in doubt.message for doubt in doubts(every, [slow])] == [True]
    assert len(list(doubts(one, [slow]))) == 2
    assert len(list(doubts(plan, [slow]))) == 2


def test_a_guests_setting_does_not_mend_its_host() -> None:
    plan = tiny_plan()
    fixed = {
        arm: trial.model_copy(update={"settings": {"governor": "performance"}})
        for arm, trial in plan.resolved["all"].items()
    }
    host = opened(finding("caution", name="frequency_scaling", of_host=True))
    assert len(list(doubts(plan.model_copy(update={"resolved": {"all": fixed}}), [host]))) == 1


ONE_NODE = {"nodes": {"0": [0, 1]}, "processors": [0, 1]}
TWO_NODES = {"nodes": {"0": [0], "1": [1]}, "processors": [0, 1]}


def with_locks(part: str) -> Plan:
    """A plan one of whose arms waits for locks in another way, by a setting or as a workload."""
    plan = tiny_plan()
    cell = next(iter(plan.resolved))
    arm, trial = next(iter(plan.resolved[cell].items()))
    changed = trial.model_copy(update={part: {"locks": {}} if part == "settings" else Section({"locks": {}})})
    return plan.model_copy(update={"resolved": {cell: {**plan.resolved[cell], arm: changed}}})


@pytest.mark.parametrize("part", ["settings", "workload"])
def test_locks_on_one_node_say_nothing_about_several(part: str) -> None:
    (doubt,) = doubts(with_locks(part), [opened(facts=ONE_NODE)])
    assert doubt.code == "one_node"
    assert doubt.message.startswith(
        "cross-node mechanism not testable here: the place has one NUMA node (2 processors)"
    )


def test_several_nodes_or_no_locks_need_no_word_of_it() -> None:
    assert list(doubts(with_locks("settings"), [opened(facts=TWO_NODES)])) == []
    assert list(doubts(tiny_plan(), [opened(facts=ONE_NODE)])) == []


def with_users(users: int, *, by: str = "oltp", elsewhere: bool = False) -> Plan:
    """A plan whose arms are in guests of different kernels, driven there or from one place."""
    plan = tiny_plan()
    (cell, arms), *_ = plan.resolved.items()
    workload = Section({by: {"virtual_users": users, "duration": 1}})
    client = {"workload_place": Section({"ssh": {"host": "client"}})} if elsewhere else {}
    changed = {
        arm: trial.model_copy(update={"place": Section({f"kernel_{arm}": {}}), "workload": workload, **client})
        for arm, trial in arms.items()
    }
    return plan.model_copy(update={"resolved": {cell: changed}})


def test_arms_whose_kernels_give_the_client_different_interfaces_are_doubted() -> None:
    plan = with_users(2)
    (cell, arms), *_ = plan.resolved.items()
    first, *others = arms
    facts = {arm: {"client_interface": "io_uring" if arm == first else "epoll"} for arm in arms}
    places = [opened(place=f"kernel_{arm}", facts=facts[arm]) for arm in arms]
    (doubt,) = doubts(plan, places)
    assert doubt.code == "clients_differ"
    said = [f"io_uring with {first}", *(f"epoll with {arm}" for arm in others)]
    assert doubt.message == f"the load engine waits for answers by {', '.join(said)}, in {cell}"
    assert list(doubts(with_users(1), places)) == [], "a single user blocks on both"
    assert list(doubts(with_users(2, by="hammerdb"), places)) == [], "a client of its own"
    assert list(doubts(plan, places[:1])) == [], "nothing is known of the others"
    client = opened(place="ssh", facts={"client_interface": "epoll"})
    client = client.model_copy(update={"place": Section({"ssh": {"host": "client"}})})
    assert list(doubts(with_users(2, elsewhere=True), [*places, client])) == []


HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize(
    ("facts", "started_ns", "doubted"),
    [
        ({}, 0, True),
        ({}, 2 * 10**9, True),
        ({}, HOUR_NS, False),
        pytest.param({}, 10**400, False, id="beyond floats, as anyone's journal may say"),
        ({"host": "b"}, 0, False),
        ({"memory_bytes": 2}, 0, False),
        ({"image_id": "x"}, 0, False),
    ],
)
def test_two_names_of_one_machine_are_doubted(*, facts: dict[str, Any], started_ns: int, doubted: bool) -> None:
    machine = {"host": "a", "memory_bytes": 1, "processors": [0, 1], "kernel_command_line": "quiet"}
    places = [
        PlaceOpened(
            place=Section({"local": {"state_directory": f"/{host}"}}),
            facts=own,
            agent_sha256="",
            clock=Clock(monotonic_ns=later_ns, realtime_ns=HOUR_NS + start_ns + later_ns),
            server_user=None,
            host=host,
        )
        for host, own, start_ns, later_ns in (("x", machine, 0, 0), ("y", {**machine, **facts}, started_ns, HOUR_NS))
    ]
    found = [each.message for each in doubts(tiny_plan(), places)]
    said = "x and y seem to be one machine, a, where their blocks ran at the same time"
    assert found == ([said] if doubted else [])
    assert list(doubts(tiny_plan(), [each.model_copy(update={"host": ""}) for each in places])) == []
