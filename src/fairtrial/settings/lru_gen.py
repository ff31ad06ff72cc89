"""`lru_gen`: multi-generational LRU (Documentation/admin-guide/mm/multigen_lru.rst)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.study.catalogue import Kind

DIRECTORY = "/sys/kernel/mm/lru_gen"
ALL_BITS = 0x7  # main switch, accessed bits of leaves in batches, accessed bits of other levels
ON_OFF = {"on": ALL_BITS, "off": 0}


def _number(value: object) -> object:
    if isinstance(value, bool):
        return ALL_BITS if value else 0
    if isinstance(value, str):
        if value in ON_OFF:
            return ON_OFF[value]
        try:
            return int(value, 0)
        except ValueError:
            raise ValueError(f"expected `on`, `off` or bits from 0 to 7, found {value!r}") from None
    return value


Enabled = Annotated[
    int, BeforeValidator(_number, json_schema_input_type=Literal["on", "off"] | int), Field(ge=0, le=ALL_BITS)
]


class LruGen(BaseModel):
    """`on`, `off`, bits, or a mapping."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: Enabled = Field(
        description="`on` (7), `off` (0), or bits: 1 main switch, 2 clear leaves' accessed bits in batches, 4 clear "
        "those of other levels, too.",
    )
    min_ttl_ms: int | None = Field(
        None,
        ge=0,
        description="Pages used within this time are not evicted; where that cannot be kept, the kernel kills. 0: off.",
    )


def _mapping(value: object) -> object:
    """`on`, `off` or bits alone are those that are enabled."""
    return value if isinstance(value, Mapping) else {"enabled": value}


KIND = Kind(
    name="lru_gen",
    summary="Multi-generational LRU, set before the server starts. The kernel's page cache is dropped before, so pages "
    "do not move between lists.",
    parameters=TypeAdapter(Annotated[LruGen, BeforeValidator(_mapping, json_schema_input_type=LruGen | Enabled)]),
)


def effect(value: Mapping[str, Any], _facts: Mapping[str, Any]) -> Effect:
    """One write, or two. Bits that a kernel does not know are not taken and do not read back, which is an error."""
    steps = [
        write_file(f"{DIRECTORY}/enabled", str(value["enabled"]), name="lru_gen.enabled", normalise="integer"),
    ]
    if value["min_ttl_ms"] is not None:
        ttl = str(value["min_ttl_ms"])
        steps.append(write_file(f"{DIRECTORY}/min_ttl_ms", ttl, name="lru_gen.min_ttl_ms", normalise="integer"))
    return before_server(steps)
