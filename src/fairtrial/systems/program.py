"""What `command` and `service` have in common: a program of anybody's, identified by what a study says of it."""

from __future__ import annotations

import shlex

from fairtrial.errors import PlaceError
from fairtrial.systems.instance import Identity
from fairtrial.wire.open_place import OpenPlace


def identity(place: OpenPlace, *, run: str, version: str | None, field: str, user: str | None = None) -> Identity:
    """Path and hash of the program that a command line begins with, and what another prints as its version.

    Args:
        place: where it is.
        run: the command line.
        version: that prints the version; None: nobody asks.
        field: of the study that has both.
        user: asks for the version; None: the agent's own.

    Raises:
        PlaceError: the program is not on the place's PATH, or the version command fails.
    """
    program = shlex.split(run)[0]
    found = place.execute(["sh", "-c", 'command -v -- "$1"', "sh", program])
    if found.code != 0:
        hint = f"install {program} at the place, or give its full path"
        raise PlaceError(f"no {program} at this place", hint=hint, field=f"{field}.run")
    path = found.output.strip()
    digest = place.require(["sha256sum", path], hint="the program must be readable").split()[0]
    facts = {"binary": path}
    if place.agent.container is not None:  # a shell or an interpreter is the same in many images
        facts["image"] = place.agent.container.image_id
    hint = f"fix {field}.version"
    said = "" if version is None else place.require(shlex.split(version), hint=hint, user=user).strip()
    return Identity(version=said, sha256=digest, facts=facts)
