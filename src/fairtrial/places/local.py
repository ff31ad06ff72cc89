"""This machine: an agent as a child of the control plane."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.places.place import ReachedPlace
from fairtrial.programs import Act
from fairtrial.wire import Limits, PipeTransport, find_agent

STATE_VARIABLE = "FAIRTRIAL_STATE_DIRECTORY"
# The beginning of a command line by which an agent that is not root has root write settings.
HELPER_VARIABLE = "FAIRTRIAL_HELPER"
STATE_DIRECTORIES = "/var/lib/fairtrial (root), or fairtrial below $XDG_STATE_HOME or ~/.local/state (others)"
YOU = "the user who runs fairtrial"


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

    @property
    def agent_user(self) -> str:
        """The one who runs fairtrial."""
        return YOU

    def acts(self) -> Iterator[Act]:
        """The agent, and where it keeps what it makes."""
        yield Act("runs", "fairtrial-agent serve", "as long as the run")
        asked = self.parameters.state_directory or os.environ.get(STATE_VARIABLE)
        yield Act("writes", asked or STATE_DIRECTORIES, "data, work directories, undo journal")

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
        return PipeTransport([str(find_agent()), "serve"], environment=environment, limits=limits, is_agent=True)
