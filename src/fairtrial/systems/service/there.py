"""A service that is there already: reached, restored and set by the study's commands, and set back whatever ends."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Callable, Mapping
from typing import Final

from fairtrial.errors import AgentError, SystemStartError
from fairtrial.protocol.generated import ExecuteAction, ExecuteInverse, Step
from fairtrial.systems import server
from fairtrial.systems.existing.parameters import RestoreCommand
from fairtrial.systems.service import rendering
from fairtrial.systems.service.parameters import OPTION, VALUE, ServiceAt, ServiceParameters
from fairtrial.systems.system import Identity
from fairtrial.wire.open_place import OpenPlace

RESTORE_S: Final = 24 * 3600.0


def address(at: ServiceAt) -> str:
    """Where it is, in words."""
    return ", ".join(f"{at.host}:{port}" for port in at.ports.values()) or at.host


def handed_in(at: ServiceAt, *, work: str) -> dict[str, str]:
    """What its command lines may name."""
    return {"host": at.host, "work": work, **{name: str(port) for name, port in at.ports.items()}}


def identity(place: OpenPlace, parameters: ServiceParameters, at: ServiceAt) -> Identity:
    """What it says of itself: its program may be out of reach.

    Raises:
        PlaceError: the version command fails.
    """
    version = ""
    if parameters.version is not None:
        words = rendering.argv(parameters.version, handed_in(at, work=""))
        version = place.require(words, hint="fix system.service.version").strip()
    digest = hashlib.sha256(f"{address(at)} {version}".encode()).hexdigest()
    return Identity(version=version, sha256=digest, facts={"server": address(at)})


def await_ready(at: ServiceAt, ready: Callable[[float], bool], *, limit_s: float) -> None:
    """Waits until it answers.

    Raises:
        SystemStartError: it does not in time.
    """
    deadline = time.monotonic() + limit_s
    while not ready(max(deadline - time.monotonic(), server.SHORTEST_LOOK_S)):
        if time.monotonic() > deadline:
            raise SystemStartError(
                f"the service at {address(at)} did not answer within {limit_s:g} s",
                hint="is it there? fix system.service.ready, or system.service.at",
            )
        time.sleep(server.POLL_S)


def restore(place: OpenPlace, at: ServiceAt, named: Mapping[str, str]) -> None:
    """Runs the study's own command, if there is one.

    Raises:
        PlaceError: it fails.
    """
    if isinstance(at.restore, RestoreCommand):
        words = rendering.argv(at.restore.command, named)
        place.require(words, hint="fix system.service.at.restore", timeout_s=RESTORE_S)


def set_options(
    place: OpenPlace, parameters: ServiceParameters, *, named: Mapping[str, str], originals: Mapping[str, str]
) -> None:
    """Sets every option; the way back to what it was is in the agent's journal before.

    Args:
        place: where the commands run.
        parameters: the options, and the command that sets one.
        named: what the command may name.
        originals: the value of each option before.

    Raises:
        SystemStartError: one cannot be set.
    """
    command = parameters.set_by or ""
    for name, value in parameters.options.items():
        own = {**named, OPTION: name}
        argv = rendering.argv(command, {**own, VALUE: rendering.value_text(value)})
        step = Step(
            name=f"option {name}",
            action=ExecuteAction(argv=argv),
            inverse=ExecuteInverse(argv=rendering.argv(command, {**own, VALUE: originals[name]}), lasting=True),
        )
        try:
            place.agent.change(step)
        except AgentError as error:
            raise SystemStartError(
                f"option {name} cannot be set: {error}", hint=f"try `{shlex.join(argv)}` by hand"
            ) from error
