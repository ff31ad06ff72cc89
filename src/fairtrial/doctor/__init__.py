"""Whether a place is fit to measure on, and which studies can run there.

Owns what is looked at, from where on it matters, and what would mend it. It must not change a place, and knows no run.
"""

from __future__ import annotations

from fairtrial.doctor import kernel, limits, load, memory, processors, programs, storage
from fairtrial.doctor.looking import PlaceObservation, look
from fairtrial.record.models import Finding
from fairtrial.wire.open_place import OpenPlace

__all__ = ["PlaceObservation", "examine", "judged", "look"]

GROUPS = (processors, load, memory, storage, kernel, limits, programs)  # in the order of the table


def examine(place: OpenPlace) -> list[Finding]:
    """What a run stores of a place before it measures there: everything but the versions of programs.

    Raises:
        StreamLostError: the stream to the place ended.
    """
    return judged(look(place))


def judged(observation: PlaceObservation) -> list[Finding]:
    """Every finding, in the order of the table."""
    return [finding for group in GROUPS for finding in group.findings(observation)]
