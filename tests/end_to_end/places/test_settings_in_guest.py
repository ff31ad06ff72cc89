"""Storage, swap and control groups of version 2 in a guest with Debian's kernel: what no ordinary host shows safely."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.command_line import Desk
from support.machines.set_here import apply, ran, seconds, validated

from fairtrial import record
from fairtrial.catalogue import catalogue
from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.places import open_place, vm
from fairtrial.places.vm.machine import QEMU
from fairtrial.run import prepared
from fairtrial.run.feasibility import settings as settable
from fairtrial.run.kinds import parts_of
from fairtrial.settings import TrialContext, storage
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.wire.open_place import OpenPlace

MIB = 1 << 20
STATX_ATTR_DAX = 0x200000
TRIAL = PurePosixPath("/var/lib/fairtrial/work/trial")
GUEST = {"memory": "640MiB", "cpus": 2, "nodes": 2, "pmem": "384MiB", "disk": "1GiB"}
# By the shell alone: a program takes a third of a second to start under emulation.
LEFT = """\
for file in /proc/self/mounts /proc/swaps /sys/block/loop*/loop/backing_file; do
    while read -r line; do echo "$line"; done <"$file"
done 2>/dev/null
echo /sys/fs/cgroup/* /sys/kernel/config/nullb/* /dev/mapper/*
"""

pytestmark = [
    pytest.mark.skipif(shutil.which(QEMU) is None, reason="no QEMU on this machine"),
    pytest.mark.timeout(1800),  # emulation on a busy machine
]


@pytest.fixture(scope="module")
def guest(kernel: Path) -> Iterator[OpenPlace]:
    """One guest for all tests: each leaves nothing in it, which is shown."""
    with tempfile.TemporaryDirectory() as state:
        Path(state).chmod(0o755)  # servers are not root
        parameters = {**GUEST, "kernel": str(kernel), "state_directory": state}
        with open_place("vm", parameters, holder="this test") as agent:
            yield OpenPlace(agent=agent)


@pytest.fixture
def place(guest: OpenPlace) -> Iterator[OpenPlace]:
    """The guest, before and after which nothing of a trial is there."""
    yield guest
    undone = guest.agent.undo()
    assert undone.failed == []
    assert "trial" not in said(guest, LEFT).replace("fairtrial", "")


def said(place: OpenPlace, command: str) -> str:
    return place.require(["sh", "-c", command], hint="")


@pytest.mark.parametrize("kind", [pytest.param("xfs", marks=pytest.mark.long), "ext4"])  # XFS: also in test_vm.py
@pytest.mark.parametrize("dax", ["always", "never"])
def test_persistent_memory_is_mounted_with_dax_and_without(place: OpenPlace, kind: str, dax: str) -> None:
    effect, read_back = apply(place, TRIAL, storage={"device": "pmem", "file_system": kind, "mount": f"dax={dax}"})
    assert read_back["storage.mount"] == f"{kind} dax={dax}"
    assert has_dax(place, effect.data_directory) == (dax == "always")


def has_dax(place: OpenPlace, directory: PurePosixPath | None) -> bool:
    """Whether a new file there goes past the page cache: STATX_ATTR_DAX (statx(2)), which xfs_io shows as a bit."""
    told = said(place, f"echo 1 >{directory}/file; xfs_io -r -c 'statx -r' {directory}/file")
    (attributes,) = re.findall(r"stat.attributes = (\S+)", told)
    return bool(int(attributes, 16) & STATX_ATTR_DAX)


def test_this_kernels_xfs_shares_blocks_and_does_dax(place: OpenPlace) -> None:
    shared = {"device": "pmem", "mkfs": ["-m", "reflink=1"], "mount": "dax=always"}
    effect, _ = apply(place, TRIAL, storage=shared)
    assert has_dax(place, effect.data_directory)


def test_a_file_system_that_cannot_do_dax_is_an_error_whether_the_kernel_says_so_or_not(place: OpenPlace) -> None:
    small = {"device": "pmem", "file_system": "ext4", "mkfs": ["-b", "1024"], "mount": "dax=always"}
    with pytest.raises(AgentError, match="mount"):
        apply(place, TRIAL, storage=small)
    place.agent.undo()
    # No study can ask for this; an XFS there mounts and turns DAX off without a word.
    stored = validated({"storage": {"device": "null_blk", "size": "320MiB"}})["storage"] | {"mount": "dax=always"}
    value = storage.Storage.model_construct(**stored)
    *steps, (_, mount) = storage.StorageSetting(value).effect(place.facts, TrialContext(TRIAL)).steps
    for _, step in steps:
        place.agent.change(step)
    with pytest.raises(AgentError, match=r"expected .xfs dax=always., found .*dax=never"):
        place.agent.change(mount)


def seconds_to_read(place: OpenPlace, data: PurePosixPath | None, requests: int) -> float:
    """How long so many direct reads of a page take, one after another."""
    said(place, f"dd if=/dev/zero of={data}/file bs=4096 count={requests} oflag=direct 2>&1")
    told = said(place, f"dd if={data}/file of=/dev/null bs=4096 count={requests} iflag=direct 2>&1")
    return seconds(told)


def test_latency_by_null_blk_holds_every_request_back(place: OpenPlace) -> None:
    stored = {"device": "null_blk", "size": "320MiB", "latency": "5ms"}
    effect, read_back = apply(place, TRIAL, storage=stored)
    assert read_back["storage.null_blk"] == "320 1 2 5000000 1"
    assert seconds_to_read(place, effect.data_directory, 100) >= 0.5, "100 requests of 5 ms"


def test_latency_by_device_mapper_holds_every_request_back(place: OpenPlace) -> None:
    stored = {"device": "file", "size": "320MiB", "file_system": "ext4", "latency": "20ms"}
    effect, read_back = apply(place, TRIAL, storage=stored)
    assert read_back["storage.latency"] == "delay 20"
    assert seconds_to_read(place, effect.data_directory, 40) >= 40 * 0.020 * 0.95


def test_swap_in_compressed_memory(place: OpenPlace) -> None:
    _, read_back = apply(place, TRIAL, swap={"size": "32MiB", "on": "zram"}, swappiness=150)
    assert read_back == {"swap": str(32 * 1024 - 4), "swappiness": "150"}
    place.agent.undo()
    _, read_back = apply(place, TRIAL, swap="32MiB")
    assert read_back == {"swap": str(32 * 1024 - 4)}


def test_groups_of_version_2_limit_protect_and_bind(place: OpenPlace) -> None:
    enabled = said(place, "cat /sys/fs/cgroup/cgroup.subtree_control")
    effect, read_back = apply(
        place,
        TRIAL,
        memory={"server": {"limit": 48 * MIB + 7, "high": "40MiB", "swap": 0}, "client": {"min": "16MiB"}},
        numa={"server": 1, "client": {"memory": "0-1"}},
        io_limit={"write_bytes_per_s": "2MiB"},
    )
    assert read_back["memory.server.limit"] == str(48 * MIB)
    assert read_back["memory.client.min"] == str(16 * MIB)
    assert read_back["numa.server.processors"] == "1"
    assert read_back["io_limit"] == "rbps=max wbps=2097152 riops=max wiops=max"
    _, _, shown = ran(place, ["cat", "/proc/self/status"], groups=effect.server_groups)
    status = dict(line.split(":\t", 1) for line in shown.splitlines() if ":\t" in line)
    assert (status["Cpus_allowed_list"], status["Mems_allowed_list"]) == ("1", "1")
    target = TRIAL / "data/file"
    write = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", "count=6", "oflag=direct"]
    code, _, told = ran(place, write, groups=effect.server_groups)
    assert code == 0
    assert seconds(told) > 2.0, "6 MiB at 2 MiB a second"
    place.agent.undo()
    assert said(place, "cat /sys/fs/cgroup/cgroup.subtree_control") == enabled


def test_what_is_written_back_from_the_page_cache_is_limited_too(place: OpenPlace) -> None:
    effect, _ = apply(place, TRIAL, io_limit={"write_bytes_per_s": "2MiB"})
    write = ["dd", "if=/dev/zero", f"of={TRIAL / 'data/file'}", "bs=1M", "count=6", "conv=fsync"]
    code, _, told = ran(place, write, groups=effect.server_groups)
    assert code == 0
    assert seconds(told) > 2.0, "6 MiB at 2 MiB a second, and no request of the process's own"


def test_a_guest_looks_for_programs_where_this_machine_does_when_it_prepares_for_it(place: OpenPlace) -> None:
    carrier = place.agent.carrier
    assert carrier is not None
    inside = said(place, 'echo "$PATH"').strip().split(":")
    here = said(OpenPlace(agent=carrier), 'echo "$PATH"').strip().split(":")
    assert ":".join(inside).startswith(vm.PATH)
    assert here[: len(vm.PATH.split(":"))] == vm.PATH.split(":")


@pytest.mark.parametrize(
    ("system", "workload"),
    [
        pytest.param(
            "mariadb",
            {"oltp": {"table_size": 300, "duration": 1}},
            marks=pytest.mark.long,  # its sibling: that of files
        ),
        ("files", {"file_access": {"size": 8 * MIB, "jobs": 2, "accesses": 1}}),
    ],
)
def test_data_are_the_same_whether_the_guest_prepares_them_or_this_machine(
    guest: OpenPlace, system: str, workload: dict[str, Any]
) -> None:
    carrier = guest.agent.carrier
    assert carrier is not None
    both = [guest, OpenPlace(agent=carrier)]
    adapters = {**catalogue().systems, **catalogue().workloads}
    given = {name: kind.parameters for name, kind in adapters.items()}
    (name, asked) = next(iter(workload.items()))
    of = ResolvedTrial(
        place={"vm": {}},
        system={system: given[system].dump_python(given[system].validate_python({}), mode="json")},
        workload={name: given[name].dump_python(given[name].validate_python(asked), mode="json")},
    )
    found, keys = [], []
    for each in both:
        at = OpenPlace(agent=each.agent)
        at.server_user = "mysql" if at.facts.user_id == 0 else None
        parts = parts_of(of)
        keys.append(prepared.key_of(of, parts, parts.system.identity(at)))
        found.append(prepared.ensure(at, str(keys[-1]), parts, on_progress=lambda _line: None))
    assert keys[0] == keys[1]
    assert found[0].content_sha256 == found[1].content_sha256
    restored = prepared.restore(guest, found[0], PurePosixPath("/var/lib/fairtrial/restored"), user=None)
    assert restored.method == "reflink", "on the guest's own disk"
    said(guest, "rm -r /var/lib/fairtrial/restored")


def trial(**settings: Any) -> ResolvedTrial:
    return ResolvedTrial(place={"vm": {}}, system={"mariadb": {}}, workload={"tpcc": {}}, settings=settings)


def test_what_the_guest_lacks_is_said_before_anything_starts(place: OpenPlace) -> None:
    stored = {"device": "/dev/pmem7", "size": None, "latency": None, "file_system": "xfs", "mkfs": None, "mount": None}
    with pytest.raises(PlaceError, match=r"cannot set storage \(/dev/pmem7\), .*: no such file") as refused:
        settable.require(place, [trial(storage=stored)])
    assert "pmem: 1GiB" in refused.value.hint
    stored |= {"device": "file", "size": 320 * MIB, "latency": 0.005}
    settable.require(place, [trial(storage=stored, swap={"size": 8 * MIB, "on": "zram"})])


def test_a_guest_that_panics_loses_its_stream_with_its_last_words(guest: OpenPlace) -> None:
    """The last of the guest's tests."""
    process = guest.agent.spawn("it", ["sh", "-c", "echo c > /proc/sysrq-trigger; sleep 60"])
    with pytest.raises(StreamLostError, match="Kernel panic - not syncing: sysrq triggered crash"):
        process.wait(60)


STUDY = """\
study: dax
place: {{vm: {{kernel: {kernel}, memory: 512MiB, cpus: 1, pmem: 384MiB, disk: 1GiB}}}}
system: {{sqlite: {{}}}}
workload: {{oltp: {{profile: write_only, table_size: 1000, ramp_up: 0s, duration: 2s, interval: 500ms}}}}
settings: {{memory: {{server: {{limit: 256MiB, swap: 0}}}}}}
factors:
  dax:
    with: {{settings: {{storage: {{device: pmem, mount: dax=always}}}}}}
    without: {{settings: {{storage: {{device: pmem, mount: dax=never}}}}}}
arm: dax
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: disk_written_bytes_per_transaction}}
"""


@pytest.mark.long  # its sibling: what DAX moves, in test_vm.py
def test_a_study_compares_persistent_memory_with_and_without_dax(here: Desk, kernel: Path) -> None:
    here.fairtrial("run", here.study(STUDY.format(kernel=kernel)))
    trials = record.read(here.run).trials
    assert [trial.valid for trial in trials] == [True, True]
    read_back = {
        trial.trial.arm: {each.name: (each.read_back or "").strip() for each in trial.effective} for trial in trials
    }
    assert read_back["with"]["storage.mount"] == "xfs dax=always"
    assert read_back["without"]["storage.mount"] == "xfs dax=never"
    assert {each["memory.server.limit"] for each in read_back.values()} == {str(256 * MIB)}
    assert len({trial.data.content_sha256 for trial in trials}) == 1
    written = {trial.trial.arm: trial.scalars["disk_written_bytes_per_transaction"] for trial in trials}
    # The file system's own log is seen with DAX, too; of the data, a commit writes a page at least.
    assert written["without"] - written["with"] > 4096, "what DAX writes is seen by no block device"
    assert {trial.data.restored.method for trial in trials} == {"sparse_copy"}
    here.fairtrial("verify", here.run)
