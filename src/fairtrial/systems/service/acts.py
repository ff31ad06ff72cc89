"""What a trial does for a service, from the study alone: its command lines, files, ports and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.programs import SERVERS, Act
from fairtrial.systems.service.parameters import Option, ServiceAt, ServiceParameters
from fairtrial.systems.service.rendering import value_text

GONE: Final = "the service ends with its trial"


def acts(parameters: ServiceParameters) -> Iterator[Act]:
    """Of one that is started, or is there."""
    user = SERVERS if parameters.user is None else f"{parameters.user} where the agent is root, else the agent's user"
    yield from (_started(parameters, user=user) if parameters.at is None else _there(parameters, parameters.at))
    if parameters.ready is not None:
        ready = parameters.ready
        if ready.command is not None:
            yield Act("runs", ready.command, "in every trial, until it succeeds")
        if ready.http is not None:
            yield Act("connects", ready.http, "in every trial, until it answers")
    if parameters.version is not None:
        own = "" if parameters.at is not None else user
        yield Act("runs", parameters.version, "in every trial, for the record", user=own)
    read_back = parameters.read_back
    for command in read_back.values() if isinstance(read_back, dict) else [read_back] * (read_back is not None):
        yield Act("runs", command or "", "in every trial, for each option")


def _started(parameters: ServiceParameters, *, user: str) -> Iterator[Act]:
    yield Act("runs", parameters.run or "", "in every trial, until the load has ended", user=user)
    if parameters.stop is not None:
        yield Act("runs", parameters.stop, "at the end of every trial")
    data = parameters.data
    for command in (*data.create, *data.load) if data is not None else ():
        yield Act("runs", command, "once, to make the data that trials start from", user=user)
    for port in parameters.ports:
        yield Act("listens", f"{{{port}}}: a free port, on the address that the service is told")
    if parameters.configuration is not None:
        yield Act("writes", "{config}", "before it starts, in the trial's directory")
    for name, value in parameters.environment.items():
        yield Act("changes", f"variable {name} = {value}", undo=GONE)
    yield from _options(parameters.options, undo=GONE)


def _there(parameters: ServiceParameters, at: ServiceAt) -> Iterator[Act]:
    ports = [f"{at.host}:{port}" for port in at.ports.values()] or [at.host]
    for address in ports:
        yield Act("connects", address, "as the command lines do: the service is there already")
    if at.restore != "none":
        yield Act("runs", at.restore.command, "before every trial")
    if parameters.set_by is not None and parameters.options:
        yield Act("runs", parameters.set_by, "in every trial, for each option, and again to restore it")
    yield from _options(parameters.options, undo="the value that was read back before, also after a kill")


def _options(options: dict[str, Option], *, undo: str) -> Iterator[Act]:
    for name, value in options.items():
        yield Act("changes", f"option {name} = {value_text(value)}", undo=undo)
