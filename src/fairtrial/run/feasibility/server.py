"""A server created and started once, privately, to see that it runs at a place."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.run.trial import workspace
from fairtrial.systems import Identity, Launch, System
from fairtrial.wire.open_place import OpenPlace


@dataclass(frozen=True)
class ServerStart:
    """A server that ran.

    Attributes:
        identity: what it is.
        options: effective ones, by name.
        created_s: how long its empty data directory took.
        started_s: from its start to its first answer.
    """

    identity: Identity
    options: Mapping[str, str]
    created_s: float
    started_s: float


def check(place: OpenPlace, system: System[Any]) -> ServerStart:
    """Creates, starts, asks and stops a server; leaves nothing behind.

    Args:
        place: where; its lock is held.
        system: the server, with its parameters.

    Raises:
        PlaceError: it cannot be had, or does not run there, in its own words.
    """
    identity = system.identity(place)
    work = workspace.work_directory(place, "check", system.name, identity.sha256)
    launch = Launch(data_directory=work / "data", work_directory=work / "server", log_path=work / "server.log")
    workspace.remove(place, work)
    for directory in (launch.data_directory, launch.work_directory):
        workspace.make_private(place, directory, user=place.server_user)
    try:
        begun = time.monotonic()
        system.create(place, launch)
        created = time.monotonic()
        instance = system.start(place, launch)
        started = time.monotonic()
        system.stop(place, instance, settled=False)
    finally:
        workspace.remove(place, work)
    return ServerStart(identity, instance.options, created_s=created - begun, started_s=started - created)
