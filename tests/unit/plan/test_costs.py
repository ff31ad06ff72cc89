from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from support.records import RESOLVED, planned

from fairtrial.catalogue import catalogue
from fairtrial.plan import costs
from fairtrial.record.models import Design
from fairtrial.study import ResolvedTrial
from fairtrial.study.builds import Builds
from fairtrial.study.resolved import Section


def trial(*, warehouses: int = 1, system: str = "mariadb", **ending: float | None) -> ResolvedTrial:
    tpcc = {"warehouses": warehouses, "ramp_up": 2.0, "duration": None, "transactions": None} | ending
    return ResolvedTrial(place={"vm": {}}, system={system: {}}, workload={"tpcc": tpcc})


def design(blocks: int) -> Design:
    values = {"blocks": blocks, "order": "abba", "seed": 1, "stop": "fixed", "margin": 0.02, "voided_limit": 0}
    return Design.model_validate(values)


def test_a_trial_takes_what_its_kinds_say_and_a_constant(small: ModuleType) -> None:
    vm_s, mariadb_s, ramp_up_s = 4, 3, 2
    by_time = costs.trial_duration_s(trial(duration=60.0), small.SMALL)
    assert by_time == pytest.approx(costs.TRIAL_OVERHEAD_S + vm_s + mariadb_s + ramp_up_s + 60)
    by_count = costs.trial_duration_s(trial(transactions=500), small.SMALL)
    assert by_count == pytest.approx(costs.TRIAL_OVERHEAD_S + vm_s + mariadb_s + ramp_up_s + 5)


def test_equal_data_are_prepared_once_and_one_copy_is_worked_on(small: ModuleType) -> None:
    one = small.BYTES_PER_WAREHOUSE
    record = 2 * costs.RECORD_BYTES_PER_TRIAL
    same = {"all": {"a": trial(warehouses=5, duration=1.0), "b": trial(warehouses=5, duration=2.0)}}
    assert costs.disk_bytes(same, design(1), small.SMALL) == 2 * 5 * one + record
    scales = {"all": {"a": trial(warehouses=5, duration=1.0), "b": trial(warehouses=7, duration=1.0)}}
    assert costs.disk_bytes(scales, design(1), small.SMALL) == (5 + 7 + 7) * one + record
    systems = {"all": {"a": trial(system="sqlite", duration=1.0), "b": trial(duration=1.0)}}
    assert costs.disk_bytes(systems, design(1), small.SMALL) == (1 + 1 + 1) * one + record


def test_data_of_one_size_that_differ_are_prepared_apart(small: ModuleType) -> None:
    known = dict(small.SMALL.systems)
    known["mariadb"] = replace(known["mariadb"], determines_data=lambda parameters: parameters.get("version", ""))
    kinds = replace(small.SMALL, systems=known)
    one, record = small.BYTES_PER_WAREHOUSE, 2 * costs.RECORD_BYTES_PER_TRIAL
    of = {
        version: trial(duration=1.0).model_copy(update={"system": Section({"mariadb": {"version": version}})})
        for version in ("10.6", "11.4")
    }
    differing = {"all": {"a": of["10.6"], "b": of["11.4"]}}
    assert costs.disk_bytes(differing, design(1), kinds) == (1 + 1 + 1) * one + record
    assert costs.disk_bytes({"all": dict.fromkeys("ab", of["10.6"])}, design(1), kinds) == (1 + 1) * one + record


def test_each_arm_has_the_data_of_its_own_program(small: ModuleType) -> None:
    objects = {"a": ["/a/*.o"], "b": ["/b/*.o"]}
    builds = Builds(program="/p", objects=objects, link="cc -o {output} {objects}")
    one, record = small.BYTES_PER_WAREHOUSE, 2 * costs.RECORD_BYTES_PER_TRIAL
    of_builds = trial(duration=1.0).model_copy(update={"system": Section({"mariadb": {"run": "/p --x"}})})
    for both, count in ((of_builds, 2), (trial(duration=1.0), 1)):
        resolved = {"all": dict.fromkeys("ab", both)}
        assert costs.disk_bytes(resolved, design(1), small.SMALL, builds=builds) == (count + 1) * one + record


def test_what_a_setting_takes_is_taken_beside_the_copy_of_one_trial(small: ModuleType) -> None:
    known = {**small.SMALL.settings, "swap": replace(small.SMALL.settings["lru_gen"], disk_bytes=lambda size: size)}
    kinds = replace(small.SMALL, settings=known)
    one, record, swap = small.BYTES_PER_WAREHOUSE, 2 * costs.RECORD_BYTES_PER_TRIAL, 7 << 30
    swapping = trial(duration=1.0).model_copy(update={"settings": {"swap": swap}})
    both = {"all": {"a": trial(duration=1.0), "b": swapping}}
    assert costs.disk_bytes(both, design(1), kinds) == 2 * one + swap + record


@pytest.mark.parametrize(
    ("system", "one", "other", "are_apart"),
    [
        ("mariadb", {"options": {"innodb_page_size": "4k"}}, {"options": {"innodb_page_size": "16k"}}, True),
        ("mysql", {"base_directory": "/opt/a"}, {"base_directory": "/opt/b"}, True),
        ("postgres", {"version": "15"}, {"version": "16"}, True),
        ("mariadb", {"options": {"innodb_io_capacity": 200}}, {"options": {"innodb_io_capacity": 2000}}, False),
        ("sqlite", {"pragmas": {"synchronous": "FULL"}}, {"pragmas": {"synchronous": "OFF"}}, False),
    ],
)
def test_a_system_says_what_its_data_depend_on(system: str, one: Any, other: Any, *, are_apart: bool) -> None:
    kind = catalogue().systems[system]
    assert (kind.determines_data(one) != kind.determines_data(other)) == are_apart


def test_a_workload_says_what_its_data_depend_on() -> None:
    of = catalogue().workloads["tpcc"].determines_data
    base = {"warehouses": 2, "duration": 60}
    assert of(base) != of(base | {"warehouses": 3})
    assert of(base) == of(base | {"virtual_users": 9, "duration": 90})


@pytest.mark.parametrize(
    ("setting", "value", "taken"),
    [
        ("swap", {"size": 7 << 30, "on": "file"}, 7 << 30),
        ("swap", {"size": 7 << 30, "on": "zram"}, 0),
        ("storage", {"device": "file", "size": 7 << 30}, 7 << 30),
        ("storage", {"device": "memory", "size": 7 << 30}, 0),
        ("storage", {"device": "pmem"}, 0),
        ("lru_gen", "on", 0),
    ],
)
def test_a_setting_says_what_it_takes_of_the_disk(setting: str, value: Any, taken: int) -> None:
    assert catalogue().settings[setting].disk_bytes(value) == taken


def test_the_record_holds_every_trial_of_a_boot(small: ModuleType) -> None:
    cells = {"all": {"a": trial(duration=1.0), "b": trial(duration=1.0)}}
    several = design(3).model_copy(update={"per_boot": 5})
    more = costs.disk_bytes(cells, several, small.SMALL) - costs.disk_bytes(cells, design(3), small.SMALL)
    assert more == (5 - 1) * 3 * 2 * costs.RECORD_BYTES_PER_TRIAL


def test_the_record_grows_with_every_trial(small: ModuleType) -> None:
    cells = {name: {"a": trial(duration=1.0), "b": trial(duration=1.0)} for name in ("low", "high")}
    two, three = (costs.disk_bytes(cells, design(blocks), small.SMALL) for blocks in (2, 3))
    assert three - two == 2 * 2 * costs.RECORD_BYTES_PER_TRIAL


def test_boots_of_clients_take_their_time_one_after_the_other() -> None:
    system, *clients = (
        Section({"ssh": {"host": host, "boot": {"by": "kexec", "expected": 60.0}}}) for host in ("db", "c1", "c2")
    )
    moved = {"place": system, "workload_place": clients[0], "further_places": (clients[1], clients[0])}
    alone, driven = (RESOLVED.model_copy(update=update) for update in ({"place": system}, moved))
    beside = alone.model_copy(update={"workload_place": system})
    one_s, two_s, three_s = (costs.trial_duration_s(each, catalogue()) for each in (alone, beside, driven))
    assert (two_s, three_s) == (one_s, one_s + 2 * 60.0)
    resolved = {"all": {"a": driven, "b": driven}}
    shared = [planned(block, "a").model_copy(update={"boot": "b01.a"}) for block in (1, 2)]
    assert costs.duration_s(shared, resolved, catalogue()) == 2 * three_s - 3 * 60.0
