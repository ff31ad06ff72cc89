"""Findings about what this kernel offers, and to this user: what studies set, count and trace with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from fairtrial.doctor.grading import graded, unknown
from fairtrial.doctor.looking import PlaceObservation
from fairtrial.record.models import Finding

# Bits of capabilities (include/uapi/linux/capability.h).
CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39
PARANOID_CLOSED: Final = 3  # from here on distributions' kernels let such a user count nothing, upstream's do as with 2
PARANOID_OWN: Final = 2  # from here on only a user's own code is counted, not the kernel's (perf_event_open(2))
FIRST_LRU_GEN: Final = "6.1"
CONTROLLERS: Final = ("cpu", "cpuset", "io", "memory")  # limits that studies set
RUNTIMES: Final = {"podman", "docker"}
FIRST_IO_URING: Final = (5, 1)
REFUSED: Final = "not readable by this user"
AS_ROOT: Final = "connect to the place as root"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """All of this module, in the order of the table."""
    yield lru_gen(observation)
    yield psi(observation)
    yield cgroups(observation)
    if observation.looked_for_programs and observation.facts.container is None:
        yield containers(observation)
    yield perf(observation)
    yield bpf(observation)
    yield kvm(observation)
    yield io_uring(observation)


def lru_gen(observation: PlaceObservation) -> Finding:
    """Multi-generational LRU."""
    name = "lru_gen"
    why = "the setting `lru_gen` needs a kernel with multi-generational LRU"
    if "/sys/kernel/mm/lru_gen/enabled" in observation.refused:
        return unknown(name, why=why, how=AS_ROOT, value=REFUSED)
    bits = observation.text("/sys/kernel/mm/lru_gen/enabled")
    return graded(
        name=name,
        value=f"available, enabled {bits}" if bits is not None else "not supported by this kernel",
        grade="fine" if bits is not None else "caution",
        why=why,
        fix=f"boot a kernel that supports it: `place: {{vm: {{kernel: debian-{FIRST_LRU_GEN}}}}}`",
    )


def psi(observation: PlaceObservation) -> Finding:
    """Pressure stall information."""
    name = "psi"
    why = "telemetry needs pressure stall information to separate waits for memory, disks and processors"
    if "/proc/pressure/memory" in observation.refused:
        return unknown(name, why=why, how=AS_ROOT, value=REFUSED)
    there = "/proc/pressure/memory" in observation.files
    return graded(
        name=name,
        value="available" if there else "not available",
        grade="fine" if there else "caution",
        why=why,
        fix="boot with psi=1, or use a kernel with CONFIG_PSI",
    )


def cgroups(observation: PlaceObservation) -> Finding:
    """Version and controllers: version 2 where they are there, else version 1's."""
    name = "cgroups"
    why = "control groups set limits on memory, processors and disks; only version 2 protects memory"
    unified = next(
        (
            observation.files[path][0].split()
            for path in ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers")
            if observation.files.get(path)
        ),
        [],
    )
    first = [line.split() for line in observation.files.get("/proc/cgroups", ()) if not line.startswith("#")]
    older = sorted(row[0] for row in first if len(row) > 1 and row[1] != "0")
    if not unified and not older:
        if "/sys/fs/cgroup" not in observation.nodes:
            return unknown(name, why=why, how="mount cgroup2 at /sys/fs/cgroup", value="none mounted")
        return unknown(name, why=why, how="look at `stat -f /sys/fs/cgroup` and /proc/cgroups")
    lacking = [controller for controller in CONTROLLERS if controller not in unified]
    mode = "version 2" if not older else "versions 1 and 2" if unified else "version 1"
    value = f"{mode}: {', '.join(unified or older)}" if mode != "versions 1 and 2" else f"{mode}: {', '.join(unified)}"
    return graded(
        name=name,
        value=value,
        grade="caution" if lacking else "fine",
        why=why,
        fix="boot with systemd.unified_cgroup_hierarchy=1",
    )


def containers(observation: PlaceObservation) -> Finding:
    """Whether a container can be held to limits: crun refuses control groups of both versions at once (hybrid)."""
    name = "containers"
    why = "the place `container` limits memory and processors by control groups"
    if RUNTIMES.isdisjoint(observation.programs):
        fix = "`apt install podman runc`, as root"
        return Finding(name=name, value="neither podman nor docker", grade="caution", why=why, fix=fix)
    if "/sys/fs/cgroup/cgroup.controllers" in observation.files:
        return Finding(name=name, value="control groups of version 2", grade="fine", why=why)
    version = "hybrid" if "/sys/fs/cgroup/unified/cgroup.controllers" in observation.files else "version 1 of"
    if observation.facts.user_id != 0:
        value, fix = f"{version} control groups: no limits without root", "run as root, or boot with version 2"
        return Finding(name=name, value=value, grade="caution", why=why, fix=fix)
    has_runc = "runc" in observation.programs
    used = "which runc can use" if has_runc else "and no runc, which podman needs then"
    return graded(
        name=name,
        value=f"{version} control groups, {used}",
        grade="fine" if has_runc else "caution",
        why=why,
        fix="install runc, or boot with systemd.unified_cgroup_hierarchy=1",
    )


def perf(observation: PlaceObservation) -> Finding:
    """What perf may count for this user."""
    name = "perf"
    why = "probes count and profile with perf; without access to the kernel they see user code only"
    level = observation.number("/proc/sys/kernel/perf_event_paranoid")
    if level is None:
        return unknown(name, why=why, how="use a kernel with CONFIG_PERF_EVENTS", value="not supported by this kernel")
    whole = _may(observation, CAP_PERFMON) or _may(observation, CAP_SYS_ADMIN) or level < PARANOID_OWN
    scope = "kernel and user" if whole else "user code only" if level < PARANOID_CLOSED else "at most user code"
    return graded(
        name=name,
        value=f"perf_event_paranoid {level}, {scope}",
        grade="fine" if whole else "caution",
        why=why,
        fix="`sysctl kernel.perf_event_paranoid=-1` as root, or run as root",
    )


def bpf(observation: PlaceObservation) -> Finding:
    """Whether bpftrace programs can be loaded and understand the kernel's types."""
    name = "bpf"
    why = "bpftrace probes load programs into the kernel"
    typed = "/sys/kernel/btf/vmlinux" in observation.nodes
    permitted = _may(observation, CAP_SYS_ADMIN) or (_may(observation, CAP_BPF) and _may(observation, CAP_PERFMON))
    locked = "[confidentiality]" in (observation.text("/sys/kernel/security/lockdown") or "")
    if locked:
        return Finding(
            name=name,
            value="refused: the kernel is locked down",
            grade="caution",
            why=why,
            fix="boot without lockdown=confidentiality",
        )
    return graded(
        name=name,
        value=f"{'permitted' if permitted else 'not permitted'}, {'with' if typed else 'without'} the kernel's types",
        grade="fine" if permitted else "caution",
        why=why,
        fix="run as root, or with CAP_BPF and CAP_PERFMON",
    )


def kvm(observation: PlaceObservation) -> Finding:
    """Whether guests run on the processor: a device that can be opened may still not boot a kernel."""
    name = "kvm"
    why = "without KVM a guest's processor is emulated, and its times and rates are not evidence"
    emulated = "judge counts per transaction in guests, or use a host with (nested) KVM"
    may = observation.nodes.get("/dev/kvm")
    if may is None:
        return Finding(name=name, value="no /dev/kvm", grade="caution", why=why, fix=emulated)
    if may != "rw":
        fix = "add this user to the group of /dev/kvm: `usermod -aG kvm USER`"
        return Finding(name=name, value="this user cannot open /dev/kvm", grade="caution", why=why, fix=fix)
    booted = booted_kernels(observation)
    if booted is None:
        how = "open a `vm` place: the first guest that boots shows it"
        return unknown(name, why=why, how=how, value="/dev/kvm can be opened; not yet tried")
    works = any(booted)
    return graded(
        name=name,
        value="boots a kernel" if works else "/dev/kvm can be opened but does not boot a kernel",
        grade="fine" if works else "caution",
        why=why,
        fix=emulated,
    )


def booted_kernels(observation: PlaceObservation) -> list[bool] | None:
    """What places `vm` found out since this machine booted: for each kernel, whether KVM ran it; None if nothing."""
    try:
        known = json.loads(observation.state.get("kvm.json", ""))
        if known["boot"] != observation.text("/proc/sys/kernel/random/boot_id"):
            return None
        return [bool(works) for works in known["kernels"].values()] or None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def io_uring(observation: PlaceObservation) -> Finding:
    """Whether it may be used; a container's filter is only seen by trying, which the load engine's ceiling does."""
    name = "io_uring"
    why = "the load engine waits with io_uring, otherwise with epoll; some workloads require io_uring"
    version = _VERSION.match(observation.facts.kernel)
    if version and (int(version[1]), int(version[2])) < FIRST_IO_URING:
        return Finding(
            name=name, value="not supported by this kernel", grade="caution", why=why, fix="use kernel 5.1 or newer"
        )
    disabled = observation.number("/proc/sys/kernel/io_uring_disabled")
    if disabled:
        return Finding(
            name=name,
            value=f"io_uring_disabled {disabled}",
            grade="caution",
            why=why,
            fix="`sysctl kernel.io_uring_disabled=0`, as root",
        )
    tried = _interface(observation)
    if tried == "io_uring":
        return Finding(name=name, value="used by the load engine here", grade="fine", why=why)
    if tried is not None:
        fix = "allow the io_uring system calls in the container's seccomp profile"
        return Finding(name=name, value=f"refused: the load engine uses {tried}", grade="caution", why=why, fix=fix)
    if observation.table("/proc/self/status").get("Seccomp", "0").strip() == "0" and disabled == 0:
        return Finding(name=name, value="not restricted", grade="fine", why=why)
    how = "run a study of a server here: its first drive shows it"
    return unknown(name, why=why, how=how, value="not disabled; not yet tried")


def _interface(observation: PlaceObservation) -> str | None:
    try:
        ceiling = json.loads(observation.state.get("ceiling", ""))
    except ValueError:
        return None
    interface = ceiling.get("interface") if isinstance(ceiling, dict) else None
    return interface if isinstance(interface, str) else None


def _may(observation: PlaceObservation, capability: int) -> bool:
    """Whether the agent has a capability (`CapEff` of /proc/self/status, hexadecimal)."""
    held = observation.table("/proc/self/status").get("CapEff", "0").strip()
    return bool(int(held or "0", 16) >> capability & 1)
