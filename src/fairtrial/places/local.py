"""This machine: an agent as a child of the control plane."""

from __future__ import annotations

import os

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.places.place import ReachedPlace
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


class Local(ReachedPlace[LocalParameters]):
    """This machine, as this process's user."""

    name = "local"
    summary = "This machine."
    model = LocalParameters

    @property
    def word(self) -> str:
        """As the command line names it, wherever its state is."""
        return self.name

    def connect(self, limits: Limits, *, path: str = "") -> PipeTransport:
        """Starts an agent.

        Args:
            limits: of the stream and of the agent.
            path: where its processes look for programs before they look where this process does.

        Raises:
            PlaceError: its binary is not found.
        """
        state = self.parameters.state_directory
        environment = {STATE_VARIABLE: state} if state else {}
        if path:
            environment["PATH"] = f"{path}:{os.environ.get('PATH', '')}"
        return PipeTransport([str(find_agent()), "serve"], environment=environment, limits=limits)
