"""The noise of a place: profiles of A/A runs, kept there, and read when a run opens it.

A profile is a statement about a machine, so it stays at the machine, one per study and size of it, the newest in place
of older ones. It must not know what a profile says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from pydantic import JsonValue

from fairtrial.errors import AgentError
from fairtrial.places import is_fresh, open_place
from fairtrial.run.trial import workspace
from fairtrial.study.resolved import Section
from fairtrial.wire.open_place import OpenPlace

FACT: Final = "noise"
KEPT_AT_MOST: Final = 20  # profiles of a place that a record holds: each is some kilobytes for every cell


def keep(place: OpenPlace, profile: Mapping[str, JsonValue], *, study: str, size: str | None) -> None:
    """Keeps a profile at its place, in place of an older one of the same study in the same size.

    Raises:
        PlaceError: it cannot be written.
    """
    directory = _directory(place)
    workspace.make(place, directory)
    place.agent.put(str(directory / _name(study, size)), json.dumps(profile).encode(), mode=0o644)


def facts(place: OpenPlace) -> dict[str, JsonValue]:
    """The newest profiles as facts of the place; none where no A/A has run."""
    directory = _directory(place)
    listing = place.execute(["ls", "-t", "--", str(directory)])
    if listing.code != 0:
        return {}
    names = [name for name in listing.output.splitlines() if name.endswith(".json")][:KEPT_AT_MOST]
    profiles: list[JsonValue] = [profile for name in names if (profile := _read(place, directory / name)) is not None]
    return {FACT: profiles} if profiles else {}


def kept(place: Section, *, study: str, size: str | None) -> dict[str, JsonValue] | None:
    """The profile of a study in one size, at a place that no run holds open. Changes nothing there.

    None if there is none, or the place would have to boot.

    Raises:
        PlaceError: the place cannot be reached.
    """
    if is_fresh(place):  # booting takes the machine's lock and its disk, which planning must not
        return None
    with open_place(place.kind, place.parameters, holder="planning", lock=False) as agent:
        opened_place = OpenPlace(agent=agent)
        return _read(opened_place, _directory(opened_place) / _name(study, size))


def _read(place: OpenPlace, path: PurePosixPath) -> dict[str, JsonValue] | None:
    """A profile; None for a file that was cut or written by hand: it is no part of a run's own figures."""
    try:
        profile = json.loads(place.agent.get(str(path)))
    except (AgentError, ValueError):
        return None
    return profile if isinstance(profile, dict) else None


def _name(study: str, size: str | None) -> str:
    """Of a profile's file; neither a study's name nor a size's has a plus in it."""
    return f"{study}+{size}.json" if size else f"{study}.json"


def _directory(place: OpenPlace) -> PurePosixPath:
    return place.state_directory / "noise"
