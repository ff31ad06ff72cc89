"""The facts of a place: what its agent tells of it and, of one that was booted, how it is run."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from fairtrial.protocol import generated


class GuestFacts(BaseModel):
    """How a place that was booted is run. A kind of place may derive its own with more, for the record.

    Attributes:
        accelerator: what runs its instructions.
        emulated: whether a program imitates the processor, so that times are no evidence.
        content_sha256: of its kernel's image and the modules that it loads as it boots; empty: not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    accelerator: str
    emulated: bool
    content_sha256: str = ""


class ContainerFacts(BaseModel):
    """How a place that is a container is run.

    Attributes:
        image: as the study names it.
        image_id: hash of its content and configuration.
        runtime: what runs it, with its version.
        run_options: what limits it.
        memory_bytes: its limit; None: none but its machine's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str
    image_id: str
    runtime: str
    run_options: list[str]
    memory_bytes: int | None = None


class BootFacts(BaseModel):
    """How a host was booted for its stream.

    Attributes:
        by: the way.
        kernel_source, kernel_sha256: where its kernel came from, and the image's hash.
        content_sha256: of that kernel's image and all its modules; empty for the host's own.
        boot_id, build_id: the kernel's own, of this boot and of its build.
        microcode: its revision as the kernel found it after the boot.
        watchdog: what the hardware's calls itself; empty: none is fed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    kernel_source: str
    kernel_sha256: str
    boot_id: str
    build_id: str
    microcode: str
    content_sha256: str = ""
    watchdog: str = ""


class Facts(generated.Facts):
    """Facts of a place, told by its agent.

    Attributes:
        boot: how it was booted, if it is a host that boots.
        guest: how it is run, if it was booted for its stream.
        container: how it is run, if it is a container.
    """

    boot: BootFacts | None = None
    guest: GuestFacts | None = None
    container: ContainerFacts | None = None

    def as_json(self) -> dict[str, Any]:
        """As a record holds them: those of a guest beside the others."""
        guest = {} if self.guest is None else self.guest.model_dump(mode="json")
        boot = {} if self.boot is None else {"boot": self.boot.model_dump(mode="json")}
        container = {} if self.container is None else {"container": self.container.model_dump(mode="json")}
        own = self.model_dump(mode="json", exclude={"boot", "guest", "container"})
        return {**own, **boot, **guest, **container}
