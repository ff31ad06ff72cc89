"""What `command` and `service` have in common: a program of anybody's, identified by what a study says of it."""

from __future__ import annotations

import shlex
from typing import Final, Unpack

from fairtrial.errors import PlaceError
from fairtrial.study.tree.quantities import bare_program
from fairtrial.systems.instance import Identity
from fairtrial.wire.open_place import OpenPlace, ProgramOptions

SEARCH: Final = "PATH"
# A search path of the study's own need not have a shell.
FOUND: Final = 'PATH="${2-$PATH}"; command -v -- "$1"'
ASKED: Final = ("sh", "-c", 'PATH="$1:$PATH"; shift; exec "$@"', "sh")


def identity(
    place: OpenPlace, *, run: str, version: str | None, field: str, **options: Unpack[ProgramOptions]
) -> Identity:
    """Path and hash of the program that a command line begins with, and what another prints as its version.

    Args:
        place: where it is.
        run: the command line.
        version: that prints the version; None: nobody asks.
        field: of the study that has both.
        options: how the version is asked for; of its environment the search path alone counts, for a program of a bare
            name, and the version's is looked for there first.

    Raises:
        PlaceError: the program is not on the place's PATH, or the version command fails.
    """
    program = shlex.split(run)[0]
    environment = options.pop("environment", None) or {}
    search = [environment[SEARCH]] if SEARCH in environment and bare_program(run) else []
    found = place.execute(["sh", "-c", FOUND, "sh", program, *search])
    if found.code != 0:
        hint = f"install {program} at the place, or give its full path"
        raise PlaceError(f"no {program} at this place", hint=hint, field=f"{field}.run")
    path = found.output.strip()
    digest = place.require(["sha256sum", path], hint="the program must be readable").split()[0]
    facts = {"binary": path}
    if place.agent.container is not None:  # a shell or an interpreter is the same in many images
        facts["image"] = place.agent.container.image_id
    hint = f"fix {field}.version"
    asked = [*ASKED, *search] if search else []
    said = "" if version is None else place.require([*asked, *shlex.split(version)], hint=hint, **options).strip()
    return Identity(version=said, sha256=digest, facts=facts)
