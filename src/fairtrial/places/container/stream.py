"""The stream to a container's agent: the container is gone when it is closed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from fairtrial.errors import PlaceError
from fairtrial.places.container.runtime import Runtime
from fairtrial.wire import Agent, Limits, PipeTransport


class ContainerStream(PipeTransport):
    """`run` with its standard streams, and this machine's agent, which holds its lock until the container is gone.

    Args:
        argv: makes a container of this `name`.
        runtime: removes it.
        host: the agent of this machine.
        limits: which the container's agent keeps.
    """

    def __init__(self, argv: Sequence[str], *, name: str, runtime: Runtime, host: Agent, limits: Limits) -> None:
        self._name, self._runtime, self._host = name, runtime, host
        super().__init__(argv, limits=limits)

    def close(self) -> None:
        """Ends the stream, and the container with whatever still runs in it."""
        super().close()
        with contextlib.suppress(PlaceError):  # the next run removes what this one could not
            self._runtime.remove(name=self._name)
        self._host.close()
