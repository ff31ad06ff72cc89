"""The machine that carries a place which boots on it: what disturbs it disturbs the guest, and is not seen in there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial import doctor
from fairtrial.errors import PlaceError
from fairtrial.places import PASSING, FreshPlace, place_of
from fairtrial.record import Record
from fairtrial.record.models import Finding
from fairtrial.run.opening import holder
from fairtrial.study.resolved import Section
from fairtrial.wire.facts import ContainerFacts
from fairtrial.wire.open_place import OpenPlace


def examine(place: FreshPlace[Any], *, directory: Path) -> list[Finding]:
    """Findings of this machine, marked as the host's; before the guest boots, whose own work would look like load.

    Args:
        place: that is to boot.
        directory: the run's.

    Raises:
        PlaceError: this machine's agent cannot be started.
    """
    # The lock is the guest's own to take.
    with place.carrier().open(holder=holder(directory), lock=False, disk=PASSING) as agent:
        return [finding.model_copy(update={"of_host": True}) for finding in doctor.examine(OpenPlace(agent=agent))]


def require_same_image(opened: OpenPlace, record: Record) -> None:
    """Refuses a container from another image than this run's trials so far had under its name.

    Raises:
        PlaceError: the name has moved, with both images.
    """
    container = opened.agent.container
    if container is None:
        return
    for facts in (earlier.facts["container"] for earlier in record.places if "container" in earlier.facts):
        known = ContainerFacts.model_validate(facts)
        if (known.image, known.runtime) == (
            container.image,
            container.runtime,
        ) and known.image_id != container.image_id:
            raise PlaceError(
                f"{container.image} is now {container.image_id[:12]}; this run began with {known.image_id[:12]}",
                hint="tag the image that the run began with again and resume, or start a new run",
            )


def fresh(section: Section) -> FreshPlace[Any]:
    """The place of a section that is known to begin with every stream to it."""
    place = place_of(section)
    assert isinstance(place, FreshPlace)  # noqa: S101 - no other place has a carrier
    return place
