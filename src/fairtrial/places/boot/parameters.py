"""What a study says of a host that boots."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from fairtrial.hashes import Sha256
from fairtrial.study.tree.paths import OwnPath
from fairtrial.study.tree.quantities import CommandLine, Seconds

Word = Annotated[str, StringConstraints(pattern=r"^[!-~]+$")]


class BootParameters(BaseModel):
    """A kernel that a host boots once before every trial; its own default kernel is never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Literal["kexec", "grub", "systemd-boot", "efi"] = Field(
        description="How the kernel is booted once: `kexec` resets no hardware, the others restart the host."
    )
    kernel: OwnPath | None = Field(
        None,
        min_length=1,
        description="As for the place `vm`: a bzImage or build directory on this machine, a Debian package, or "
        "`debian-6.12`; the host's own default kernel unless it is given.",
    )
    sha256: Sha256 | None = Field(
        None,
        description="SHA-256 of the image that `kernel` names; a different one is refused.",
        exclude_if=lambda sha256: sha256 is None,
    )
    parameters: tuple[Word, ...] = Field((), description="Further words of the kernel's command line.")
    power: CommandLine | None = Field(
        None,
        description="Command line on this machine that turns the host's power off and on, such as `ipmitool … power "
        "cycle`; it runs when the host has not answered within `limit`.",
    )
    limit: Seconds = Field(600.0, gt=0, description="How long the host may take to answer after a restart.")
    expected: Seconds = Field(120.0, ge=0, description="What a restart is expected to take, for the plan.")

    @model_validator(mode="after")
    def _hash_of_a_kernel(self) -> Self:
        if self.sha256 is not None and self.kernel is None:
            raise ValueError("sha256: expected beside `kernel`: name the kernel, or leave sha256 out")
        return self
