"""`drop_caches`: empties the page cache right before ramp-up (/proc/sys/vm/drop_caches)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from fairtrial.settings.steps.effect import Effect
from fairtrial.settings.steps.shared import trigger
from fairtrial.study.catalogue import Kind

Caches = Annotated[
    Literal["nothing", "page_cache", "slab", "all"],
    Field(description="What is dropped right before ramp-up: page cache, slab objects (dentries, inodes), or both."),
]
CODES = {"page_cache": "1", "slab": "2", "all": "3"}

KIND = Kind(
    name="drop_caches",
    summary="Caches dropped once the server is up, right before ramp-up. Clean caches are dropped before it anyway.",
    parameters=TypeAdapter(Caches),
)


def effect(value: str, _facts: Mapping[str, Any]) -> Effect:
    """One write that cannot be read back or undone."""
    if value == "nothing":
        return Effect()
    return Effect(steps=(("before_ramp_up", trigger("/proc/sys/vm/drop_caches", CODES[value], name="drop_caches")),))
