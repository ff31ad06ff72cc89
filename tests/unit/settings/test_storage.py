"""What a trial's data lie on: which devices are taken, what is made of them, and how each thing goes away again."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from support.facts import EMULATED, facts_of
from support.machines.set_here import effect_of, validated

from fairtrial.errors import PlaceError
from fairtrial.settings import Effect
from fairtrial.wire.facts import Facts

HERE = facts_of(user_id=0)
GUEST = facts_of(user_id=0, guest=EMULATED)
TRIAL = PurePosixPath("/state/work/abc")
IMAGE, LINK, AT = "/state/work/abc/storage.image", "/state/work/abc/storage.device", "/state/work/abc/storage"


def stored(facts: Facts = HERE, **value: Any) -> Effect:
    return effect_of(facts, TRIAL, storage=value)


def actions(effect: Effect) -> list[dict[str, Any]]:
    return [step.model_dump(mode="json")["action"] for _, step in effect.steps]


def argv(effect: Effect, name: str) -> list[str]:
    (found,) = [each for each in effect.steps if each[1].name == name]
    words: list[str] = found[1].model_dump(mode="json")["action"]["argv"]
    return words


def test_persistent_memory_is_formatted_for_dax_and_mounted_before_the_data_come() -> None:
    effect = stored(GUEST, device="pmem", mount="dax=always")
    assert {phase for phase, _ in effect.steps} == {"place"}
    assert [step.name for _, step in effect.steps] == [
        "storage.iostats",
        "storage.mkfs",
        "storage.directory",
        "storage.mount",
    ]
    assert argv(effect, "storage.mkfs") == ["mkfs.xfs", "-q", "-f", "-m", "reflink=0", "/dev/pmem0"]
    assert actions(effect)[-1] == {
        "kind": "mount",
        "source": "/dev/pmem0",
        "target": AT,
        "file_system": "xfs",
        "options": "dax=always",
    }
    assert effect.data_directory == TRIAL / "storage/data", "a mount point itself could not be replaced whole"


def test_requests_to_persistent_memory_are_counted_so_that_dax_shows() -> None:
    counted = actions(stored(GUEST, device="/dev/pmem1", mount="dax=never"))[0]
    assert counted == {"kind": "write", "path": "/sys/block/pmem1/queue/iostats", "value": "1"}


def test_an_option_that_did_not_take_effect_is_seen() -> None:
    _, mounted = stored(GUEST, device="pmem", mount="dax=always,noatime,defaults").steps[-1]
    assert mounted.check is not None
    assert mounted.check.expect == "xfs dax=always,noatime", "`defaults` is nothing that a kernel shows"


def test_ext4_has_blocks_of_a_page_and_own_words_replace_ours() -> None:
    ext4 = stored(GUEST, device="pmem", file_system="ext4", mount="dax=never")
    assert argv(ext4, "storage.mkfs") == ["mkfs.ext4", "-q", "-F", "-b", "4096", "/dev/pmem0"]
    own = stored(GUEST, device="/dev/pmem1", mkfs=["-b", "size=4096"])
    assert argv(own, "storage.mkfs") == ["mkfs.xfs", "-q", "-f", "-b", "size=4096", "/dev/pmem1"]


def test_arms_with_and_without_dax_have_the_same_file_system() -> None:
    one, other = (stored(GUEST, device="pmem", mount=mount) for mount in ("dax=always", "dax=never"))
    assert argv(one, "storage.mkfs") == argv(other, "storage.mkfs")


def test_a_file_becomes_a_device_and_each_step_takes_its_own_away() -> None:
    effect = stored(device="file", size="1GiB")
    names = ["storage.file", "storage.loop", "storage.mkfs", "storage.directory", "storage.mount"]
    assert [step.name for _, step in effect.steps] == names
    assert argv(effect, "storage.file") == ["fallocate", "--length", str(1 << 30), IMAGE]
    assert argv(effect, "storage.mkfs")[-1] == LINK
    inverses = [step.model_dump(mode="json")["inverse"] for _, step in effect.steps]
    assert inverses[0] == {"kind": "execute", "argv": ["rm", "-f", IMAGE], "lasting": False}
    assert inverses[1]["argv"][-2:] == [IMAGE, LINK], "found by its file, whatever its number is"
    assert [inverse["kind"] for inverse in inverses] == ["execute", "execute", "none", "restore", "restore"]


def test_latency_of_a_file_lies_between_device_and_file_system() -> None:
    effect = stored(device="file", size="1GiB", file_system="ext4", latency="8ms")
    assert argv(effect, "storage.latency")[-3:] == ["fairtrial-abc", LINK, "8"]
    assert argv(effect, "storage.mkfs")[-1] == "/dev/mapper/fairtrial-abc"
    assert {need.what for need in effect.needs} >= {"dmsetup", "/sys/module/dm_delay", "losetup", "mkfs.ext4"}


def test_latency_of_null_blk_is_given_in_nanoseconds_and_read_back() -> None:
    effect = stored(device="null_blk", size="512MiB", latency="80us")
    item = "/sys/kernel/config/nullb/fairtrial-abc"
    assert argv(effect, "storage.null_blk")[-4:] == [item, LINK, "512", "80000"]
    _, made = effect.steps[0]
    assert made.check is not None
    assert made.check.expect == "512 1 2 80000 1"


def test_memory_is_a_file_system_itself() -> None:
    effect = stored(device="memory", size="64MiB", mount="noatime")
    mounted = actions(effect)[-1]
    assert (mounted["file_system"], mounted["options"]) == ("tmpfs", "noatime,size=67108864,mode=755")
    assert [step.name for _, step in effect.steps] == ["storage.directory", "storage.mount"]
    assert effect.needs == ()


@pytest.mark.parametrize(
    "device", ["/dev/sda", "/dev/vda1", "/dev/mapper/home", "/dev/nullb0", "/dev/pmem/../sda", "/dev/pmem0/../sda"]
)
@pytest.mark.parametrize("facts", [HERE, GUEST])
def test_what_may_hold_somebodys_data_is_never_formatted(device: str, facts: Facts) -> None:
    with pytest.raises(PlaceError, match=f"{device} is not formatted at this place") as refused:
        stored(facts, device=device)
    assert "state_directory" in refused.value.hint


def test_persistent_memory_of_a_real_machine_is_not_formatted_either() -> None:
    with pytest.raises(PlaceError, match="somebody's data") as refused:
        stored(HERE, device="pmem")
    assert "vm" in refused.value.hint


def test_who_is_not_root_is_told() -> None:
    with pytest.raises(
        PlaceError, match=r"settings\.storage needs root at the place, and the agent there is user 1000"
    ):
        stored(facts_of(), device="memory", size="64MiB")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"device": "file"}, "file needs a `size`"),
        ({"device": "pmem", "size": "1GiB"}, "pmem has a size of its own"),
        ({"device": "file", "size": "64MiB"}, "XFS needs at least 300MiB"),
        ({"device": "file", "size": "1GiB", "mount": "dax=always"}, "only persistent memory can do DAX"),
        ({"device": "file", "size": "1GiB", "latency": "0.5ms"}, "whole milliseconds"),
        ({"device": "pmem", "latency": "1ms"}, "pmem takes no latency"),
        ({"device": "memory", "size": "1GiB", "mkfs": ["-b"]}, "not formatted"),
        ({"device": "sda", "size": "1GiB"}, "pattern"),
        ({"device": "pmem", "mount": "dax=always;reboot"}, "pattern"),
        ({"device": "pmem", "file_system": "btrfs"}, "ext4"),
        ({"device": "pmem", "mkfs": ["-l", "logdev=/dev/sda"]}, "name no other device"),
        ({"device": "pmem", "mkfs": ["-l", "logdev=sda"]}, "name no other device"),
        ({"device": "pmem", "file_system": "ext4", "mkfs": ["-J", "device=LABEL=journal"]}, "name no other device"),
        ({"device": "pmem", "mkfs": [""]}, "name no other device"),
    ],
)
def test_what_does_not_fit_together_is_refused_where_it_is_written(value: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        validated({"storage": value})


@pytest.mark.parametrize("milliseconds", range(1, 60))
def test_every_whole_number_of_milliseconds_is_one(milliseconds: int) -> None:
    effect = stored(device="file", size="1GiB", latency=f"{milliseconds}ms")
    assert argv(effect, "storage.latency")[-1] == str(milliseconds)
