"""`command`: any program as the system under test, or none at all."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fairtrial.errors import StreamLostError, SystemStartError
from fairtrial.study.catalogue import Kind
from fairtrial.study.tree.quantities import CommandLine, Seconds
from fairtrial.systems.system import Identity, Instance, Launch
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace

POLL_S = 0.05  # between two looks whether the program is ready
LOG_LINES = 20


class CommandSystemParameters(BaseModel):
    """A program that is started before every trial and stopped after it; leave `run` out to start nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: CommandLine | None = Field(
        None,
        description="Command line, split as by a shell, run without one, in a fresh directory.",
    )
    ready: CommandLine | None = Field(
        None, description="Command line that succeeds once the program is ready; without it, it is ready at once."
    )
    ready_timeout: Seconds = Field(60.0, description="How long it may take to be ready.")
    version: CommandLine | None = Field(None, description="Command line that prints the version, for the record.")


KIND = Kind(
    name="command",
    summary="Any program as the system under test, or none (`command: {}`).",
    parameters=TypeAdapter(CommandSystemParameters),
)


def has_server(parameters: Mapping[str, Any]) -> bool:
    """Where there is a program to run."""
    return parameters["run"] is not None


def has_data_directory(_parameters: Mapping[str, Any]) -> bool:
    """A command brings its own data."""
    return False


def identity(place: OpenPlace, parameters: Mapping[str, Any]) -> Identity:
    """Path and hash of the program, and what its version command prints.

    Raises:
        PlaceError: the program is not on the place's PATH.
    """
    if parameters["run"] is None:
        return Identity(version="", sha256="")
    program = shlex.split(parameters["run"])[0]
    path = place.require(
        ["sh", "-c", 'command -v -- "$1"', "sh", program],
        hint=f"install {program} at the place, or give its full path in system.command.run",
    ).strip()
    digest = place.require(["sha256sum", path], hint="the program must be readable").split()[0]
    version = ""
    if parameters["version"] is not None:
        version = place.require(shlex.split(parameters["version"]), hint="mend system.command.version").strip()
    return Identity(version=version, sha256=digest, facts={"binary": path})


def initial(_parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nothing is prepared for a command."""
    return {}


def for_loading(parameters: Mapping[str, Any], _facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nothing is prepared for a command."""
    return parameters


def create(_place: OpenPlace, _parameters: Mapping[str, Any], _launch: Launch) -> None:
    """Nothing is prepared for a command."""


def create_database(_place: OpenPlace, _endpoint: Mapping[str, Any]) -> None:
    """There is none to make."""


def start(place: OpenPlace, parameters: Mapping[str, Any], launch: Launch) -> Instance:
    """Starts the program and waits until its `ready` command succeeds.

    Raises:
        SystemStartError: it exits or is not ready in time, with its last output.
    """
    if parameters["run"] is None:
        return Instance(endpoint=None, process=None)
    process = place.agent.spawn(
        name="server",
        argv=shlex.split(parameters["run"]),
        environment=dict(launch.environment),
        directory=str(launch.work_directory),
        processors=list(launch.processors) if launch.processors is not None else None,
        groups=launch.groups,
        stdout={"kind": "file", "path": str(launch.log_path)},
        stderr={"kind": "file", "path": str(launch.log_path)},
    )
    try:
        _wait_until_ready(place, process, parameters=parameters, launch=launch)
    except StreamLostError:
        raise  # the agent stops what it started
    except BaseException:
        _stop(
            process, place.limits.stop_s
        )  # a run may go on with other trials: nothing of this one may stay beside them
        raise
    return Instance(endpoint=None, process=process)


def _wait_until_ready(place: OpenPlace, process: Process, *, parameters: Mapping[str, Any], launch: Launch) -> None:
    if parameters["ready"] is None:
        return
    deadline = time.monotonic() + parameters["ready_timeout"]
    while place.execute(shlex.split(parameters["ready"])).code != 0:
        if process.exited is not None or time.monotonic() > deadline:
            happened = "exited" if process.exited is not None else "was not ready in time"
            log = place.execute(["tail", "-n", str(LOG_LINES), str(launch.log_path)]).output
            raise SystemStartError(
                f"`{parameters['run']}` {happened}; its last lines:\n{log}",
                hint="mend system.command.run, or give it more ready_timeout",
            )
        time.sleep(POLL_S)


def stop(place: OpenPlace, instance: Instance, *, settled: bool) -> None:
    """SIGTERM to the whole process group, then SIGKILL."""
    del settled
    if instance.process is not None:
        _stop(instance.process, place.limits.stop_s)


def _stop(process: Process, limit_s: float) -> None:
    if process.exited is None:
        process.signal(signal.SIGTERM, group=True)
    process.stop(limit_s)
