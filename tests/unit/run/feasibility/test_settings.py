"""A place that lacks what a study sets is refused before anything starts, in a real place's files."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import shell_program
from support.facts import facts_of
from support.machines.places import FACTS, place_here, place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.run.feasibility import settings as settable
from fairtrial.study.resolved import Network, ResolvedTrial, Section
from fairtrial.wire.fake import FakeProgram


def trial(**settings: Any) -> ResolvedTrial:
    return ResolvedTrial(place={"local": {}}, system={"mariadb": {}}, workload={"tpcc": {}}, settings=settings)


def answers(*missing: str) -> Callable[[wire.Spawn], FakeProgram]:
    return lambda _spawn: FakeProgram(stdout=list(missing))


def looked_for(*trials: ResolvedTrial, missing: tuple[str, ...] = ()) -> list[str]:
    """The files that the place was asked about."""
    with place_in_memory(answers(*missing), facts=FACTS) as (place, fake):
        settable.require(place, trials)
        spawned = [request for request in fake.requests if isinstance(request, wire.Spawn)]
        return [word for request in spawned for word in request.argv[4:]]


LRU = "/sys/kernel/mm/lru_gen/enabled"


def test_every_file_of_every_arm_is_looked_for_once() -> None:
    on = trial(lru_gen={"enabled": 7, "min_ttl_ms": None}, sysctl={"vm.swappiness": 1})
    off = trial(lru_gen={"enabled": 0, "min_ttl_ms": None})
    assert looked_for(on, off) == [LRU, "/proc/sys/vm/swappiness"]


def test_a_study_that_sets_nothing_asks_nothing() -> None:
    assert looked_for(trial(), trial(environment={"A": "b"})) == []


def test_a_kernel_without_multigenerational_lru_is_refused_with_the_way_out() -> None:
    with pytest.raises(PlaceError, match=rf"cannot set lru_gen\.enabled \({LRU}\): no such file") as refused:
        looked_for(trial(lru_gen={"enabled": 7, "min_ttl_ms": None}), missing=(LRU,))
    assert "CONFIG_LRU_GEN" in refused.value.hint
    assert "debian-6.1" in refused.value.hint


def test_all_that_is_missing_is_named() -> None:
    files = ("/sys/kernel/mm/a", "/sys/kernel/mm/b")
    with pytest.raises(PlaceError) as refused:
        looked_for(trial(sysfs=dict.fromkeys(files, "1")), missing=files)
    assert all(f"{path} ({path})" in str(refused.value) for path in files)
    assert "module" in refused.value.hint


def test_a_machine_that_does_not_scale_its_frequency_is_told_so() -> None:
    path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    with pytest.raises(PlaceError, match="governor") as refused:
        looked_for(trial(governor="performance"), missing=(path,))
    assert "frequency" in refused.value.hint


def test_who_encrypts_needs_openssl_to_make_the_certificate() -> None:
    encrypted = trial().model_copy(update={"network": Network(tls=True)})
    assert looked_for(trial(), encrypted) == ["openssl"]
    with pytest.raises(PlaceError, match=r"cannot set workload\.tls \(openssl\): no such program") as refused:
        looked_for(encrypted, missing=("openssl",))
    assert "apt install openssl" in refused.value.hint


def test_only_trials_of_the_place_are_asked_about() -> None:
    there = trial(sysctl={"vm.swappiness": 1}).model_copy(update={"place": Section({"ssh": {"host": "far"}})})
    here = trial()
    assert settable.here(Section({"local": {}}), {"cell": {"a": here, "b": there}}) == [here]


ROOT = {"user_id": 0, "nodes": {"0": [0, 1, 2, 3]}}
ONE = {"memory": {"version": 1, "directory": "/sys/fs/cgroup/memory", "enabled": True}}
SHARE = {"limit": 1 << 26, "high": None, "min": None, "low": None, "swap": 1 << 20}


def asked_as_root(*trials: ResolvedTrial, missing: tuple[str, ...] = ()) -> list[str]:
    with place_in_memory(answers(*missing), facts=facts_of(**ROOT, controllers=ONE)) as (place, fake):
        settable.require(place, trials)
        spawned = [request for request in fake.requests if isinstance(request, wire.Spawn)]
        return [word for request in spawned for word in request.argv[4:]]


def test_files_of_groups_that_a_trial_makes_itself_are_not_looked_for() -> None:
    limited = trial(memory={"server": SHARE, "client": None})
    assert asked_as_root(limited) == ["/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"]


def test_programs_and_modules_are_looked_for_with_what_installs_them() -> None:
    swapped = trial(swap={"size": 1 << 20, "on": "zram"})
    assert asked_as_root(swapped) == ["mkswap", "/sys/class/zram-control/hot_add"]
    with pytest.raises(PlaceError, match=r"cannot set swap \(mkswap\): no such program") as refused:
        asked_as_root(swapped, missing=("mkswap",))
    assert "util-linux" in refused.value.hint
    with pytest.raises(
        PlaceError, match=r"cannot set swap \(/sys/class/zram-control/hot_add\): no such file"
    ) as refused:
        asked_as_root(swapped, missing=("/sys/class/zram-control/hot_add",))
    assert "modprobe zram" in refused.value.hint


def test_what_a_place_cannot_do_by_its_facts_asks_nothing_of_it() -> None:
    protected = trial(memory={"server": None, "client": {**SHARE, "swap": None, "min": 1 << 20}})
    with pytest.raises(PlaceError, match="version 1"):
        asked_as_root(protected)


def test_the_look_finds_files_and_programs_of_this_machine(tmp_path: Path) -> None:
    looked = ["/proc/version", "sh", str(tmp_path / "none"), "no-such-program-anywhere"]
    argv = ["sh", "-c", settable.LOOK, "look", *looked]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split() == looked[2:]


def test_a_target_of_the_device_mapper_may_be_built_into_the_kernel(tmp_path: Path) -> None:
    shell_program(tmp_path / "dmsetup", "echo 'nothere          v1.0.0'")
    modules = ["/sys/module/dm_nothere", "/sys/module/dm_neither"]
    done = subprocess.run(
        ["sh", "-c", settable.LOOK, "look", *modules],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == modules[1:]


def test_groups_are_tried_once_per_arm_and_left_as_they_were() -> None:
    limited = trial(memory={"server": {**SHARE, "swap": None}, "client": None})
    more = trial(memory={"server": {**SHARE, "swap": None, "limit": 1 << 27}, "client": None})
    with place_in_memory(answers(), facts=facts_of(**ROOT, controllers=ONE)) as (place, fake):
        settable.require(place, [limited, limited, more])
        changed = [request.step.name for request in fake.requests if isinstance(request, wire.Change)]
        assert changed == ["group.server", "memory.server.limit"] * 2
        assert fake.steps == []


def test_a_kernel_that_refuses_a_group_is_found_out_before_anything_starts(tmp_path: Path) -> None:
    """A directory that is no control group takes a group's name, and nothing in it takes a limit."""
    memory = {"version": 2, "directory": str(tmp_path), "enabled": True}
    with place_here(tmp_path) as place:
        place.facts = facts_of(**ROOT, controllers={"memory": memory})
        with pytest.raises(PlaceError, match=r"cannot set memory\.server\.limit: .*memory\.max") as refused:
            settable.require(place, [trial(memory={"server": {**SHARE, "swap": None}, "client": None})])
        assert "container" in refused.value.hint
        assert not list(tmp_path.glob("fairtrial-*")), "tried groups are gone"
