"""Whether a place is still the machine that its run began on."""

from __future__ import annotations

from typing import Any

import pytest

from fairtrial.errors import PlaceError
from fairtrial.record.models import Clock, PlaceOpened
from fairtrial.run.feasibility import machines

LOCAL = {"local": {}}
BOOTS = {"ssh": {"host": "db1", "boot": {"kernel": "debian-6.12", "by": "kexec"}}}
GUEST = {"vm": {"kernel": "debian-6.1"}}
CONTAINER = {"container": {"image": "bench"}}


def found(place: dict[str, Any], **facts: Any) -> PlaceOpened:
    facts = {"machine": "x86_64", "processor_model": "X", "processors": [0, 1], "kernel_command_line": "ro", **facts}
    clock = Clock(monotonic_ns=0, realtime_ns=0)
    return PlaceOpened.model_validate(
        {"place": place, "facts": facts, "agent_sha256": "0", "clock": clock, "server_user": None}
    )


@pytest.mark.parametrize("place", [LOCAL, CONTAINER, BOOTS, GUEST])
@pytest.mark.parametrize("changed", [{"processors": [0]}, {"kernel_command_line": "quiet"}])
def test_a_place_that_boots_for_its_trials_is_booted_as_its_section_says(
    place: dict[str, Any], changed: dict[str, Any]
) -> None:
    machines.require_same(found(place, **changed), None)
    if place in (BOOTS, GUEST):
        machines.require_same(found(place, **changed), found(place))
        return
    with pytest.raises(PlaceError, match=f"is not the machine .*: {next(iter(changed))} was "):
        machines.require_same(found(place, **changed), found(place))


@pytest.mark.parametrize("place", [LOCAL, CONTAINER, BOOTS, GUEST])
def test_no_place_may_become_another_machine(place: dict[str, Any]) -> None:
    machines.require_same(found(place, free_bytes=1, host="renamed"), found(place, free_bytes=2))
    with pytest.raises(PlaceError, match=r"processor_model was X, is Y$"):
        machines.require_same(found(place, processor_model="Y"), found(place))
