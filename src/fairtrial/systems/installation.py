"""A server's installation at a place: what is on its PATH, in a directory there, or unpacked here and carried there."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fairtrial import servers
from fairtrial.errors import AgentError, PlaceError
from fairtrial.hashes import Sha256
from fairtrial.programs import Act
from fairtrial.servers import maven
from fairtrial.study.tree.paths import OwnPath
from fairtrial.systems import private_acts
from fairtrial.systems.existing.parameters import ServerAt
from fairtrial.systems.instance import Identity, Launch
from fairtrial.systems.server import Option
from fairtrial.systems.system import System
from fairtrial.wire.open_place import OpenPlace

FOLDERS = ("bin", "sbin", "libexec")
CARRY_S = 1800.0  # a gigabyte over a slow line
VERSION = re.compile(r"(?:Ver|PostgreSQL\)) (\d+(?:\.\d+)*)")
FETCHED = ("archive", "maven", "debian")
SOURCES = ("base_directory", *FETCHED)


class ServerSource(BaseModel):
    """Which server: parameters that every kind of private server has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str | None = Field(
        None,
        description="Version that the server must report: one that `fairtrial servers` lists is downloaded; "
        "otherwise the server on the PATH must have it, or begin with it (`'10.11'`).",
    )
    base_directory: str | None = Field(
        None,
        description="Base directory of an installation at the place (default: the server on the PATH).",
    )
    archive: OwnPath | None = Field(
        None,
        pattern="^[/~]",
        description="Zip, jar, tarball or Debian package on this machine, unpacked without installing it.",
    )
    maven: str | None = Field(
        None, description="Maven artefact to unpack: `group:artifact:version[:packaging[:classifier]]`."
    )
    debian: str | None = Field(
        None,
        pattern=r"^[a-z0-9][a-z0-9.+-]+(=\S+)?$",
        description="Debian package from apt to unpack: `mariadb-server-core`, for example.",
    )
    sha256: Sha256 | None = Field(
        None,
        description="SHA-256 of what `archive`, `maven` or `debian` names; a different one is refused.",
        exclude_if=lambda sha256: sha256 is None,
    )
    at: ServerAt | None = Field(
        None,
        description="A server that is there already, instead of a private one. See [Servers that are there already]"
        "(../guides/settings.md#servers-that-are-there-already).",
    )

    @field_validator("version", mode="before")
    @classmethod
    def _is_text(cls, version: Any) -> Any:
        if isinstance(version, int | float):
            raise ValueError("a version must be text: quote it, because 10.10 without quotes is 10.1")  # noqa: TRY004 - pydantic wants it
        return version

    @field_validator("maven")
    @classmethod
    def _are_coordinates(cls, coordinates: str | None) -> str | None:
        if coordinates is not None:
            maven.Coordinates.parse(coordinates)
        return coordinates

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = [name for name in SOURCES if getattr(self, name) is not None]
        if self.at is not None and (named := [*sources, *(["version"] if self.version is not None else [])]):
            raise ValueError(f"{named[0]}: the server that `at` names is there already: remove one of the two")
        if len(sources) > 1:
            raise ValueError(f"expected one source of the server, found {' and '.join(sources)}: keep one")
        if self.sha256 is not None and not set(sources) & set(FETCHED):
            raise ValueError(f"sha256: expected beside one of {', '.join(FETCHED)}: name one, or leave sha256 out")
        return self


S = TypeVar("S", bound=ServerSource)


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
            result = place.execute(["sh", "-c", 'command -v -- "$1"', "sh", path])
            if result.code == 0:
                return result.output.strip()
        raise PlaceError(
            f"no {names[0]} at this place (looked for {', '.join(tried)})",
            hint=f"install it there, set system.{self.system}.base_directory, or name a version that `fairtrial "
            "servers` lists",
            field=f"system.{self.system}",
        )

    def equip(self, launch: Launch) -> Launch:
        """The launch with the environment that the programs need."""
        return replace(launch, environment={**self.environment, **launch.environment})

    def command(self, *argv: str) -> list[str]:
        """A command line with the environment that its program needs."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", *variables, *argv] if variables else list(argv)


class PrivateServer(System[S]):
    """A system that is a server of a trial's own, from wherever its parameters say.

    Attributes:
        binaries: names of its main program, the preferred one first.
        making: further programs of its own that make its data.
        empty_bytes: what a data directory takes that no workload has filled.
    """

    # They catch their own crashes, and exit with 1 or 2; LeakSanitizer (23) and ThreadSanitizer (66) report at the end.
    orderly_codes = (0, 23, 66)
    binaries: ClassVar[Sequence[str]]
    making: ClassVar[Sequence[str]] = ()
    empty_bytes: ClassVar[int]

    def disk_bytes(self) -> int:
        """An empty data directory, as prepared, and a trial's own."""
        return 0 if self.parameters.at is not None else 2 * self.empty_bytes

    def has_server(self) -> bool:
        """Always."""
        return True

    def has_data_directory(self) -> bool:
        """The server's own tables are in it, where it is started."""
        return self.parameters.at is None

    def written(self, value: Option) -> str:
        """An option's value as the server takes it."""
        return str(value)

    def acts(self) -> Iterator[Act]:
        """Its files, its programs and its options; of one that is there, what is done to it."""
        parameters, asked = self.parameters, getattr(self.parameters, "options", {})
        options = {name: self.written(value) for name, value in asked.items()}
        if parameters.at is not None:
            restore = getattr(parameters.at, "restore", None)
            yield from private_acts.there(parameters.at, options, restore=restore)
            return
        if (source := self._source()) is not None:
            yield private_acts.fetching(source)
        programs = (self.binaries[0], *self.making)
        yield from private_acts.private(programs, base=parameters.base_directory, options=options)

    def awaited(self) -> servers.Source | None:
        """Its source, unless the place has it itself or it was fetched before."""
        source = self._source()
        if source is None or servers.kept(source, cache=servers.cache_directory()) is not None:
            return None
        return source

    def fetched(self) -> servers.ServerFiles | None:
        """What its source holds, from the cache if it is there."""
        source = self._source()
        return None if source is None else servers.install(source, self.binaries, cache=servers.cache_directory())

    def installation(self, place: OpenPlace) -> Installation:
        """The installation that the parameters name; what is not at the place yet is fetched and carried there.

        Raises:
            PlaceError: it cannot be fetched, unpacked or carried.
        """
        installed = self.fetched()
        if installed is None:
            base = self.parameters.base_directory
            return Installation(self.name, PurePosixPath(base) if base else None)
        there = PurePosixPath(installed.base_directory)
        if place.execute(["test", "-x", str(installed.program)]).code != 0:  # a place that does not share our files
            there = _carried(place, installed)
        libraries = {"LD_LIBRARY_PATH": f"{there}/libs"} if (installed.base_directory / "libs").is_dir() else {}
        return Installation(
            self.name, there, source=installed.source, sha256=installed.program_sha256, environment=libraries
        )

    def _source(self) -> servers.Source | None:
        for kind in ("maven", "archive", "debian"):
            if (named := getattr(self.parameters, kind)) is not None:
                return servers.Source(kind, named, self.parameters.sha256)
        build = servers.known(self.name, self.parameters.version or "")
        return build.source if build is not None and self.parameters.base_directory is None else None


def _carried(place: OpenPlace, installed: servers.ServerFiles) -> PurePosixPath:
    target = place.state_directory / "servers" / f"{installed.archive_sha256[:16]}-{installed.program_sha256[:16]}"
    if place.execute(["test", "-d", str(target)]).code == 0:
        return target
    packed = target.with_suffix(".tar")
    with tempfile.TemporaryDirectory() as temporary:
        local = Path(temporary) / "server.tar"
        with tarfile.open(local, "w") as file:
            file.add(installed.base_directory, arcname=target.name)
        place.agent.put(str(packed), local)
    hint = "the place needs tar and enough disk space for the server"
    unpacking = f"{target}.new"
    place.require(["rm", "-rf", "--", unpacking], hint=hint)
    place.require(["mkdir", "-p", "--", unpacking], hint=hint)
    place.require(["tar", "-xf", str(packed), "-C", unpacking, "--no-same-owner"], hint=hint, timeout_s=CARRY_S)
    place.require(["sync"], hint=hint, timeout_s=CARRY_S)  # a power cut leaves no name without its content
    place.require(["mv", "-T", f"{unpacking}/{target.name}", str(target)], hint=hint)
    place.require(["rm", "-rf", "--", unpacking, str(packed)], hint=hint)
    return target


def identified(place: OpenPlace, installation: Installation, argv: Sequence[str], *, version: str | None) -> Identity:
    """What a server's program says of itself, and what it is: hashed before it runs, and never run by root.

    Args:
        place: where it is.
        installation: its own.
        argv: runs the program to print its version.
        version: that it must have; None: any.

    Raises:
        PlaceError: it does not run, is not what was unpacked, or has another version.
    """
    binary = argv[0]
    digest = place.require(["sha256sum", binary], hint="the server binary must be readable").split()[0]
    if installation.sha256 not in (None, digest):
        raise PlaceError(
            f"{binary} at this place differs from what was unpacked from {installation.source}", hint="remove it"
        )
    command = installation.command(*argv)
    ran = place.execute(command, user=place.server_user)
    if ran.code != 0:
        hint = _libraries(place, installation, binary)
        raise PlaceError(f"`{' '.join(command)}` failed ({ran.code}):\n{ran.output}", hint=hint)
    lines = ran.output.splitlines()
    said = next(filter(VERSION.search, lines), " ".join(lines)).strip()  # warnings with their time may be around it
    match = VERSION.search(said)
    own = match[1] if match else said
    if version is not None and own.split(".")[: version.count(".") + 1] != version.split("."):
        known = ", ".join(build.version for build in servers.builds() if build.system == installation.system)
        raise PlaceError(
            f"expected {installation.system} {version}, but {binary} reports {own}",
            hint=f"name a version that is downloaded ({known}), or a source that has yours (base_directory, "
            "archive, maven)",
        )
    facts = {"binary": binary, **({"source": installation.source} if installation.source else {})}
    return Identity(version=said, sha256=digest, facts=facts)


def _libraries(place: OpenPlace, installation: Installation, binary: str) -> str:
    """What to do about a program that does not run: most lack a library that an installation would have brought."""
    try:
        ldd = installation.command("ldd", binary)  # which may run the program
        lines = place.execute(ldd, user=place.server_user).output.splitlines()
    except AgentError:  # an image may have no ldd
        lines = []
    missing = sorted({line.split()[0] for line in lines if line.endswith("not found")})
    if missing:
        return f"install its missing libraries at the place: {', '.join(missing)}"
    return "the server binary must run there: install the library that the message names, if it does"
