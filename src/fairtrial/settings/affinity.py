"""`affinity`: which processors server and client may use (sched_setaffinity(2))."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from fairtrial.errors import PlaceError
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect
from fairtrial.wire.facts import Facts

LARGEST: Final = 65_535  # a list is held number by number; no kernel has more of anything that one names
_LIST = r"^\d+(-\d+)?(,\d+(-\d+)?)*$"


def _in_order(text: str) -> str:
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) > LARGEST:
            raise ValueError(f"expected numbers up to {LARGEST}, found {part}")
        if int(last or first) < int(first):
            raise ValueError(f"expected the lower number first, found {part}")
    return text


ProcessorList = Annotated[
    str,
    Field(pattern=_LIST),
    AfterValidator(_in_order),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "pattern": _LIST}, {"type": "integer", "minimum": 0}],
            "description": "Processors as the kernel writes them: `0-3,8`.",
        }
    ),
]


class Affinity(BaseModel):
    """Processors of the two sides; a side left out may use all that the place has."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    server: ProcessorList | None = Field(None, description="Processors of the system under test.")
    client: ProcessorList | None = Field(None, description="Processors of the load.")


def processors(text: str) -> tuple[int, ...]:
    """`0-2,5` as (0, 1, 2, 5)."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


class AffinitySetting(Setting[Affinity]):
    """Processor sets for both sides."""

    name = "affinity"
    summary = "Processors that the system and the load may use."
    model = Affinity
    example = MappingProxyType({"server": "0-2", "client": "3"})
    privilege = "none"

    def effect(self, facts: Facts, trial: TrialContext) -> Effect:
        """The sets.

        Raises:
            PlaceError: a processor that the side's place does not have.
        """
        here = facts.processors
        there, at = (trial.client_processors, "the load's place") if trial.load == "elsewhere" else (here, "this place")
        return Effect(
            server_processors=_processors("server", self.value.server, here, at="this place"),
            client_processors=_processors("client", self.value.client, there, at=at),
        )


def _processors(side: str, text: str | None, online: Sequence[int] | None, *, at: str) -> tuple[int, ...] | None:
    """A side's set. `online`: what its place has; None: not known yet."""
    chosen = processors(text) if text else None
    missing = [] if online is None else sorted(set(chosen or ()) - set(online))
    if missing:
        raise PlaceError(
            f"settings.affinity.{side}: processors {missing} are not online at {at}",
            hint=f"it has {sorted(online or ())}",
        )
    return chosen
