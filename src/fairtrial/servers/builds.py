"""Known builds: what `version` stands for where nothing else is said."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from pydantic import BaseModel, ConfigDict, TypeAdapter

from fairtrial.servers.source import Source


class Build(BaseModel):
    """A build of a server in a public registry.

    Attributes:
        system: its kind.
        version: as the server says it of itself.
        maven: coordinates, group:artifact:version[:packaging[:classifier]].
        sha256: of the artefact.
        bytes: its size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    version: str
    maven: str
    sha256: str
    bytes: int

    @property
    def source(self) -> Source:
        """Where it comes from."""
        return Source("maven", self.maven, self.sha256)


@functools.cache
def builds() -> tuple[Build, ...]:
    """Every known build, systems together, versions ascending."""
    text = resources.files("fairtrial.servers").joinpath("builds.toml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Build, ...]).validate_python(tomllib.loads(text)["build"])


def known(system: str, version: str) -> Build | None:
    """The build of exactly this version."""
    return next((build for build in builds() if (build.system, build.version) == (system, version)), None)
