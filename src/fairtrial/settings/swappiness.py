"""`swappiness`: what swapping costs against reading files again, as the kernel is told (/proc/sys/vm/swappiness)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fairtrial.protocol.generated import Step
from fairtrial.settings.steps.effect import Effect, Limit, Side, before_server
from fairtrial.settings.steps.groups import has_group_of_its_own
from fairtrial.settings.steps.shared import write_file, write_group
from fairtrial.study.catalogue import Kind

CONTROLLER, GROUP_FILE = "memory", "memory.swappiness"
FILE = "/proc/sys/vm/swappiness"
LARGEST = 200  # since Linux 5.8; older kernels take 100 and refuse more
Swappiness = Annotated[
    int,
    Field(ge=0, le=LARGEST, description="0: files first; 100: both cost the same; 200: anonymous memory first."),
]

KIND = Kind(
    name="swappiness",
    summary="How willingly the kernel swaps, set before the server starts.",
    parameters=TypeAdapter(Swappiness),
)


def effect(value: int, facts: Mapping[str, Any]) -> Effect:
    """One write; in version 1 of control groups, which have values of their own, also to a group of each side here."""
    written = before_server([write_file(FILE, str(value), name="swappiness", normalise="integer")])
    found = facts.get("controllers", {}).get(CONTROLLER)
    if found is None or found["version"] != 1:
        return written
    sides: tuple[Side, ...] = ("server", "client") if has_group_of_its_own(facts) else ("server",)
    return replace(written, limits=tuple(Limit(side, CONTROLLER, _of_group(side, value)) for side in sides))


def _of_group(side: str, value: int) -> Callable[[str, str], Step]:
    name = f"swappiness.{side}"
    return lambda group, _data: write_group(f"{group}/{GROUP_FILE}", str(value), name=name, expect=str(value))
