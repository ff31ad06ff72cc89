"""The machine that carries a place which boots on it: what disturbs it disturbs the guest, and is not seen in there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial import doctor
from fairtrial.places import open_place
from fairtrial.record.models import Finding
from fairtrial.run.opening import holder
from fairtrial.wire.open_place import OpenPlace


def examine(place: Mapping[str, Any], *, directory: Path) -> list[Finding]:
    """Findings of this machine, marked as the host's; before the guest boots, whose own work would look like load.

    Args:
        place: one that boots, with its parameters.
        directory: the run's.

    Raises:
        PlaceError: this machine's agent cannot be started.
    """
    parameters = next(iter(place.values())) or {}
    here = {"state_directory": parameters.get("state_directory")}
    with open_place("local", here, holder=holder(directory), lock=False) as agent:  # the guest's own takes the lock
        host = OpenPlace(agent=agent, facts={})
        host.facts = host.native("facts", {})
        return [finding.model_copy(update={"of_host": True}) for finding in doctor.examine(host)]
