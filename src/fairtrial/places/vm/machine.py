"""A guest as QEMU's command line; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fairtrial.errors import PlaceError
from fairtrial.places.vm.kernels import Kernel
from fairtrial.places.vm.parameters import MIB, VmParameters
from fairtrial.wire import Limits

QEMU = "qemu-system-x86_64"
PORT = "fairtrial"  # crates/protocol/src/boot.rs
SHARE = "root"
# In the guest's directory; the overlay has what a trial writes to its disk.
SOCKET, CONSOLE, INITIAL, SWAP, OVERLAY = "agent.sock", "console", "initial.cpio", "swap", "overlay.qcow2"
# q35 has its memory in one piece up to 2.75 GiB, and else 2 GiB below 4 GiB and the rest above it.
ONE_PIECE = 2816 * MIB  # less than this
BELOW, ABOVE_STARTS = 2048 * MIB, 4096 * MIB
PATIENT_S = 10**9  # who holds such a guest is a process of this machine, which ends it
# What an emulated processor leaves out (docs/guides/places.md): `rep` byte by byte, a fifth level of page tables, a
# second view of memory for what the kernel reads of a program.
EMULATED_PROCESSOR = "max,erms=off,fsrm=off,la57=off,smap=off,pku=off"
EMULATED_WORDS = ("cryptomgr.notests=1",)
ONE_FIRST = ("maxcpus=1", "FAIRTRIAL_PROCESSORS=all")  # crates/agent/src/boot/processors.rs
PROCESSOR_WORDS = ("maxcpus", "nr_cpus", "possible_cpus", "nosmp")
ALIGNMENT = 128 * MIB  # persistent memory begins and ends at a memory section, or the kernel refuses to map it


@dataclass(frozen=True)
class Machine:
    """One guest.

    Attributes:
        directory: of its files, QEMU's working directory; names in it are relative, as sockets' names are short.
        disk: the image that holds data.
        keep: whether what the guest writes to it stays.
        accelerator: `kvm` or `tcg`.
        limits: of its agent's stream.
        image: what QEMU loads: the kernel's image, unpacked or as it is.
    """

    parameters: VmParameters
    kernel: Kernel
    directory: Path
    disk: Path
    keep: bool
    accelerator: str
    limits: Limits
    image: Path


def command_line(machine: Machine) -> list[str]:
    """The words of the kernel's command line; what comes after `--` is for the first process."""
    parameters = machine.parameters
    persistent = []
    if parameters.pmem is not None:
        persistent = [f"memmap={parameters.pmem // MIB}M!{persistent_start(parameters) // MIB}M"]
    # An idle guest whose clock counts instructions jumps to its next timer: minutes of silence pass there in no time.
    limits = machine.limits if parameters.icount is None else replace(machine.limits, silence_s=PATIENT_S)
    # What the kernel does not know becomes the first process's environment.
    variables = [f"{name}={value}" for name, value in limits.environment().items()]
    return [
        "console=ttyS0",
        "loglevel=4",
        "panic=-1",  # at once, and then QEMU ends: the guest must not hang
        "oops=panic",
        "rdinit=/fairtrial/agent",
        *persistent,
        *_emulated(machine),
        *variables,
        *parameters.boot_parameters,
        "--",
        "boot",
    ]


def _emulated(machine: Machine) -> list[str]:
    """Words for an emulated guest; a study's own come after them, and are what holds."""
    if machine.accelerator != "tcg":
        return []
    own = {word.partition("=")[0] for word in machine.parameters.boot_parameters}
    one_first = machine.parameters.cpus > 1 and own.isdisjoint(PROCESSOR_WORDS)
    return [*EMULATED_WORDS, *(ONE_FIRST if one_first else ())]


def persistent_start(parameters: VmParameters) -> int:
    """Where persistent memory begins, bytes.

    It must lie in one piece of memory and not at its end, where the firmware's tables are.

    Raises:
        PlaceError: it does not fit beside this much memory.
    """
    pmem = parameters.pmem or 0
    total = parameters.memory + pmem
    if total < ONE_PIECE:
        return (parameters.memory - ALIGNMENT) // ALIGNMENT * ALIGNMENT
    start = (ABOVE_STARTS + total - BELOW - pmem) // ALIGNMENT * ALIGNMENT
    if start < ABOVE_STARTS:
        raise PlaceError(
            f"{pmem // MIB} MiB of persistent memory do not fit beside {parameters.memory // MIB} MiB of memory: "
            "neither below 2.75 GiB together nor above 4 GiB",
            hint="make `memory` at least 2GiB, or both together less than 2816MiB",
        )
    return start


def argv(machine: Machine) -> list[str]:
    """How QEMU is started, in the guest's directory."""
    parameters = machine.parameters
    total = parameters.memory + (parameters.pmem or 0)
    return [
        QEMU,
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-machine", "q35", "-m", f"{total // MIB}M", "-smp", str(parameters.cpus)),
        *_nodes(parameters, total),
        *_accelerator(machine),
        *("-kernel", str(machine.image), "-initrd", INITIAL, "-append", " ".join(command_line(machine))),
        *("-serial", f"file:{CONSOLE}"),
        *("-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={SOCKET},server=on,wait=off"),
        *("-device", f"virtserialport,chardev=agent,name={PORT}"),
        *("-fsdev", f"local,id={SHARE},path=/,security_model=none,readonly=on,multidevs=remap"),
        *("-device", f"virtio-9p-pci,fsdev={SHARE},mount_tag={SHARE}"),
        *_drive("data", *_data(machine), throttle=_throttle(parameters)),
        *(_drive("swap", Path(SWAP), "raw", throttle=()) if parameters.swap else ()),
        *("-device", "virtio-rng-pci"),
    ]


def _nodes(parameters: VmParameters, total: int) -> list[str]:
    if parameters.nodes == 1:
        return []
    words = []
    # Persistent memory lies at the end of all, so it is the last node's, besides an even share.
    share, processors = parameters.memory // parameters.nodes // MIB, parameters.cpus // parameters.nodes
    for node in range(parameters.nodes):
        last = node == parameters.nodes - 1
        size = total // MIB - share * (parameters.nodes - 1) if last else share
        first = node * processors
        words += ["-object", f"memory-backend-ram,id=node{node},size={size}M"]
        words += ["-numa", f"node,nodeid={node},memdev=node{node},cpus={first}-{first + processors - 1}"]
    return words


def _accelerator(machine: Machine) -> list[str]:
    if machine.accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    if machine.parameters.icount is not None:
        counting = f"shift={machine.parameters.icount},sleep=off"
        return ["-accel", "tcg", "-cpu", EMULATED_PROCESSOR, "-icount", counting]
    return ["-accel", "tcg,thread=multi", "-cpu", EMULATED_PROCESSOR]


def _throttle(parameters: VmParameters) -> tuple[str, ...]:
    limits = (
        ("throttling.bps-total", parameters.throttle.bytes_per_s),
        ("throttling.iops-total", parameters.throttle.requests_per_s),
    )
    return tuple(f"{name}={int(value)}" for name, value in limits if value)


def _data(machine: Machine) -> tuple[Path, str]:
    """Image and format. No `snapshot=on`: QEMU drops every flush to such a disk, whatever `cache` says."""
    return (machine.disk, "raw") if machine.keep else (Path(OVERLAY), "qcow2")


def overlay(machine: Machine) -> list[str]:
    """How the overlay over the kept disk is made."""
    made = str(machine.directory / OVERLAY)
    return ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(machine.disk.absolute()), made]


def _drive(name: str, image: Path, form: str, *, throttle: tuple[str, ...]) -> list[str]:
    """Flushes reach this machine's disk, and its page cache holds nothing of the guest's."""
    options = ["if=none", f"id={name}", f"file={_escaped(image)}", f"format={form}", "cache=none", "aio=threads"]
    return ["-drive", ",".join([*options, *throttle]), "-device", f"virtio-blk-pci,drive={name},serial={name}"]


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")
