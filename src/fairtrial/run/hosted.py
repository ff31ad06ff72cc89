"""What this machine does for a guest on it, natively: it says what a system is, and prepares data.

The guest's root is this machine's. Where the guest would not find the same programs, or its disk cannot be filled from
here, the guest does it itself.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from fairtrial.errors import PlaceError
from fairtrial.places import BootedPlace, is_fresh, place_of
from fairtrial.run import prepared
from fairtrial.run.kinds import Parts
from fairtrial.study.builds import Builds
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import Identity
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import OnProgress


def identity(place: OpenPlace, trial: ResolvedTrial, parts: Parts) -> Identity:
    """What exactly a trial's system is, and its loader, by this machine where the guest has the same files.

    Raises:
        PlaceError: it is missing, with where it was looked for.
    """
    if place.root is not place and _starts_from_data(parts):
        host_identity = prepared.identity_of(place.root, parts)
        if _is_shared(trial, host_identity):
            return host_identity
    return prepared.identity_of(place, parts)


def require_same(place: OpenPlace, trial: ResolvedTrial, identity: Identity, *, builds: Builds | None) -> None:
    """Refuses a program that was replaced since it was looked at, where the place stays: an upgrade, a new build.

    Builds put another one in place for every trial, and read it back.

    Raises:
        PlaceError: it was replaced.
    """
    program = identity.facts.get("binary")
    if program is None or is_fresh(trial.place):
        return
    if builds is not None and place.execute(["test", program, "-ef", builds.program]).code == 0:
        return
    if place.execute(["sha256sum", program]).output.split()[:1] != [identity.sha256]:
        raise PlaceError(
            f"{program} was replaced during the run",
            hint="install what the run began with and resume, or start a new run",
        )


def ensure(place: OpenPlace, trial: ResolvedTrial, *, key: str, parts: Parts, on_progress: OnProgress) -> None:
    """Finds the data that trials of a key start from, or makes them: for a guest, if possible, on this machine.

    Raises:
        PlaceError: they cannot be made.
    """
    if not _held(place, trial, key=key, parts=parts, on_progress=on_progress):
        prepared.ensure(place, key, parts, on_progress=on_progress)


def _held(place: OpenPlace, trial: ResolvedTrial, *, key: str, parts: Parts, on_progress: OnProgress) -> bool:
    """Whether there is a disk that guests start from, found or made."""
    host = place.root
    if host is place or not _servers_may_enter(host):
        return False
    if not _is_shared(trial, parts.system.identity(host)):
        return False
    guest = guest_of(trial.place)
    if guest.has_disk(host, key=key):
        return True
    prepared.ensure(host, key, parts, on_progress=on_progress)
    return guest.make_disk(host, key=key)


def _servers_may_enter(host: OpenPlace) -> bool:
    """Whether servers, which are not root, reach the state directory: a guest's own always lets them."""
    if host.server_user is None:
        return True
    host.require(["mkdir", "-p", "--", str(host.state_directory)], hint="is there room on the disk?")
    return host.execute(["test", "-x", str(host.state_directory)], user=host.server_user).code == 0


def _starts_from_data(parts: Parts) -> bool:
    """What brings no data may say something else in a guest: a command's version is what a command prints there."""
    return parts.workload.data() is not None or parts.system.has_data_directory()


def _is_shared(trial: ResolvedTrial, identity: Identity) -> bool:
    """Whether a system's program is the guest's, too; what has none of its own is the agent."""
    program = identity.facts.get("binary")
    return program is None or guest_of(trial.place).shares(PurePosixPath(program))


def guest_of(section: Section) -> BootedPlace[Any]:
    """The place of a section that is known to boot."""
    place = place_of(section)
    assert isinstance(place, BootedPlace)  # noqa: S101 - no other place has a carrier
    return place
