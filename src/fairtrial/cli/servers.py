"""`fairtrial servers`: which builds of servers can be had by version, fetched and tried."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fairtrial.errors import InputError, Problem

if TYPE_CHECKING:
    from fairtrial.servers import Build
    from fairtrial.systems.installation import PrivateServer

MIB = 1 << 20


def listing() -> None:
    """Prints every known build, its size, whether it is in the cache, and where it comes from."""
    from fairtrial import servers
    from fairtrial.report.text import columns

    cache = servers.cache_directory()
    rows = []
    for build in servers.builds():
        here = "yes" if servers.kept(build.source, cache=cache) else "no"
        artefact = build.maven.rpartition(f":{build.version}")[0]
        rows.append([build.system, build.version, here, f"{build.bytes / MIB:.0f}", artefact])
    typer.echo("\n".join(columns.table(["system", "version", "here", "MiB", "Maven artefact"], rows, left=3)))
    typer.echo(f"\nkept in {cache}")
    typer.echo("a study names one so:  system: {mariadb: {version: 11.4.5}}")


def fetch(system: str, version: str) -> None:
    """Downloads and unpacks a build, and prints where it is.

    Raises:
        InputError: no such build is known.
        PlaceError: it cannot be fetched.
    """
    from fairtrial import servers

    build = _known(system, version)
    typer.echo(f"fetching {build.maven}, {build.bytes / MIB:.0f} MiB", err=True)
    binaries = _server(system, version).binaries
    installed = servers.install(build.source, binaries, cache=servers.cache_directory())
    typer.echo(f"base directory  {installed.base_directory}")
    typer.echo(f"program         {installed.program}")
    typer.echo(f"sha256          {installed.program_sha256}")


def check(system: str, version: str | None) -> None:
    """Starts a server once, privately, on this machine, and prints what it is.

    Args:
        system: its kind.
        version: a known build's; None: what is on PATH.

    Raises:
        InputError: no such build is known.
        PlaceError: it cannot be had, or does not run here.
    """
    from fairtrial.cli.running.progress import ProgressLines
    from fairtrial.cli.terminal import Console
    from fairtrial.run.feasibility.server import check as checked
    from fairtrial.run.opening import opened
    from fairtrial.study.resolved import Section

    if version is not None:
        _known(system, version)
    server = _server(system, version)
    progress = ProgressLines(Console(stderr=True))
    with opened(
        Section({"local": {"state_directory": None}}), directory=Path("servers-check"), progress=progress
    ) as place:
        status = checked(place, server)
    typer.echo(f"version   {status.identity.version}")
    typer.echo(f"sha256    {status.identity.sha256}")
    for name, fact in status.identity.facts.items():
        typer.echo(f"{name:9} {fact}")
    typer.echo(f"created   in {status.created_s:.1f} s, started in {status.started_s:.1f} s, stopped")
    typer.echo(f"variables {len(status.options)}")


def _server(system: str, version: str | None) -> PrivateServer[Any]:
    from fairtrial.systems import SYSTEMS
    from fairtrial.systems.installation import PrivateServer

    kinds = {name: kind for name, kind in SYSTEMS.items() if issubclass(kind, PrivateServer)}
    if system not in kinds:
        raise _refused(f"{system} is no kind of server", f"one of {', '.join(kinds)}")
    return kinds[system](kinds[system].model.model_validate({"version": version}))


def _known(system: str, version: str) -> Build:
    from fairtrial import servers

    build = servers.known(system, version)
    if build is None:
        known = ", ".join(f"{each.system} {each.version}" for each in servers.builds())
        raise _refused(f"no build of {system} {version} is known", f"known: {known}")
    return build


def _refused(message: str, suggestion: str) -> InputError:
    problem = Problem(message, file="SYSTEM VERSION", suggestion=suggestion)
    return InputError([problem], hint="a study may name others by `maven`, `archive`, `debian` or `base_directory`")
