"""What a study says of a container."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fairtrial.hashes import Sha256
from fairtrial.study.tree.quantities import Bytes

LEAST_MEMORY = 16 << 20  # the agent and a shell; less kills the agent before anything can be said
# What fairtrial says itself: two of one option would leave to the runtime which counts.
OWN_OPTIONS: Final = {
    *("--cpus", "--detach", "--entrypoint", "--interactive", "--label", "--log-driver", "--memory", "--memory-swap"),
    *("--name", "--network", "--net", "--pull", "--rm", "--runtime", "--tty", "--user"),
}
FLAGS: Final = {"--init", "--no-healthcheck", "--privileged", "--read-only"}  # the others take a value


class ContainerParameters(BaseModel):
    """A container made from an image for every trial and removed after it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str = Field(
        pattern=r"^[A-Za-z0-9][^\s]*$",
        description="Image by name, digest or identifier. It is resolved once: all trials of a run use one image.",
    )
    sha256: Sha256 | None = Field(
        None,
        description="SHA-256 that identifies the image's configuration, as the record's `image_id` has it; a different "
        "image is refused. A digest in `image` does the same for its manifest.",
        exclude_if=lambda sha256: sha256 is None,
    )
    runtime: Literal["podman", "docker"] = Field("podman", description="What runs the container, found on the PATH.")
    oci_runtime: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9/][^\s]*$",
        description="OCI runtime below it, such as `runc` or `crun` (default: the runtime's own; `runc` for podman on "
        "a machine with hybrid control groups, which crun refuses).",
    )
    cpus: float | None = Field(None, gt=0, description="How many processors it may use, as a quota of time.")
    memory: Bytes | None = Field(
        None, ge=LEAST_MEMORY, description="Memory limit, page cache included; swap is not allowed beyond it."
    )
    network: Literal["none", "host"] = Field(
        "none", description="`none` is a loopback of its own; `host` is this machine's network."
    )
    pull: Literal["never", "missing"] = Field("never", description="Whether an image that is not here is pulled.")
    run_options: tuple[str, ...] = Field(
        (), description="Further options of the runtime's `run`, such as `--shm-size=1g`."
    )
    state_directory: str | None = Field(
        None, pattern="^/", description="Where prepared data are kept on this machine, as for a local place."
    )

    @field_validator("state_directory")
    @classmethod
    def _no_comma(cls, path: str | None) -> str | None:
        if "," in (path or ""):
            raise ValueError(f"{path}: a path with a comma cannot be mounted in a container: choose another")
        return path

    @field_validator("run_options")
    @classmethod
    def _not_own(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        for option in options:
            name, has_value, _ = option.partition("=")
            if not name.startswith("--") or not (has_value or name in FLAGS):
                raise ValueError(f"{option!r}: write option and value as one word, `--name=value`")
            if name in OWN_OPTIONS:
                raise ValueError(f"{name} is set by fairtrial itself: remove it, or use the parameter of that name")
            if name == "--env":
                raise ValueError("--env would stand in the record: use `environment` of the system or the workload")
        return options
