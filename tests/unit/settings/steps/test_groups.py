"""Control groups: one for each side in each hierarchy, with what settings say in it, in the words of either version."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.facts import facts_of
from support.machines.set_here import effect_for, validated

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import Controller
from fairtrial.settings import Effect, TrialContext
from fairtrial.settings.affinity import processors
from fairtrial.settings.numa import listed
from fairtrial.settings.steps.context import Load
from fairtrial.wire.facts import Facts

TRIAL = PurePosixPath("/state/work/abc")


def version_1(*names: str) -> Facts:
    found = {name: {"version": 1, "directory": f"/sys/fs/cgroup/{name}", "enabled": True} for name in names}
    return facts_of(user_id=0, controllers=found)


def version_2(*names: str, enabled: tuple[str, ...] = ()) -> Facts:
    found = {name: {"version": 2, "directory": "/sys/fs/cgroup", "enabled": name in enabled} for name in names}
    return facts_of(user_id=0, controllers=found)


ONE, TWO = version_1("memory", "blkio", "cpuset"), version_2("memory", "io", "cpuset", enabled=("memory",))


def made(facts: Facts, load: Load = "beside", /, **settings: Any) -> Effect:
    return effect_for(TrialContext(TRIAL, load=load), facts, **settings)


def names(effect: Effect) -> list[str]:
    return [step.name for _, step in effect.steps]


def written(effect: Effect) -> dict[str, tuple[str, str]]:
    """File → what is written, what must read back."""
    steps = [step.model_dump(mode="json") for _, step in effect.steps]
    return {
        step["action"]["path"]: (step["action"]["value"], step["check"]["expect"])
        for step in steps
        if step["action"]["kind"] == "write"
    }


def test_a_size_alone_is_the_servers_limit_and_reads_back_in_whole_pages() -> None:
    effect = made(ONE, memory=536870912 + 5000)
    group = "/sys/fs/cgroup/memory/fairtrial-abc-server"
    assert names(effect) == ["group.server", "memory.server.limit"]
    assert written(effect) == {f"{group}/memory.limit_in_bytes": ("536875912", "536875008")}
    assert (effect.server_groups, effect.client_groups) == ((group,), ())
    assert {phase for phase, _ in effect.steps} == {"before_server"}, "what is restored is not charged to the server"


@given(size=st.integers(4096, 1 << 50))
def test_what_reads_back_is_never_more_than_asked_and_less_by_no_page(size: int) -> None:
    for facts, file in ((ONE, "memory.limit_in_bytes"), (TWO, "memory.max")):
        ((path, (asked, expected)),) = written(made(facts, memory=size)).items()
        assert path.endswith(file)
        assert int(asked) == size
        assert 0 <= size - int(expected) < 4096
        assert int(expected) % 4096 == 0


def test_version_2_limits_slows_and_protects() -> None:
    shares = {"server": {"limit": "512MiB", "high": "448MiB", "swap": 0}, "client": {"min": "64MiB", "low": "96MiB"}}
    effect = made(TWO, memory=shares)
    server, client = "/sys/fs/cgroup/fairtrial-abc-server", "/sys/fs/cgroup/fairtrial-abc-client"
    assert {path: value for path, (value, _) in written(effect).items()} == {
        f"{server}/memory.max": str(512 << 20),
        f"{server}/memory.high": str(448 << 20),
        f"{server}/memory.swap.max": "0",
        f"{client}/memory.min": str(64 << 20),
        f"{client}/memory.low": str(96 << 20),
    }
    assert (effect.server_groups, effect.client_groups) == ((server,), (client,))


@pytest.mark.parametrize("name", ["high", "min", "low"])
def test_protection_is_refused_by_name_where_groups_are_of_version_1(name: str) -> None:
    with pytest.raises(PlaceError, match=rf"memory\.client: {name} is not in control groups of version 1") as refused:
        made(ONE, memory={"client": {name: "64MiB"}})
    assert "systemd.unified_cgroup_hierarchy=1" in refused.value.hint


def test_version_1_limits_memory_and_swap_together_after_memory_alone() -> None:
    effect = made(ONE, memory={"server": {"limit": "64MiB", "swap": "32MiB"}})
    group = "/sys/fs/cgroup/memory/fairtrial-abc-server"
    files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
    assert list(written(effect).items()) == [
        (f"{group}/{file}", (str(size << 20), str(size << 20))) for file, size in zip(files, (64, 96), strict=True)
    ]
    (need,) = effect.needs
    assert need.what == "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"
    assert "swapaccount=1" in need.hint
    with pytest.raises(PlaceError, match="limits memory and swap together"):
        made(ONE, memory={"server": {"swap": "32MiB"}})


def test_a_controller_that_groups_do_not_have_yet_is_given_to_them_and_taken_away_last() -> None:
    effect = made(TWO, memory="64MiB", io_limit={"reads_per_s": 100})
    assert names(effect)[:2] == ["controller io for groups", "group.server"]
    given_to = effect.steps[0][1].model_dump(mode="json")
    file = "/sys/fs/cgroup/cgroup.subtree_control"
    assert given_to["action"]["argv"][-2:] == [file, "+io"]
    assert given_to["inverse"]["argv"][4:6] == [file, "-io"]


@pytest.mark.parametrize(
    ("file", "untouched", "used"),
    [
        ("io.max", "", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n"),
        ("io.weight", "default 100\n", "default 100\n8:0 50\n"),
        ("memory.low", "0\n", "1048576\n"),
        ("memory.swap.max", "max\n", "0\n"),
        ("cpuset.cpus", "\n", "0\n"),
    ],
)
def test_a_controller_that_somebody_uses_by_then_stays(tmp_path: Path, file: str, *, untouched: str, used: str) -> None:
    name = file.partition(".")[0]
    group = Controller(version=2, directory=str(tmp_path), enabled=False)
    setting: dict[str, dict[str, Any]] = {
        "io": {"io_limit": {"reads_per_s": 5}},
        "memory": {"memory": "64MiB"},
        "cpuset": {"numa": {"server": 0}},
    }
    effect = made(facts_of(user_id=0, controllers={name: group.model_dump()}), **setting[name])
    for below in ("other.slice", "somebodys.slice"):
        (tmp_path / below).mkdir()
    for content, is_taken_away in ((used, False), (untouched, True)):
        (tmp_path / "somebodys.slice" / file).write_text(content)
        subprocess.run(effect.steps[0][1].model_dump(mode="json")["inverse"]["argv"], check=True)
        assert (tmp_path / "cgroup.subtree_control").exists() == is_taken_away


def test_what_is_written_back_is_charged_to_a_group_that_counts_memory_too() -> None:
    bare = version_2("memory", "io")
    limited = {"io_limit": {"write_bytes_per_s": "10MiB"}}
    assert names(made(bare, **limited))[:2] == ["controller io for groups", "controller memory for groups"]
    without = version_2("io")
    assert names(made(without, **limited))[:2] == ["controller io for groups", "group.server"]
    version_1_names = names(made(version_1("memory", "blkio"), **limited))
    assert not [name for name in version_1_names if name.startswith("controller")]


@pytest.mark.parametrize("facts", [ONE, TWO])
def test_limits_of_sides_that_are_no_processes_of_their_own_are_refused(facts: Facts) -> None:
    apart = {"memory": {"server": {"limit": "64MiB"}, "client": {"limit": "64MiB"}}}
    with pytest.raises(PlaceError, match="system and load are one process here") as refused:
        made(facts, "within", **apart)
    assert refused.value.hint == "give `server` or `client`, not both"
    with pytest.raises(PlaceError, match="runs at another place, where nothing is set"):
        made(facts, "elsewhere", **apart)
    assert made(facts, "within", memory={"client": {"limit": "64MiB"}}).client_groups
    assert made(facts, "elsewhere", memory="64MiB").server_groups


def test_one_group_of_version_2_holds_all_of_a_side_and_version_1_has_one_in_each_hierarchy() -> None:
    settings = {"memory": "64MiB", "io_limit": {"read_bytes_per_s": "1MiB"}, "numa": {"server": 0}}
    assert made(TWO, **settings).server_groups == ("/sys/fs/cgroup/fairtrial-abc-server",)
    groups = [f"/sys/fs/cgroup/{name}/fairtrial-abc-server" for name in ("blkio", "cpuset", "memory")]
    one = made(ONE, **settings)
    assert sorted(one.server_groups) == groups
    assert sum(step.model_dump(mode="json")["action"]["kind"] == "group" for _, step in one.steps) == len(groups)


def test_groups_are_made_after_what_they_inherit_is_set() -> None:
    effect = made(ONE, memory="64MiB", swappiness=60)
    assert names(effect).index("swappiness") < names(effect).index("memory.server.limit")


def test_rates_are_one_line_in_version_2_and_files_in_version_1() -> None:
    rates = {"read_bytes_per_s": "1MiB", "writes_per_s": "60/min"}
    (two,) = [step for _, step in made(TWO, io_limit=rates).steps if step.name == "io_limit"]
    assert two.check is not None
    assert two.check.expect == "rbps=1048576 wbps=max riops=max wiops=1"
    one = [step.model_dump(mode="json") for _, step in made(ONE, io_limit=rates).steps]
    files = {step["action"]["argv"][-2].rpartition("/")[2]: step["action"]["argv"][-1] for step in one[1:]}
    assert files == {"blkio.throttle.read_bps_device": "1048576", "blkio.throttle.write_iops_device": "1"}


def test_the_device_that_is_limited_is_that_of_the_data_wherever_they_lie() -> None:
    plain = made(ONE, io_limit={"reads_per_s": 5}).steps[-1][1].model_dump(mode="json")
    assert plain["action"]["argv"][4] == "/state/work/abc/data"
    stored = made(ONE, io_limit={"reads_per_s": 5}, storage={"device": "file", "size": "1GiB"})
    assert stored.steps[-1][1].model_dump(mode="json")["action"]["argv"][4] == "/state/work/abc/storage/data"


def test_a_node_is_its_processors_and_its_memory() -> None:
    effect = made(TWO, numa={"server": 1, "client": {"processors": "0", "memory": "0-1"}})
    server, client = "/sys/fs/cgroup/fairtrial-abc-server", "/sys/fs/cgroup/fairtrial-abc-client"
    assert {path: value for path, (value, _) in written(effect).items()} == {
        f"{server}/cpuset.cpus": "2-3",
        f"{server}/cpuset.mems": "1",
        f"{client}/cpuset.cpus": "0-1",
        f"{client}/cpuset.mems": "0-1",
    }
    assert (effect.server_processors, effect.client_processors) == ((2, 3), (0, 1))


def test_memory_of_one_node_leaves_all_processors() -> None:
    effect = made(ONE, numa={"server": {"memory": 1}})
    group = "/sys/fs/cgroup/cpuset/fairtrial-abc-server"
    assert {path: value for path, (value, _) in written(effect).items()} == {
        f"{group}/cpuset.cpus": "0-3",
        f"{group}/cpuset.mems": "1",
    }
    assert effect.server_processors is None


def test_nodes_that_are_not_there_are_named() -> None:
    with pytest.raises(PlaceError, match=r"numa\.server\.processors: this place has no nodes \[2\]") as refused:
        made(TWO, numa={"server": "1-2"})
    assert "[0, 1]" in refused.value.hint


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_are_written_as_the_kernel_reads_them_back(numbers: set[int]) -> None:
    text = listed(numbers)
    assert processors(text) == tuple(sorted(numbers))
    assert len(text.split(",")) == sum(number - 1 not in numbers for number in numbers), "ranges as long as can be"


@pytest.mark.parametrize(
    ("settings", "controller"),
    [({"memory": "64MiB"}, "memory"), ({"io_limit": {"reads_per_s": 5}}, "blkio"), ({"numa": {"server": 0}}, "cpuset")],
)
def test_a_place_without_the_controller_or_without_root_is_refused(settings: dict[str, Any], controller: str) -> None:
    with pytest.raises(
        PlaceError, match=f"needs the controller {controller} of control groups, and this place has pids"
    ):
        made(version_1("pids"), **settings)
    with pytest.raises(PlaceError, match="needs root at the place"):
        made(TWO.model_copy(update={"user_id": 1000}), **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"memory": {"server": {}}},
        {"memory": {"server": {"max": 5}}},
        {"memory": 0},
        {"io_limit": {}},
        {"io_limit": {"reads_per_s": 0.5}},
        {"numa": {"server": "a"}},
        {"numa": {"server": {}}},
        {"swappiness": 201},
    ],
)
def test_what_says_nothing_or_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validated(settings)
