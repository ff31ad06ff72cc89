"""What kernels offer to whom: as root and as a user, whole and cut down."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.seen import seen

from fairtrial.doctor import PlaceObservation, kernel
from fairtrial.doctor.kernel import booted_kernels, bpf, cgroups, containers, io_uring, kvm, lru_gen, perf, psi
from fairtrial.record.models import Finding

ROOT = f"CapEff:\t{(1 << 41) - 1:016x}\nSeccomp:\t0"
USER = "CapEff:\t0000000000000000\nSeccomp:\t0"
CONTAINER = "CapEff:\t00000000a80425fb\nSeccomp:\t2"
STATUS, PARANOID = "/proc/self/status", "/proc/sys/kernel/perf_event_paranoid"
CONTROLLERS, MIXED = "/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers"
BOOT = {"/proc/sys/kernel/random/boot_id": "this-boot"}


def container_host(files: dict[str, str], *programs: str, user_id: int = 0) -> PlaceObservation:
    """A place with podman and other programs."""
    return seen(files, facts={"user_id": user_id}, programs=dict.fromkeys(("podman", *programs), ("/x", "1")))


def test_multigenerational_lru_is_there_with_its_bits_or_a_guest_has_it() -> None:
    assert lru_gen(seen({"/sys/kernel/mm/lru_gen/enabled": "0x0007"})).value == "available, enabled 0x0007"
    missing = lru_gen(seen())
    assert missing.grade == "caution"
    assert "debian-6.1" in missing.fix


def test_pressure_stall_information() -> None:
    assert psi(seen({"/proc/pressure/memory": "some avg10=0.00"})).grade == "fine"
    assert psi(seen()).grade == "caution"


@pytest.mark.parametrize(
    ("look", "path"), [(lru_gen, "/sys/kernel/mm/lru_gen/enabled"), (psi, "/proc/pressure/memory")]
)
def test_what_a_user_may_not_read_is_not_taken_for_missing(
    look: Callable[[PlaceObservation], Finding], path: str
) -> None:
    found = look(seen(refused=frozenset({path})))
    assert (found.grade, found.value) == ("unknown", "not readable by this user")
    assert "root" in found.fix


@pytest.mark.parametrize(
    ("place", "grade", "value"),
    [
        (container_host({CONTROLLERS: "cpu memory"}, user_id=1000), "fine", "control groups of version 2"),
        (container_host({MIXED: "hugetlb"}, "runc"), "fine", "hybrid control groups, which runc can use"),
        (container_host({MIXED: "hugetlb"}), "caution", "hybrid control groups, and no runc, which podman needs then"),
        (container_host({}, "runc", user_id=1000), "caution", "version 1 of control groups: no limits without root"),
    ],
)
def test_whether_a_container_can_be_held_to_limits(place: PlaceObservation, grade: str, value: str) -> None:
    found = containers(place)
    assert (found.grade, found.value) == (grade, value)


def older(*names: str) -> dict[str, str]:
    return {
        "/proc/cgroups": "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
        + "\n".join(f"{name}\t{4}\t1\t1" for name in names)
    }


@pytest.mark.parametrize(
    ("files", "grade", "value"),
    [
        ({CONTROLLERS: "cpuset cpu io memory pids"}, "fine", "version 2: cpuset, cpu, io, memory, pids"),
        ({CONTROLLERS: "cpu pids"}, "caution", "version 2: cpu, pids"),
        (older("memory", "cpu"), "caution", "version 1: cpu, memory"),
        ({MIXED: "hugetlb"} | older("memory"), "caution", "versions 1 and 2: hugetlb"),
    ],
)
def test_control_groups_by_version_and_controllers(files: dict[str, str], grade: str, value: str) -> None:
    found = cgroups(seen(files, nodes={"/sys/fs/cgroup": "r"}))
    assert (found.grade, found.value) == (grade, value)


def test_a_place_without_control_groups_is_unknown() -> None:
    assert cgroups(seen()).value == "none mounted"
    assert cgroups(seen(nodes={"/sys/fs/cgroup": "r"})).grade == "unknown"


@pytest.mark.parametrize(
    ("level", "status", "grade"),
    [(4, ROOT, "fine"), (2, USER, "caution"), (1, USER, "fine"), (-1, USER, "fine"), (3, CONTAINER, "caution")],
)
def test_perf_counts_the_kernel_for_root_or_where_it_is_allowed(level: int, status: str, grade: str) -> None:
    found = perf(seen({PARANOID: str(level), STATUS: status}))
    assert found.grade == grade
    scope = "kernel and user" if grade == "fine" else "user code only" if level == 2 else "at most user code"
    assert found.value == f"perf_event_paranoid {level}, {scope}"


def test_the_capability_of_performance_monitoring_is_enough_for_perf() -> None:
    capable = f"CapEff:\t{1 << 38:016x}"
    assert perf(seen({PARANOID: "4", STATUS: capable})).grade == "fine"
    assert perf(seen()).grade == "unknown"


def test_programs_are_loaded_by_root_or_with_both_capabilities() -> None:
    types = {"/sys/kernel/btf/vmlinux": "r"}
    assert bpf(seen({STATUS: ROOT}, nodes=types)).value == "permitted, with the kernel's types"
    assert bpf(seen({STATUS: ROOT})).value == "permitted, without the kernel's types"
    assert bpf(seen({STATUS: USER}, nodes=types)).grade == "caution"
    both, one = (f"CapEff:\t{bits:016x}" for bits in (1 << 38 | 1 << 39, 1 << 39))
    assert bpf(seen({STATUS: both})).grade == "fine"
    assert bpf(seen({STATUS: one})).grade == "caution"


def test_a_kernel_that_is_locked_down_refuses_even_root() -> None:
    lockdown = {"/sys/kernel/security/lockdown": "none integrity [confidentiality]", STATUS: ROOT}
    assert bpf(seen(lockdown)).value == "refused: the kernel is locked down"
    assert bpf(seen(lockdown | {"/sys/kernel/security/lockdown": "[none] integrity confidentiality"})).grade == "fine"


def probed(boot: str, **kernels: bool) -> dict[str, Any]:
    return {"state": {"kvm.json": json.dumps({"boot": boot, "kernels": kernels})}}


def test_kvm_that_booted_a_kernel_is_fine_and_one_that_did_not_is_no_kvm() -> None:
    device = {"/dev/kvm": "rw"}
    assert kvm(seen(BOOT, nodes=device, **probed("this-boot", a=True))).grade == "fine"
    refused = kvm(seen(BOOT, nodes=device, **probed("this-boot", a=False)))
    assert (refused.grade, refused.value) == ("caution", "/dev/kvm can be opened but does not boot a kernel")


def test_a_device_that_can_be_opened_proves_nothing_until_a_kernel_was_booted() -> None:
    device = {"/dev/kvm": "rw"}
    assert kvm(seen(BOOT, nodes=device)).grade == "unknown"
    assert kvm(seen(BOOT, nodes=device, **probed("another-boot", a=True))).grade == "unknown"


def test_no_device_and_no_right_to_it_are_told_apart() -> None:
    assert kvm(seen()).value == "no /dev/kvm"
    foreign = kvm(seen(nodes={"/dev/kvm": ""}))
    assert "this user cannot open" in foreign.value
    assert "usermod" in foreign.fix


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"kvm"', '{"boot": "this-boot"}', '{"boot": "this-boot", "kernels": 3}']
)
def test_a_file_that_was_cut_tells_nothing(text: str) -> None:
    assert booted_kernels(seen(BOOT, state={"kvm.json": text})) is None


@pytest.mark.parametrize(
    ("files", "state", "grade"),
    [
        ({"/proc/sys/kernel/io_uring_disabled": "0", STATUS: ROOT}, {}, "fine"),
        ({"/proc/sys/kernel/io_uring_disabled": "2", STATUS: ROOT}, {}, "caution"),
        ({"/proc/sys/kernel/io_uring_disabled": "0", STATUS: CONTAINER}, {}, "unknown"),
        ({STATUS: CONTAINER}, {"ceiling": '{"interface": "io_uring"}'}, "fine"),
        ({STATUS: CONTAINER}, {"ceiling": '{"interface": "epoll"}'}, "caution"),
        ({STATUS: CONTAINER}, {"ceiling": "cut"}, "unknown"),
    ],
)
def test_a_containers_filter_is_only_seen_by_trying(files: dict[str, str], state: dict[str, str], grade: str) -> None:
    assert io_uring(seen(files, state=state)).grade == grade


@pytest.mark.parametrize(("kernel", "missing"), [("4.19.0-27-amd64", True), ("5.0.0-1", True), ("5.1.0", False)])
def test_a_kernel_that_is_too_old_has_no_io_uring(kernel: str, *, missing: bool) -> None:
    assert (io_uring(seen(facts={"kernel": kernel})).value == "not supported by this kernel") is missing


def test_no_feature_is_a_doubt_about_results() -> None:
    found = list(kernel.findings(seen()))
    assert len(found) == 7
    assert not any(finding.biases for finding in found)
