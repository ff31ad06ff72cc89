"""Places: one class per kind (see `place.Place`), and others' by entry points of the group `fairtrial.places`.

Owns ways of reaching a place. It must not know what is done there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter

from fairtrial.places.container import Container
from fairtrial.places.local import Local
from fairtrial.places.place import KEPT, PASSING, BootedPlace, Disk, FreshPlace, Place, ReachedPlace
from fairtrial.places.ssh import Ssh
from fairtrial.places.through import Through
from fairtrial.places.vm import Vm
from fairtrial.plugins import Kinds, chosen
from fairtrial.study.catalogue import Kind
from fairtrial.study.resolved import Section
from fairtrial.wire import Agent

__all__ = [
    "KEPT",
    "PASSING",
    "PLACES",
    "BootedPlace",
    "Disk",
    "FreshPlace",
    "Place",
    "ReachedPlace",
    "boots_anew",
    "is_booted",
    "is_fresh",
    "kind_of",
    "open_place",
    "place_of",
]

_OWN = (Container, Local, Ssh, Through, Vm)
PLACES: Mapping[str, type[Place[Any]]] = Kinds(_OWN, base=Place, group="fairtrial.places")


@cache
def place_of(section: Section) -> Place[Any]:
    """The place of a resolved trial's section, validated once.

    Raises:
        RecordError: this version has no such kind, or different parameters of it.
    """
    return chosen(PLACES, section, what="place")


def is_fresh(section: Section) -> bool:
    """Whether the place of a section begins and ends with every stream to it; asks nothing of its parameters."""
    return issubclass(PLACES.get(section.kind, Place), FreshPlace)


def is_booted(section: Section) -> bool:
    """Whether it has a kernel of its own, too."""
    return issubclass(PLACES.get(section.kind, Place), BootedPlace)


def boots_anew(section: Section) -> bool:
    """Whether every stream to the place of a section, other than one that only looks, begins with its boot."""
    return place_of(section).boots_anew


def kind_of(place: type[Place[Any]]) -> Kind:
    """A place as the study language sees it."""
    return Kind(
        name=place.name,
        summary=place.summary,
        parameters=TypeAdapter(place.model),
        duration_s=lambda parameters: place(place.model.model_validate(parameters)).duration_s(),
        example=dict(place.example),
    )


def open_place(kind: str, parameters: JsonValue, *, holder: str, lock: bool = True, disk: Disk = PASSING) -> Agent:
    """Reaches a place and greets its agent, with the limits of this process (`FAIRTRIAL_LIMITS`).

    Args:
        kind: a key of PLACES.
        parameters: as the study says, unvalidated or validated.
        holder: who asks, in words that a refused second user can act upon.
        lock: take the place's lock; without it nothing can be changed there.
        disk: of a place that boots: which disk it gets, and whether what is written there stays for later streams.

    Raises:
        InputError: the limits are none.
        RecordError: there is no such kind, or it has other parameters.
        PlaceError: it cannot be reached.
        AgentError: code `busy` if another session holds it, `version` if its agent speaks another version.
    """
    return place_of(Section({kind: parameters or {}})).open(holder=holder, lock=lock, disk=disk)
