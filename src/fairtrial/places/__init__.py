"""Places: how a stream to an agent is got. One file per kind.

Owns ways of reaching a place. It must not know what is done there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from fairtrial.places import local, ssh
from fairtrial.study.catalogue import Kind
from fairtrial.wire import Agent, Transport


class Place(Protocol):
    """One kind of place."""

    KIND: Kind

    def connect(self, parameters: Any) -> Transport:
        """Gets a stream to an agent; `parameters` are those of KIND, validated.

        Raises:
            PlaceError: it cannot be reached.
        """


PLACES: Mapping[str, Place] = {place.KIND.name: place for place in (local, ssh)}


def open_place(kind: str, parameters: Mapping[str, Any] | None, *, holder: str, lock: bool = True) -> Agent:
    """Reaches a place and greets its agent.

    Args:
        kind: a key of PLACES.
        parameters: as the study says, unvalidated or validated.
        holder: who asks, in words that a refused second user can act upon.
        lock: take the place's lock; without it nothing can be changed there.

    Raises:
        PlaceError: it cannot be reached.
        AgentError: code `busy` if another session holds it, `version` if its agent speaks another version.
    """
    place = PLACES[kind]
    validated = place.KIND.parameters.validate_python(parameters or {})
    return Agent(place.connect(validated), holder=holder, lock=lock)
