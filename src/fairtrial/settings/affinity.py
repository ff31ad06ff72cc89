"""`affinity`: which processors server and client may use (sched_setaffinity(2))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fairtrial.errors import PlaceError
from fairtrial.settings.steps.effect import Effect
from fairtrial.study.catalogue import Kind

ProcessorList = Annotated[
    str,
    Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$", description="Processors as the kernel writes them: `0-3,8`."),
]


class Affinity(BaseModel):
    """Processors of the two sides; a side left out may use all that the place has."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    server: ProcessorList | None = Field(None, description="Processors of the system under test.")
    client: ProcessorList | None = Field(None, description="Processors of the load.")


KIND = Kind(
    name="affinity",
    summary="Processors that the system and the load may use.",
    parameters=TypeAdapter(Affinity),
)


def processors(text: str) -> tuple[int, ...]:
    """`0-2,5` as (0, 1, 2, 5)."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def effect(value: Mapping[str, str | None], facts: Mapping[str, Any]) -> Effect:
    """Processor sets for both sides.

    Args:
        value: the setting's.
        facts: of the place; `client_processors` too, where the load runs at another one, None as long as it is closed.

    Raises:
        PlaceError: a processor that the place does not have.
    """
    sets: dict[str, tuple[int, ...] | None] = {}
    online = {"server": facts["processors"], "client": facts.get("client_processors", facts["processors"])}
    for side in ("server", "client"):
        text = value.get(side)
        sets[side] = processors(text) if text else None
        there = online[side]
        missing = [] if there is None else sorted(set(sets[side] or ()) - set(there))
        if missing:
            raise PlaceError(
                f"settings.affinity.{side}: processors {missing} are not online at {_place_of(side, facts)}",
                hint=f"it has {sorted(there)}",
            )
    return Effect(server_processors=sets["server"], client_processors=sets["client"])


def _place_of(side: str, facts: Mapping[str, Any]) -> str:
    return "the load's place" if side == "client" and "client_processors" in facts else "this place"
