"""What settings ask of the agent, step by step: which file, which text, how it reads back, and what undoes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.facts import facts_of
from support.machines.set_here import validated as all_validated

from fairtrial.errors import PlaceError
from fairtrial.settings import ANY_TRIAL, effects
from fairtrial.settings.affinity import processors
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, merged
from fairtrial.settings.steps.shared import trigger, write_file
from fairtrial.settings.sysfs import normalisation

FACTS = facts_of(user_id=0)


def validated(name: str, value: object) -> Any:
    return all_validated({name: value})[name]


def steps(name: str, value: object) -> list[tuple[str, dict[str, Any]]]:
    effect = effects({name: validated(name, value)}, FACTS, ANY_TRIAL)
    return [(phase, step.model_dump(mode="json")) for phase, step in effect.steps]


def paths(name: str, value: object) -> list[str]:
    return [step["action"]["path"] for _, step in steps(name, value)]


def test_a_written_file_reads_back_what_was_written_and_gets_back_what_it_held() -> None:
    step = write_file("/proc/sys/a", "5", name="a", normalise="trim").model_dump(mode="json")
    assert step["action"] == {"kind": "write", "path": "/proc/sys/a", "value": "5"}
    assert step["check"]["read"] == {"kind": "file", "path": step["action"]["path"]}
    assert step["check"]["expect"] == step["action"]["value"]
    assert step["inverse"] == {"kind": "restore"}


def test_a_trigger_neither_reads_back_nor_undoes() -> None:
    step = trigger("/proc/sys/vm/drop_caches", "3", name="drop_caches")
    assert step.check is None
    assert step.model_dump(mode="json")["inverse"] == {"kind": "none"}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm.swappiness", "/proc/sys/vm/swappiness"),
        ("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
        ("kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
        ("net/ipv4/conf/eth0/rp_filter", "/proc/sys/net/ipv4/conf/eth0/rp_filter"),
        ("fs.inotify.max_user_watches", "/proc/sys/fs/inotify/max_user_watches"),
        ("net.ipv4.conf.eth0/100.rp_filter", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
        ("net/ipv4/conf/eth0.100/rp_filter", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
        ("net.ipv4.conf.enp3s0-1.rp_filter", "/proc/sys/net/ipv4/conf/enp3s0-1/rp_filter"),
    ],
)
def test_a_kernel_parameters_name_is_its_path(name: str, path: str) -> None:
    assert paths("sysctl", {name: 1}) == [path]


@pytest.mark.parametrize(
    "name",
    [
        "swappiness",
        "",
        ".vm.swappiness",
        "vm..swappiness",
        "/proc/sys/vm/swappiness",
        "vm.swap piness",
        "VM.swappiness",
    ],
)
def test_what_is_no_name_of_a_kernel_parameter_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        validated("sysctl", {name: 1})


@pytest.mark.parametrize(
    "name", ["vm...swappiness", "vm/../../etc/passwd", "vm/../swappiness", "a/..", "a.//.b", "a.b/"]
)
def test_no_name_of_a_kernel_parameter_leads_out_of_its_tree(name: str) -> None:
    """Its agent may be root: a study from elsewhere must not write any other file."""
    with pytest.raises(ValidationError):
        validated("sysctl", {name: 1})


def test_each_kernel_parameter_is_a_step_of_its_own_in_the_studys_order() -> None:
    found = steps("sysctl", {"vm.swappiness": 10, "vm.dirty_ratio": "20", "net.ipv4.tcp_rmem": "4096 87380 6291456"})
    assert [step["name"] for _, step in found] == ["vm.swappiness", "vm.dirty_ratio", "net.ipv4.tcp_rmem"]
    assert [step["action"]["value"] for _, step in found] == ["10", "20", "4096 87380 6291456"]
    assert {phase for phase, _ in found} == {"before_server"}
    assert {step["check"]["normalise"] for _, step in found} == {"words"}


@pytest.mark.parametrize(
    "path",
    [
        "/sys",
        "/sys/",
        "/sys/kernel/",
        "/sys//kernel",
        "/sys/kernel/../../etc/passwd",
        "/sys/.hidden",
        "/sys/kernel/./mm",
        "/system/x",
        "/proc/sys/vm/swappiness",
        "/sys/a b",
        "/sys/a\n",
    ],
)
def test_sysfs_takes_plain_paths_below_sys_only(path: str) -> None:
    with pytest.raises(ValidationError):
        validated("sysfs", {path: "1"})


@pytest.mark.parametrize(
    "path",
    [
        "/sys/kernel/mm/lru_gen/enabled",
        "/sys/block/nvme0n1/queue/scheduler",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "/sys/bus/pci/devices/0000:00:1f.2/numa_node",
        "/sys/fs/cgroup/user@1000.service/memory.high",
    ],
)
def test_sysfs_takes_the_names_that_kernels_give(path: str) -> None:
    assert paths("sysfs", {path: "x"}) == [path]


@pytest.mark.parametrize(
    ("value", "how"),
    [
        ("0", "integer"),
        ("007", "integer"),
        ("0xff", "integer"),
        ("0xFF", "integer"),
        ("0x", "brackets"),
        ("0xfg", "brackets"),
        ("-1", "brackets"),
        ("1.5", "brackets"),
        ("1 2", "brackets"),
        ("", "brackets"),
        ("y", "brackets"),
        ("mq-deadline", "brackets"),
    ],
)
def test_numbers_compare_as_numbers_and_all_else_by_its_brackets(value: str, how: str) -> None:
    assert normalisation(value) == how


@pytest.mark.parametrize(("value", "code"), [("page_cache", "1"), ("slab", "2"), ("all", "3")])
def test_the_caches_codes_are_the_kernels(value: str, code: str) -> None:
    """Documentation/admin-guide/sysctl/vm.rst."""
    ((phase, step),) = steps("drop_caches", value)
    assert (phase, step["action"]["value"]) == ("before_ramp_up", code)


def test_an_unknown_cache_is_refused() -> None:
    with pytest.raises(ValidationError):
        validated("drop_caches", "everything")


@pytest.mark.parametrize("name", ["A", "_", "a1", "LD_PRELOAD"])
def test_names_that_a_process_can_have_in_its_environment(name: str) -> None:
    assert effects({"environment": validated("environment", {name: "x=y z"})}, FACTS, ANY_TRIAL).environment == {
        name: "x=y z"
    }


@pytest.mark.parametrize("name", ["1A", "", "A B", "A-B", "Ä"])
def test_names_that_it_cannot_have_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        validated("environment", {name: "1"})


@given(st.sets(st.integers(0, 200), min_size=1))
def test_a_list_of_processors_is_the_set_it_names(numbers: set[int]) -> None:
    assert processors(",".join(map(str, sorted(numbers, reverse=True)))) == tuple(sorted(numbers))


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_range_has_both_of_its_ends(first: int, more: int) -> None:
    assert processors(f"{first}-{first + more}") == tuple(range(first, first + more + 1))


def test_overlapping_ranges_count_once() -> None:
    assert processors("0-2,1-3,2") == (0, 1, 2, 3)


@pytest.mark.parametrize("text", ["", "0-", "-1", "a", "0,,1", "0 1", "0-1-2", "1,"])
def test_what_the_kernel_would_not_write_is_no_list_of_processors(text: str) -> None:
    with pytest.raises(ValidationError):
        validated("affinity", {"server": text})


def test_both_sides_may_be_given_and_each_is_checked() -> None:
    effect = effects({"affinity": validated("affinity", {"server": "0-1", "client": "2,3"})}, FACTS, ANY_TRIAL)
    assert (effect.server_processors, effect.client_processors) == ((0, 1), (2, 3))
    with pytest.raises(PlaceError, match=r"affinity\.client: processors \[4, 5\] are not online") as refused:
        effects({"affinity": {"server": "0", "client": "3-5"}}, FACTS, ANY_TRIAL)
    assert "it has [0, 1, 2, 3]" in refused.value.hint


def far(*processors: int) -> TrialContext:
    return TrialContext(ANY_TRIAL.directory, load="elsewhere", client_processors=processors)


def test_processors_of_a_load_at_another_place_are_those_of_that_place() -> None:
    asked = {"affinity": {"server": "0", "client": "3-5"}}
    assert effects(asked, FACTS, far(3, 4, 5)).client_processors == (3, 4, 5)
    closed = TrialContext(ANY_TRIAL.directory, load="elsewhere")
    assert effects(asked, FACTS, closed).client_processors == (3, 4, 5), "not known yet"
    with pytest.raises(PlaceError, match=r"processors \[3, 4, 5\] are not online at the load's place"):
        effects(asked, FACTS, far(0, 1))
    with pytest.raises(PlaceError, match=r"affinity\.server: processors \[4\]"):
        effects({"affinity": {"server": "4", "client": None}}, FACTS, far(4))


def test_processors_that_are_offline_are_no_ones_to_ask_for() -> None:
    """The kernel's list may have holes."""
    with pytest.raises(PlaceError, match=r"\[1\]"):
        effects({"affinity": {"server": "0-2", "client": None}}, facts_of(processors=[0, 2, 3]), ANY_TRIAL)


def step_named(name: str) -> Effect:
    return Effect(steps=(("place", trigger("/sys/x", "1", name=name)),))


def test_merged_effects_keep_the_order_of_their_steps() -> None:
    found = merged([step_named("c"), Effect(), step_named("a"), step_named("b")])
    assert [step.name for _, step in found.steps] == ["c", "a", "b"]


def test_of_merged_effects_the_later_one_has_its_way_where_both_speak() -> None:
    first = Effect(environment={"A": "1", "B": "1"}, server_processors=(0,), client_processors=(1, 2))
    later = Effect(environment={"B": "2"}, client_processors=(2, 3))
    found = merged([first, later])
    assert found.environment == {"A": "1", "B": "2"}
    assert found.server_processors == (0,), "the later one says nothing about it"
    assert found.client_processors == (2,), "affinity holds within the nodes of numa"
    assert first.environment == {"A": "1", "B": "1"}, "unchanged"


def test_processors_that_two_settings_do_not_share_are_refused() -> None:
    with pytest.raises(PlaceError, match="none is in both"):
        merged([Effect(server_processors=(0, 1)), Effect(server_processors=(2, 3))])


def test_no_effects_are_one_that_does_nothing() -> None:
    assert merged([]) == Effect()
