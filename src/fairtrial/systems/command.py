"""`command`: any program as the system under test, or none at all."""

from __future__ import annotations

import shlex
import signal
import time

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.errors import StreamLostError, SystemStartError
from fairtrial.protocol.generated import FileOutput
from fairtrial.study.tree.quantities import CommandLine, Seconds
from fairtrial.systems.system import Identity, Instance, Launch, System
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace

POLL_S = 0.05  # between two looks whether the program is ready
LOG_LINES = 20


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

    def identity(self, place: OpenPlace) -> Identity:
        """Path and hash of the program, and what its version command prints.

        Raises:
            PlaceError: the program is not on the place's PATH.
        """
        if self.parameters.run is None:
            return Identity(version="", sha256="")
        program = shlex.split(self.parameters.run)[0]
        path = place.require(
            ["sh", "-c", 'command -v -- "$1"', "sh", program],
            hint=f"install {program} at the place, or give its full path in system.command.run",
        ).strip()
        digest = place.require(["sha256sum", path], hint="the program must be readable").split()[0]
        version = ""
        if self.parameters.version is not None:
            version = place.require(shlex.split(self.parameters.version), hint="fix system.command.version").strip()
        return Identity(version=version, sha256=digest, facts={"binary": path})

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """Starts the program and waits until its `ready` command succeeds.

        Raises:
            SystemStartError: it exits or is not ready in time, with its last output.
        """
        if self.parameters.run is None:
            return Instance(endpoint=None, process=None)
        process = place.agent.spawn(
            name="server",
            argv=shlex.split(self.parameters.run),
            environment=launch.environment,
            directory=str(launch.work_directory),
            processors=launch.processors,
            groups=launch.groups,
            stdout=FileOutput(path=str(launch.log_path)),
            stderr=FileOutput(path=str(launch.log_path)),
        )
        try:
            self._wait_until_ready(place, process, launch)
        except StreamLostError:
            raise  # the agent stops what it started
        except BaseException:
            # A run may go on with other trials: nothing of this one may stay beside them.
            _stop(process, place.limits.stop_s)
            raise
        return Instance(endpoint=None, process=process)

    def _wait_until_ready(self, place: OpenPlace, process: Process, launch: Launch) -> None:
        if self.parameters.ready is None:
            return
        deadline = time.monotonic() + self.parameters.ready_timeout
        while place.execute(shlex.split(self.parameters.ready)).code != 0:
            if process.exited is not None or time.monotonic() > deadline:
                happened = "exited" if process.exited is not None else "did not become ready in time"
                log = place.execute(["tail", "-n", str(LOG_LINES), str(launch.log_path)]).output
                raise SystemStartError(
                    f"`{self.parameters.run}` {happened}; its last output:\n{log}",
                    hint="fix system.command.run, or raise ready_timeout",
                )
            time.sleep(POLL_S)

    def stop(self, place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        """SIGTERM to the whole process group, then SIGKILL."""
        del settled
        if instance.process is not None:
            _stop(instance.process, place.limits.stop_s)


def _stop(process: Process, limit_s: float) -> None:
    if process.exited is None:
        process.signal(signal.SIGTERM, group=True)
    process.stop(limit_s)
