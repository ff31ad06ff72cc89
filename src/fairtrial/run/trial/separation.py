"""Processors of their own for client and server, where the place has enough."""

from __future__ import annotations

from dataclasses import replace

from fairtrial.settings import Effect
from fairtrial.wire.facts import Facts

ENOUGH_PROCESSORS = 4  # with fewer, a set of its own for the client would starve one side
CLIENT_ONE_IN = 4  # the client gets one processor in four: it costs less than a server on every workload here


def separated(effect: Effect, facts: Facts, *, served: bool) -> Effect:
    """The effect with processor sets added; unchanged where the study chose or no server runs beside the load."""
    processors = sorted(facts.processors)
    chosen = effect.server_processors is not None or effect.client_processors is not None
    if chosen or not served or len(processors) < ENOUGH_PROCESSORS:
        return effect
    client = len(processors) // CLIENT_ONE_IN
    return replace(effect, server_processors=tuple(processors[:-client]), client_processors=tuple(processors[-client:]))
