"""What a setting does to a trial: steps at a phase, and how processes are started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairtrial.wire.generated import Step

Phase = Literal["place", "before_server", "after_server", "before_ramp_up"]


@dataclass(frozen=True)
class Effect:
    """What a setting does.

    Attributes:
        steps: changes of the place, each with the phase in which it is applied, in order.
        environment: variables of the process that runs the system (the load engine, where the system is embedded).
        server_processors: processors the server may use; None: all it would otherwise get.
        client_processors: processors the load may use; None likewise.
    """

    steps: tuple[tuple[Phase, Step], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    server_processors: tuple[int, ...] | None = None
    client_processors: tuple[int, ...] | None = None


def merged(effects: Iterable[Effect]) -> Effect:
    """Several effects as one; a later one wins where both say something about a process."""
    steps: list[tuple[Phase, Step]] = []
    environment: dict[str, str] = {}
    server: tuple[int, ...] | None = None
    client: tuple[int, ...] | None = None
    for effect in effects:
        steps += effect.steps
        environment |= effect.environment
        server = effect.server_processors if effect.server_processors is not None else server
        client = effect.client_processors if effect.client_processors is not None else client
    return Effect(steps=tuple(steps), environment=environment, server_processors=server, client_processors=client)
