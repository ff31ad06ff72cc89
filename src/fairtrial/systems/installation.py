"""A server's installation at a place: what is on its PATH, in a directory there, or unpacked here and carried there."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fairtrial import servers
from fairtrial.errors import PlaceError
from fairtrial.servers import maven
from fairtrial.study.tree.paths import OwnPath
from fairtrial.systems.system import Identity, Launch
from fairtrial.wire.open_place import OpenPlace

FOLDERS = ("bin", "sbin", "libexec")
CARRY_S = 1800.0  # a gigabyte over a slow line
VERSION = re.compile(r"(?:Ver|PostgreSQL\)) (\d+(?:\.\d+)*)")
SOURCES = ("base_directory", "archive", "maven", "debian")
# Names of each system's main program, the preferred one first: MariaDB's had MySQL's name before 10.5.
PROGRAMS: Mapping[str, Sequence[str]] = {
    "mariadb": ("mariadbd", "mysqld"),
    "mysql": ("mysqld",),
    "postgres": ("postgres",),
}


class ServerSource(BaseModel):
    """Which server: parameters that every kind of private server has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str | None = Field(
        None,
        description="The version the server must say it has: one that `fairtrial servers` lists is downloaded; else "
        "the one on PATH must have it, or begin with it (`'10.11'`).",
    )
    base_directory: str | None = Field(
        None, description="Base directory of an installation at the place; without any source, what is on PATH is used."
    )
    archive: OwnPath | None = Field(
        None,
        pattern="^[/~]",
        description="A zip, jar, tarball or Debian package on this machine, unpacked without installing it.",
    )
    maven: str | None = Field(
        None, description="A Maven artefact: `group:artifact:version[:packaging[:classifier]]`, unpacked likewise."
    )
    debian: str | None = Field(
        None,
        pattern=r"^[a-z0-9][a-z0-9.+-]+(=\S+)?$",
        description="A Debian package that apt offers, unpacked likewise: `mariadb-server-core`.",
    )

    @field_validator("version", mode="before")
    @classmethod
    def _is_text(cls, version: Any) -> Any:
        if isinstance(version, int | float):
            raise ValueError("a version is text: put it in quotes, as 10.10 without them is 10.1")  # noqa: TRY004 - pydantic wants it
        return version

    @field_validator("maven")
    @classmethod
    def _are_coordinates(cls, coordinates: str | None) -> str | None:
        if coordinates is not None:
            maven.Coordinates.parse(coordinates)
        return coordinates

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a server comes from one source, not from {' and '.join(given)}: keep one")
        return self


@dataclass(frozen=True)
class Installation:
    """Where a place has a server's files.

    Attributes:
        system: the kind of server.
        base_directory: below it are its programs; None: they are on PATH.
        source: where the files came from, for the record; empty: the place had them.
        sha256: of the main program, where it was carried there.
        environment: without which the programs do not run.
    """

    system: str
    base_directory: PurePosixPath | None
    source: str = ""
    sha256: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def program(self, place: OpenPlace, *names: str, beside: Sequence[str] = ()) -> str:
        """The path of the first of these programs.

        Args:
            place: where it is.
            names: of the program, in the order of preference.
            beside: further paths to look for, where it is not on PATH.

        Raises:
            PlaceError: there is none, with where it was looked for.
        """
        base = self.base_directory
        tried = [f"{base}/{folder}/{name}" for name in names for folder in FOLDERS] if base else [*names, *beside]
        for path in tried:
            found = place.execute(["sh", "-c", 'command -v -- "$1"', "sh", path])
            if found.code == 0:
                return found.output.strip()
        raise PlaceError(
            f"no {names[0]} at this place (looked for {', '.join(tried)})",
            hint=f"install it there, name its system.{self.system}.base_directory, or a version that "
            "`fairtrial servers` lists",
        )

    def equip(self, launch: Launch) -> Launch:
        """The launch with the environment that the programs need."""
        return replace(launch, environment={**self.environment, **launch.environment})

    def command(self, *argv: str) -> list[str]:
        """A command line with the environment that its program needs."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", *variables, *argv] if variables else list(argv)


def awaited(system: str, parameters: Mapping[str, Any]) -> servers.Source | None:
    """What would be fetched before a system with these parameters could run; None: nothing, or not a server."""
    source = _source(system, parameters) if system in PROGRAMS else None
    if source is None or servers.kept(source, cache=servers.cache_directory()) is not None:
        return None
    return source


def fetched(system: str, parameters: Mapping[str, Any]) -> servers.Installed | None:
    """What a system's parameters name, unpacked on this machine; None where they name what a place has itself.

    Raises:
        PlaceError: it cannot be fetched or unpacked.
    """
    source = _source(system, parameters)
    if source is None:
        return None
    return servers.install(source, PROGRAMS[system], cache=servers.cache_directory())


def at(place: OpenPlace, system: str, parameters: Mapping[str, Any]) -> Installation:
    """The installation that a system's parameters name; what is not there yet is fetched and carried there.

    Args:
        place: where the server is to run.
        system: its kind.
        parameters: of `ServerSource`, as JSON values.

    Raises:
        PlaceError: it cannot be fetched, unpacked or carried.
    """
    installed = fetched(system, parameters)
    if installed is None:
        base = parameters["base_directory"]
        return Installation(system, PurePosixPath(base) if base else None)
    base = PurePosixPath(installed.base_directory)
    if place.execute(["test", "-x", str(installed.program)]).code != 0:  # a place that does not share our files
        base = _carried(place, installed)
    libraries = {"LD_LIBRARY_PATH": f"{base}/libs"} if (installed.base_directory / "libs").is_dir() else {}
    return Installation(system, base, source=installed.source, sha256=installed.program_sha256, environment=libraries)


def _source(system: str, parameters: Mapping[str, Any]) -> servers.Source | None:
    for kind in ("maven", "archive", "debian"):
        if parameters[kind] is not None:
            return servers.Source(kind, parameters[kind])
    build = servers.known(system, parameters["version"] or "")
    if build is not None and parameters["base_directory"] is None:
        return build.source
    return None


def _carried(place: OpenPlace, installed: servers.Installed) -> PurePosixPath:
    target = place.state_directory / "servers" / installed.program_sha256[:16]
    if place.execute(["test", "-d", str(target)]).code == 0:
        return target
    packed = target.with_suffix(".tar")
    with tempfile.TemporaryDirectory() as temporary:
        local = Path(temporary) / "server.tar"
        with tarfile.open(local, "w") as file:
            file.add(installed.base_directory, arcname=target.name)
        place.agent.put(str(packed), local)
    hint = "the place needs tar, and room for the server"
    unpacking = f"{target}.new"
    place.require(["rm", "-rf", "--", unpacking], hint=hint)
    place.require(["mkdir", "-p", "--", unpacking], hint=hint)
    place.require(["tar", "-xf", str(packed), "-C", unpacking, "--no-same-owner"], hint=hint, timeout_s=CARRY_S)
    place.require(["mv", "-T", f"{unpacking}/{target.name}", str(target)], hint=hint)
    place.require(["rm", "-rf", "--", unpacking, str(packed)], hint=hint)
    return target


def identified(place: OpenPlace, installation: Installation, argv: Sequence[str], *, version: str | None) -> Identity:
    """What a server's program says of itself, and what it is.

    Args:
        place: where it is.
        installation: its own.
        argv: runs the program to print its version.
        version: that it must have; None: any.

    Raises:
        PlaceError: it does not run, is not what was unpacked, or has another version.
    """
    binary = argv[0]
    said = place.require(installation.command(*argv), hint=_libraries(place, installation, binary)).strip()
    digest = place.require(["sha256sum", binary], hint="the server binary must be readable").split()[0]
    if installation.sha256 not in (None, digest):
        raise PlaceError(
            f"{binary} at this place is not what was unpacked from {installation.source}", hint="remove it"
        )
    found = VERSION.search(said)
    own = found[1] if found else said
    if version is not None and not _begins(own, version):
        known = ", ".join(build.version for build in servers.builds() if build.system == installation.system)
        raise PlaceError(
            f"no {installation.system} {version}: {binary} says it is {own}",
            hint=f"name one of {known}, which are downloaded, or a source that has it (base_directory, archive, maven)",
        )
    facts = {"binary": binary, **({"source": installation.source} if installation.source else {})}
    return Identity(version=said, sha256=digest, facts=facts)


def _libraries(place: OpenPlace, installation: Installation, binary: str) -> str:
    """What to do about a program that does not run: most lack a library that an installation would have brought."""
    lines = place.execute(installation.command("ldd", binary)).output.splitlines()
    missing = sorted({line.split()[0] for line in lines if line.endswith("not found")})
    return f"install what it lacks at the place: {', '.join(missing)}" if missing else "the server binary must run"


def _begins(version: str, wanted: str) -> bool:
    return version.split(".")[: wanted.count(".") + 1] == wanted.split(".")
