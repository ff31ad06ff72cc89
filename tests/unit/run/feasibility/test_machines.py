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


def found(place: dict[str, Any], *, server_user: str | None = None, **facts: Any) -> PlaceOpened:
    facts = {"machine": "x86_64", "processor_model": "X", "processors": [0, 1], "kernel_command_line": "ro", **facts}
    clock = Clock(monotonic_ns=0, realtime_ns=0)
    return PlaceOpened.model_validate(
        {"place": place, "facts": facts, "agent_sha256": "0", "clock": clock, "server_user": server_user}
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


@pytest.mark.parametrize("place", [LOCAL, CONTAINER, BOOTS, GUEST])
@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"memory_bytes": 64 << 30}, {"memory_bytes": 32 << 30}),
        ({"file_system": "xfs"}, {"file_system": "ext4"}),
        ({"user_id": 0}, {"user_id": 1000}),
        ({"server_user": "nobody"}, {"server_user": None}),
    ],
)
def test_no_place_may_become_one_with_other_memory_files_or_users(
    place: dict[str, Any], was: dict[str, Any], now: dict[str, Any]
) -> None:
    if place is GUEST and "file_system" in was:  # its section decides that
        machines.require_same(found(place, **now), found(place, **was))
        return
    (name,) = was
    with pytest.raises(PlaceError, match=f"{name} was {was[name]}, is {now[name]}$"):
        machines.require_same(found(place, **now), found(place, **was))


def test_kernels_that_keep_differently_much_memory_are_not_different_machines() -> None:
    machines.require_same(found(BOOTS, memory_bytes=1_005_000), found(BOOTS, memory_bytes=1_000_000))


def test_what_an_older_record_does_not_say_is_not_compared() -> None:
    machines.require_same(found(LOCAL, memory_bytes=1, file_system="xfs", user_id=0), found(LOCAL))
