"""This machine: an agent as a child of the control plane."""

from __future__ import annotations

import os

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fairtrial.study.catalogue import Kind
from fairtrial.wire import Limits, PipeTransport, find_agent

STATE_VARIABLE = "FAIRTRIAL_STATE_DIRECTORY"


class LocalParameters(BaseModel):
    """This machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state_directory: str | None = Field(
        None,
        pattern="^/",
        description="Where prepared data, work directories and the lock are kept: /var/lib/fairtrial for root, "
        "~/.local/state/fairtrial for others, unless it is given.",
    )


KIND = Kind(name="local", summary="This machine.", parameters=TypeAdapter(LocalParameters))


def connect(parameters: LocalParameters, limits: Limits, *, path: str = "") -> PipeTransport:
    """Starts an agent.

    Args:
        parameters: of the place.
        limits: of the stream and of the agent.
        path: where its processes look for programs before they look where this process does.

    Raises:
        PlaceError: its binary is not found.
    """
    environment = {STATE_VARIABLE: parameters.state_directory} if parameters.state_directory else {}
    if path:
        environment["PATH"] = f"{path}:{os.environ.get('PATH', '')}"
    return PipeTransport([str(find_agent()), "serve"], environment=environment, limits=limits)
