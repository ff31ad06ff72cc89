"""`lru_gen`: multi-generational LRU (Documentation/admin-guide/mm/multigen_lru.rst)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fairtrial.settings.setting import Setting, shorthand
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.wire.facts import Facts

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
    int, BeforeValidator(_number, json_schema_input_type=Literal["on", "off"] | bool | int), Field(ge=0, le=ALL_BITS)
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


class LruGenSetting(Setting[LruGen]):
    """One write, or two. Bits that a kernel does not know are not taken and do not read back, which is an error."""

    name = "lru_gen"
    summary = (
        "Multi-generational LRU, set before the server starts. Where the agent is root, the kernel's page cache is "
        "dropped before, so pages do not move between lists."
    )
    model = Annotated[LruGen, BeforeValidator(shorthand("enabled"), json_schema_input_type=LruGen | Enabled)]
    example = MappingProxyType({"enabled": "on", "min_ttl_ms": 1000})
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The writes."""
        bits = str(self.value.enabled)
        steps = [write_file(f"{DIRECTORY}/enabled", bits, name="lru_gen.enabled", normalise="integer")]
        if self.value.min_ttl_ms is not None:
            ttl = str(self.value.min_ttl_ms)
            steps.append(write_file(f"{DIRECTORY}/min_ttl_ms", ttl, name="lru_gen.min_ttl_ms", normalise="integer"))
        return before_server(steps)
