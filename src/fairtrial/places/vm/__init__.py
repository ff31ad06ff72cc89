"""A virtual machine on this machine, booting a kernel of its own: afresh for every trial.

Owns kernels, the guest's first file system, QEMU. The guest's agent is the same binary as everywhere.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final, Literal

from fairtrial import disks
from fairtrial.places.local import Local, LocalParameters
from fairtrial.places.place import BootedPlace, Disk, Requirements
from fairtrial.places.vm import accelerators, images, kernels, unpacked
from fairtrial.places.vm.guest import STATE, Guest
from fairtrial.places.vm.machine import Machine
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.programs import SERVERS, Act, Program
from fairtrial.wire import Agent, Limits
from fairtrial.wire.open_place import OpenPlace
from fairtrial.words import counted, size

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # a guest's (crates/agent/src/boot)
OWN = (STATE, "/tmp", "/run", "/dev", "/proc", "/sys")  # noqa: S108 - where a guest has files of its own
BOOTING = ("qemu-system-x86_64", "qemu-img", "mkfs.xfs")
DOWNLOADING = ("apt-get", "dpkg-deb")
# What QEMU takes beside its guest's memory, and what this machine needs to go on.
BESIDE_GUEST_BYTES = 256 << 20
VIRTUALISATION: Final[Mapping[str, Literal["required", "preferred", "unused"]]] = {
    "kvm": "required",
    "auto": "preferred",
    "tcg": "unused",
}
BOOT_S = 16.0  # to a ready agent, through a trial's steps around its load, and off again, under emulation


class Vm(BootedPlace[VmParameters]):
    """A guest of QEMU, whose root is this machine's."""

    name = "vm"
    summary = "A virtual machine on this machine that boots a kernel of its own, afresh for every trial."
    model = VmParameters
    example = MappingProxyType({"kernel": "debian-6.1"})
    programs = (
        Program("qemu-system-x86_64", "the place `vm` runs it", "qemu-system-x86"),
        Program("qemu-img", "the place `vm` lays a trial's disk over the kept one with it", "qemu-utils"),
        Program("mkfs.xfs", "the place `vm` makes its disk with it", "xfsprogs", "-V"),
        Program("apt-get", "the place `vm` downloads kernels with it", "apt"),
        Program("dpkg-deb", "the place `vm` unpacks kernels with it", "dpkg"),
    )

    def duration_s(self) -> float:
        """Of its boot."""
        return BOOT_S

    @property
    def title(self) -> str:
        """With its kernel."""
        return f"{self.name} {self.parameters.kernel}"

    @property
    def need(self) -> str:
        """The guest's memory and processors, and what runs them."""
        parameters = self.parameters
        kvm = ", KVM" if parameters.accelerator == "kvm" else ""
        return (
            f"a guest for every trial with {parameters.kernel}: "
            f"{size(parameters.memory + (parameters.pmem or 0))} of memory, "
            f"{counted(parameters.cpus, 'processor')}, QEMU{kvm}"
        )

    @property
    def agent_user(self) -> str:
        """The agent is a guest's first process."""
        return "root in the guest"

    def acts(self) -> Iterator[Act]:
        """QEMU, what its guest boots and sees, and what makes its disk."""
        parameters = self.parameters
        yield from (replace(act, here=True) for act in self.carrier().acts())
        yield from kernels.acts(parameters.kernel, parameters.sha256)
        words = " ".join(parameters.boot_parameters)
        booted = f"qemu-system-x86_64 with {size(parameters.memory)} of memory, boot parameters `{words}`"
        yield Act("runs", booted, "for every trial", here=True)
        made_by = "mkfs.xfs, qemu-img and mkswap" if parameters.swap else "mkfs.xfs and qemu-img"
        yield Act("runs", f"{made_by}, on disks in the state directory", "for every trial", here=True)
        here = "what is listed below `to make data`: on this machine, unless its files cannot be put on a guest's disk"
        yield Act("runs", here, "once, before the first guest", user=SERVERS, here=True)
        yield Act("reads", "/: the guest sees this machine's root, read-only, as QEMU's user may", here=True)

    def carrier(self) -> Local:
        """This machine."""
        return Local(LocalParameters(state_directory=self.parameters.state_directory))

    def requirements(self) -> Requirements:
        """QEMU, what fills its disk, memory, and what downloads and unpacks its kernel if that is a package."""
        parameters = self.parameters
        has_kernel = Path(parameters.kernel).expanduser().exists()
        return Requirements(
            programs=(*BOOTING, *(() if has_kernel else DOWNLOADING)),
            memory_bytes=parameters.memory + (parameters.pmem or 0) + BESIDE_GUEST_BYTES,
            virtualisation=VIRTUALISATION[parameters.accelerator_choice],
        )

    def boot(self, *, holder: str, lock: bool, disk: Disk) -> Guest:
        """Boots a guest; this machine's lock is held until it ends.

        Args:
            holder: who asks, in words that a refused second user can act upon.
            lock: take this machine's lock.
            disk: which disk it gets; what a trial writes to it goes with the guest.

        Raises:
            PlaceError: no QEMU, no such kernel, no room, or the guest did not come up; with its last lines.
        """
        parameters, limits = self.parameters, Limits.from_environment()
        # What is prepared for guests here is prepared by the programs that they would find.
        host = Agent(self.carrier().connect(limits, path=PATH), holder=holder, lock=lock, limits=limits)
        try:
            state = self._state(OpenPlace(host))
            running = state / "running"
            if lock:
                shutil.rmtree(running, ignore_errors=True)  # of guests whose control plane was killed
            with disks.explained(state, written="a guest's files"):
                kernel = kernels.find(parameters.kernel, cache=state / "kernels", sha256=parameters.sha256)
                accelerator = accelerators.choose(parameters.accelerator_choice, kernel, state=state)
                image = _image(kernel, accelerator, state=state)
                running.mkdir(parents=True, exist_ok=True)
                machine = Machine(
                    parameters=parameters,
                    kernel=kernel,
                    directory=Path(tempfile.mkdtemp(dir=running)),
                    disk=_disk(state, parameters, disk),
                    keep=disk.keep,
                    accelerator=accelerator,
                    limits=limits.emulated() if accelerator == "tcg" else limits,
                    image=image,
                )
                return Guest(machine, host)
        except BaseException:
            host.close()
            raise

    def shares(self, path: PurePosixPath) -> bool:
        """Whether a file of this machine is the same file in a guest, whose root is this machine's."""
        real = Path(path).resolve()
        return not any(real.is_relative_to(own) for own in OWN)

    def has_disk(self, host: OpenPlace, *, key: str) -> bool:
        """Whether there is a disk with the prepared data of a key."""
        return images.path(self._state(host), key=key, size=self.parameters.disk).exists()

    def make_disk(self, host: OpenPlace, *, key: str) -> bool:
        """Makes a disk with data of a key that were prepared on this machine; false where that is not possible.

        Raises:
            PlaceError: mkfs failed, or there is no room.
        """
        state = self._state(host)
        with disks.explained(state, written="a disk with prepared data"):
            return images.make(host, state, key=key, size=self.parameters.disk)

    def _state(self, host: OpenPlace) -> Path:
        return Path(host.state_directory) / self.name


def _disk(state: Path, parameters: VmParameters, disk: Disk) -> Path:
    if disk.key is not None and not disk.keep:
        prepared = images.path(state, key=disk.key, size=parameters.disk)
        if prepared.exists():
            return prepared
    return state / f"disk-{parameters.disk}"


def _image(kernel: kernels.Kernel, accelerator: str, *, state: Path) -> Path:
    """Unpacking takes an emulated processor seconds at every boot, and this machine's less than one, once."""
    if accelerator != "tcg":
        return kernel.image
    return unpacked.kept(kernel.image, sha256=kernel.sha256, cache=state / "unpacked")
