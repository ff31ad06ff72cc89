"""`command`: any program as the system under test, or none at all."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.programs import Act, asked_for
from fairtrial.study.tree.quantities import CommandLine, Seconds
from fairtrial.systems import program, server
from fairtrial.systems.instance import Identity, Instance, Launch
from fairtrial.systems.system import System
from fairtrial.wire.open_place import OpenPlace


class CommandSystemParameters(BaseModel):
    """A program that is started before every trial and stopped after it; leave `run` out to start nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: CommandLine | None = Field(
        None,
        description="Command line of the program, split as a shell would but run without one, in a fresh directory.",
    )
    ready: CommandLine | None = Field(
        None,
        description="Command line that succeeds once the program is ready (default: the program is ready at once).",
    )
    ready_timeout: Seconds = Field(60.0, description="Time limit for the program to become ready.")
    version: CommandLine | None = Field(
        None, description="Command line that prints the program's version, for the record."
    )


class CommandSystem(System[CommandSystemParameters]):
    """A program that brings its own data, or none."""

    name = "command"
    summary = "Any program as the system under test, or none (`command: {}`)."
    model = CommandSystemParameters

    def has_server(self) -> bool:
        """Where there is a program to run."""
        return self.parameters.run is not None

    def user(self, place: OpenPlace) -> None:
        """The agent's own, as which its program runs."""

    def acts(self) -> Iterator[Act]:
        """Its command lines, as the agent's own user."""
        parameters = self.parameters
        if parameters.run is None:
            return
        yield Act("runs", parameters.run, "in every trial, until the load has ended")
        if parameters.ready is not None:
            yield Act("runs", parameters.ready, "in every trial, until it succeeds")
        if parameters.version is not None:
            yield Act("runs", parameters.version, "in every trial, for the record")

    def identity(self, place: OpenPlace) -> Identity:
        """Path and hash of the program, and what its version command prints.

        Raises:
            PlaceError: the program is not on the place's PATH.
        """
        parameters = self.parameters
        if parameters.run is None:
            return Identity(version="", sha256="")
        return program.identity(place, run=parameters.run, version=parameters.version, field="system.command")

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """Starts the program and waits until its `ready` command succeeds.

        Raises:
            SystemStartError: it exits or is not ready in time, with its last output.
        """
        if self.parameters.run is None:
            return Instance(endpoint=None, process=None)
        launch = replace(launch, ready_s=self.parameters.ready_timeout)
        with asked_for("system.command.run"):
            process = server.spawned(place, shlex.split(self.parameters.run), launch, user=None)
        looks, limit_s = shlex.split(self.parameters.ready or "true"), place.limits.stop_s
        with server.coming_up(place, launch, kind=self.name, stop=lambda: process.stop(limit_s, group=True)):
            server.wait_until_ready(place, process, launch, looks=looks, kind=self.name)
        return Instance(endpoint=None, process=process)

    def stop(self, place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        """SIGTERM to the whole process group, then SIGKILL."""
        del settled
        if instance.process is not None:
            instance.process.stop(place.limits.stop_s, group=True)
