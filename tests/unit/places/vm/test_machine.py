"""A guest as QEMU's command line: what a study says and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pydantic import ValidationError

from fairtrial.errors import PlaceError
from fairtrial.places.vm import Vm
from fairtrial.places.vm.kernels import Kernel
from fairtrial.places.vm.machine import EMULATED_PROCESSOR, Machine, argv, command_line, overlay, persistent_start
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.wire import Limits

MIB, GIB = 1 << 20, 1 << 30
KERNEL = Kernel(image=Path("/k/vmlinuz"), modules=Path("/k/m"), release="6.1", source="debian-6.1", sha256="0" * 64)


def parameters(**given_: Any) -> VmParameters:
    return VmParameters.model_validate({"kernel": "debian-6.1", **given_})


def machine(*, keep: bool = False, accelerator: str = "tcg", **given_: Any) -> Machine:
    return Machine(
        parameters=parameters(**given_),
        kernel=KERNEL,
        directory=Path("/run/guest"),
        disk=Path("/state/disk"),
        keep=keep,
        accelerator=accelerator,
        limits=Limits().emulated(),
        image=KERNEL.image,
    )


def values(words: list[str], option: str) -> list[str]:
    return [words[index + 1] for index, word in enumerate(words) if word == option]


def drive(words: list[str], name: str) -> list[str]:
    (found,) = [value for value in values(words, "-drive") if f"id={name}" in value.split(",")]
    return found.split(",")


def test_memory_and_processors_are_what_the_study_says() -> None:
    words = argv(machine(memory="512MiB", cpus=3))
    assert values(words, "-m") == ["512M"]
    assert values(words, "-smp") == ["3"]
    assert values(words, "-kernel") == ["/k/vmlinuz"]


def test_persistent_memory_is_added_to_the_memory_and_kept_from_the_kernel() -> None:
    machine_ = machine(memory="640MiB", pmem="640MiB")
    assert values(argv(machine_), "-m") == ["1280M"]
    assert "memmap=640M!512M" in command_line(machine_)
    assert not [word for word in command_line(machine()) if word.startswith("memmap")]


def test_the_first_process_is_the_agent_and_knows_what_it_is() -> None:
    words = command_line(machine(boot_parameters=["mitigations=off"]))
    assert words[-2:] == ["--", "boot"]
    assert "rdinit=/fairtrial/agent" in words
    assert words.index("mitigations=off") < words.index("--"), "what comes after -- is not the kernel's"
    assert "panic=-1" in words, "a guest that panics ends"


def test_the_guests_agent_is_as_patient_as_its_controller() -> None:
    assert limit_told(machine()) == Limits().emulated().environment()["FAIRTRIAL_LIMITS"]
    counting = limit_told(machine(icount=3, cpus=1))  # whose clock jumps
    assert counting == Limits(silence_s=1e9).environment()["FAIRTRIAL_LIMITS"]


def test_an_emulated_guest_boots_with_one_processor_unless_the_study_says_how_many() -> None:
    assert {"maxcpus=1", "FAIRTRIAL_PROCESSORS=all", "cryptomgr.notests=1"} < {*command_line(machine(cpus=2))}
    for few in (machine(cpus=1), machine(cpus=4, boot_parameters=["maxcpus=2"]), machine(cpus=4, accelerator="kvm")):
        assert not {"maxcpus=1", "FAIRTRIAL_PROCESSORS=all"} & {*command_line(few)}
    words = command_line(machine(boot_parameters=["cryptomgr.notests=0"]))
    assert words.index("cryptomgr.notests=1") < words.index("cryptomgr.notests=0"), "the study's word is the last"


def limit_told(of: Machine) -> str:
    (word,) = [word for word in command_line(of) if word.startswith("FAIRTRIAL_LIMITS=")]
    return word.partition("=")[2]


@given(st.integers(256, 8192), st.integers(32, 4096).map(lambda half: 2 * half))
def test_persistent_memory_lies_in_one_piece_of_memory_and_not_at_its_end(memory: int, pmem: int) -> None:
    """q35: all below 2.75 GiB; else 2 GiB below 4 GiB and the rest from there. 128 MiB is a section."""
    chosen = parameters(memory=memory * MIB, pmem=pmem * MIB)
    total = (memory + pmem) * MIB
    try:
        start = persistent_start(chosen)
    except PlaceError:
        reject()
    end = start + pmem * MIB
    assert start % (128 * MIB) == 0
    if total < 2816 * MIB:
        assert end < total
    else:
        assert 4 * GIB <= start < end <= 4 * GIB + total - 2 * GIB


def test_persistent_memory_that_fits_nowhere_is_an_error_with_a_way_out() -> None:
    with pytest.raises(PlaceError, match="2048 MiB of persistent memory do not fit beside 1024 MiB") as refused:
        persistent_start(parameters(memory="1GiB", pmem="2GiB"))
    assert "2GiB" in refused.value.hint


def test_what_a_trial_writes_to_its_disk_is_gone_and_what_prepares_stays() -> None:
    trial, kept = machine(), machine(keep=True)
    assert {"file=overlay.qcow2", "format=qcow2"} < {*drive(argv(trial), "data")}
    assert overlay(trial)[-3:] == ["-b", "/state/disk", "/run/guest/overlay.qcow2"]
    assert {"file=/state/disk", "format=raw"} < {*drive(argv(kept), "data")}


def test_no_flush_of_a_guest_is_dropped() -> None:
    """QEMU makes every disk with `snapshot=on` an unsafe one, whatever `cache` says."""
    for kept in (False, True):
        words = argv(machine(keep=kept, swap="64MiB"))
        assert all("cache=none" in drive(words, name) for name in ("data", "swap"))
        assert not any("snapshot" in word for word in words)


def test_a_disk_is_held_back_as_the_study_says_and_swap_is_not() -> None:
    words = argv(machine(swap="64MiB", throttle={"bytes_per_s": "100MiB", "requests_per_s": "2000/s"}))
    assert "throttling.bps-total=104857600" in drive(words, "data")
    assert "throttling.iops-total=2000" in drive(words, "data")
    assert not [word for word in drive(words, "swap") if word.startswith("throttling")]
    assert not [word for word in drive(argv(machine()), "data") if word.startswith("throttling")]


def test_there_is_no_swap_unless_the_study_says_so() -> None:
    assert len(values(argv(machine()), "-drive")) == 1
    assert len(values(argv(machine(swap="64MiB")), "-drive")) == 2


def test_a_comma_in_a_path_is_no_separator_of_options() -> None:
    odd = Machine(
        parameters=parameters(),
        kernel=KERNEL,
        directory=Path("/r"),
        disk=Path("/a,b/disk"),
        keep=True,
        accelerator="tcg",
        limits=Limits(),
        image=KERNEL.image,
    )
    (data,) = values(argv(odd), "-drive")
    assert "file=/a,,b/disk" in data


def test_the_root_is_shared_and_cannot_be_written() -> None:
    (share,) = values(argv(machine()), "-fsdev")
    assert "path=/" in share.split(",")
    assert "readonly=on" in share.split(",")


@pytest.mark.parametrize(
    ("given_", "accelerator", "expected"),
    [
        ({}, "tcg", ["tcg,thread=multi"]),
        ({}, "kvm", ["kvm"]),
        ({"cpus": 1, "icount": 3}, "tcg", ["tcg"]),
    ],
)
def test_the_accelerator_is_the_one_that_was_found(
    given_: dict[str, Any], accelerator: str, expected: list[str]
) -> None:
    words = argv(machine(accelerator=accelerator, **given_))
    assert values(words, "-accel") == expected
    assert values(words, "-icount") == (["shift=3,sleep=off"] if "icount" in given_ else [])
    assert values(words, "-cpu") == (["host"] if accelerator == "kvm" else [EMULATED_PROCESSOR])


def test_counted_instructions_are_emulated_wherever_they_run() -> None:
    assert parameters(cpus=1, icount=3).accelerator_choice == "tcg"
    assert parameters(cpus=1).accelerator_choice == "auto"
    assert parameters(accelerator="kvm").accelerator_choice == "kvm"


@given(st.integers(256, 2048), st.integers(32, 512).map(lambda half: 2 * half), st.sampled_from([2, 4]))
def test_persistent_memory_takes_nothing_from_any_node(share: int, pmem: int, nodes: int) -> None:
    made = machine(memory=share * nodes * MIB, pmem=pmem * MIB, nodes=nodes, cpus=nodes)
    try:
        start = persistent_start(made.parameters)
    except PlaceError:
        reject()
    sizes = [int(value.rpartition("=")[2].removesuffix("M")) for value in values(argv(made), "-object")]
    assert sizes == [share] * (nodes - 1) + [share + pmem]
    hole = 2 * GIB if start >= 4 * GIB else 0  # what does not fit below 3 GiB begins at 4
    assert start - hole >= share * (nodes - 1) * MIB


def test_nodes_share_memory_and_processors_without_a_rest() -> None:
    words = argv(machine(memory="1025MiB", cpus=4, nodes=2))
    sizes = [int(value.rpartition("=")[2].removesuffix("M")) for value in values(words, "-object")]
    assert sum(sizes) == 1025
    assert [value.rpartition("cpus=")[2] for value in values(words, "-numa")] == ["0-1", "2-3"]
    assert values(argv(machine()), "-numa") == []


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"icount": 3}, "one processor"),
        ({"icount": 3, "cpus": 1, "accelerator": "kvm"}, "emulation"),
        ({"cpus": 3, "nodes": 2}, "cannot be shared evenly"),
        ({"pmem": "1GB"}, "multiple of 2 MiB, and 1000000000 bytes"),
        ({"pmem": "640MiB", "nodes": 2, "memory": "500MiB"}, "nodes beside pmem need 256 MiB each: `memory: 512MiB`"),
        ({"pmem": "64MiB", "memory": "192MiB"}, "a guest with pmem needs 256 MiB: `memory: 256MiB`"),
        ({"memory": "64MiB"}, "greater than or equal"),
        ({"kernel": ""}, "at least 1 character"),
        ({"throttle": {"bytes_per_s": 0}}, "greater than 0"),
        ({"throttle": {"requests_per_s": "30/min"}}, r"whole number per second, found 0\.5/s"),
        ({"throttle": {"requests_per_s": "90/min"}}, r"whole number per second, found 1\.5/s"),
        ({"discs": 1}, "Extra inputs"),
    ],
)
def test_what_no_guest_can_be_is_refused(given_: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Vm.model.model_validate({"kernel": "debian-6.1", **given_})
