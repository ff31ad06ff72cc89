"""What a study says of a virtual machine."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairtrial.hashes import Sha256
from fairtrial.study.tree.paths import OwnPath
from fairtrial.study.tree.quantities import Bytes, WholeRate

MIB = 1 << 20
LEAST_MEMORY = 192 * MIB  # Debian's kernel, the agent and a shell; less ends in a panic before anything can be said
LEAST_PMEM, PMEM_STEP = 64 * MIB, 2 * MIB  # the kernel maps no region of another alignment
LEAST_BESIDE_PMEM = 256 * MIB  # of a node: persistent memory and the alignment of its ends lie in the last one alone
LARGEST_SHIFT = 10


class Throttle(BaseModel):
    """How fast a disk may be, as QEMU holds it back. Latency is not added: requests wait only beyond the rate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes_per_s: Bytes | None = Field(None, gt=0, description="Read and written together.")
    requests_per_s: WholeRate | None = Field(None, description="Reads and writes together, a whole number per second.")


class VmParameters(BaseModel):
    """A virtual machine that boots a kernel of its own for every trial, over this machine's root, read-only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: OwnPath = Field(
        min_length=1,
        description="A bzImage, a kernel's build directory, a Debian package that is downloaded and unpacked without "
        "installing it, or `debian-6.1` for the newest package of a version.",
    )
    sha256: Sha256 | None = Field(
        None,
        description="SHA-256 of the kernel's image; a different one is refused.",
        exclude_if=lambda sha256: sha256 is None,
    )
    memory: Bytes = Field(1 << 30, ge=LEAST_MEMORY, description="Of the guest, persistent memory not counted.")
    cpus: int = Field(2, ge=1, le=256, description="Virtual processors.")
    nodes: int = Field(1, ge=1, le=8, description="NUMA nodes, which share memory and processors evenly.")
    swap: Bytes | None = Field(None, ge=MIB, description="A swap device of this size, empty at every boot.")
    pmem: Bytes | None = Field(
        None, ge=LEAST_PMEM, description="Persistent memory, emulated (`memmap=`): `/dev/pmem0`, which can do DAX."
    )
    disk: Bytes = Field(8 << 30, ge=512 * MIB, description="Largest size of the disk that holds data; it is sparse.")
    throttle: Throttle = Field(Throttle(), description="How fast that disk may be.")
    boot_parameters: tuple[str, ...] = Field((), description="Further words of the kernel's command line.")
    accelerator: Literal["auto", "kvm", "tcg"] = Field(
        "auto", description="`auto` takes KVM if a guest boots with it, else emulation (`tcg`)."
    )
    icount: int | None = Field(
        None,
        ge=0,
        le=LARGEST_SHIFT,
        description="Under emulation: guest time advances by 2^N ns per instruction, whatever the host does. One "
        "processor only.",
    )
    state_directory: str | None = Field(
        None, pattern="^/", description="Where kernels and disks are kept on this machine, as for a local place."
    )

    @property
    def accelerator_choice(self) -> Literal["auto", "kvm", "tcg"]:
        """`icount` counts what emulation executes, so a machine with KVM emulates then, too."""
        return "tcg" if self.icount is not None else self.accelerator

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.icount is not None and self.cpus > 1:
            raise ValueError("icount counts one processor's instructions: `cpus: 1`")
        if self.icount is not None and self.accelerator == "kvm":
            raise ValueError("icount is emulation's: `accelerator: tcg`")
        if self.pmem is not None and self.pmem % PMEM_STEP:
            raise ValueError(f"pmem is a multiple of 2 MiB, and {self.pmem} bytes are not")
        if self.pmem is not None and self.memory < self.nodes * LEAST_BESIDE_PMEM:
            each = "nodes beside pmem need 256 MiB each" if self.nodes > 1 else "a guest with pmem needs 256 MiB"
            raise ValueError(f"{each}: `memory: {256 * self.nodes}MiB` at least")
        if self.cpus % self.nodes:
            raise ValueError(f"{self.cpus} processors cannot be shared evenly by {self.nodes} nodes")
        return self
