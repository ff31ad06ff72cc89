"""Places: how a stream to an agent is got. One file per kind.

Owns ways of reaching a place. It must not know what is done there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Protocol

from fairtrial.places import local, ssh, vm
from fairtrial.places.vm.guest import Guest
from fairtrial.places.vm.machine import PASSING, Disk
from fairtrial.study.catalogue import Kind
from fairtrial.wire import Agent, Limits, Transport
from fairtrial.wire.open_place import OpenPlace


class Place(Protocol):
    """One kind of place."""

    KIND: Kind

    def connect(self, parameters: Any, limits: Limits) -> Transport:
        """Gets a stream to an agent, which keeps the same limits; `parameters` are those of KIND, validated.

        Raises:
            PlaceError: it cannot be reached.
        """


class BootedPlace(Protocol):
    """One kind of place that begins with every stream to it and ends with that stream."""

    KIND: Kind

    def boot(self, parameters: Any, *, holder: str, lock: bool, disk: Disk) -> Guest:
        """Boots it and gets a stream to its agent.

        Args:
            parameters: those of KIND, validated.
            holder: who asks, in words that a refused second user can act upon.
            lock: take the place's lock.
            disk: which disk it gets, and whether what is written there stays for later ones.

        Raises:
            PlaceError: it does not come up.
        """

    def shares(self, path: PurePosixPath) -> bool:
        """Whether a file of this machine is the same file there."""

    def has_disk(self, parameters: Any, host: OpenPlace, *, key: str) -> bool:
        """Whether there is a disk with the prepared data of a key."""

    def make_disk(self, parameters: Any, host: OpenPlace, *, key: str) -> bool:
        """Makes a disk with data of a key that were prepared on this machine; false where that is not possible.

        Raises:
            PlaceError: it failed.
        """


REACHED: Mapping[str, Place] = {place.KIND.name: place for place in (local, ssh)}
BOOTED: Mapping[str, BootedPlace] = {place.KIND.name: place for place in (vm,)}
KINDS: Mapping[str, Kind] = {
    **{name: place.KIND for name, place in REACHED.items()},
    **{name: place.KIND for name, place in BOOTED.items()},
}


def open_place(
    kind: str, parameters: Mapping[str, Any] | None, *, holder: str, lock: bool = True, disk: Disk = PASSING
) -> Agent:
    """Reaches a place and greets its agent, with the limits of this process (`FAIRTRIAL_LIMITS`).

    Args:
        kind: a key of KINDS.
        parameters: as the study says, unvalidated or validated.
        holder: who asks, in words that a refused second user can act upon.
        lock: take the place's lock; without it nothing can be changed there.
        disk: of a place that boots: which disk it gets, and whether what is written there stays for later streams.

    Raises:
        InputError: the limits are none.
        PlaceError: it cannot be reached.
        AgentError: code `busy` if another session holds it, `version` if its agent speaks another version.
    """
    validated = KINDS[kind].parameters.validate_python(parameters or {})
    if kind in BOOTED:
        guest = BOOTED[kind].boot(validated, holder=holder, lock=lock, disk=disk)
        agent = Agent(guest, holder=holder, lock=lock, limits=guest.limits, carried=guest.facts())
        agent.carrier = guest.host
        return agent
    limits = Limits.from_environment()
    return Agent(REACHED[kind].connect(validated, limits), holder=holder, lock=lock, limits=limits)
