"""`governor`: how processors choose their frequency (Documentation/admin-guide/pm/cpufreq.rst)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.study.catalogue import Kind

FILE = "/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor"
Governor = Annotated[
    str, Field(pattern=r"^[a-z_]+$", description="Such as `performance`; of every processor that is online.")
]

KIND = Kind(
    name="governor",
    summary="The frequency governor of every processor, set before the server starts.",
    parameters=TypeAdapter(Governor),
)


def effect(value: str, facts: Mapping[str, Any]) -> Effect:
    """One write per processor. Virtual machines have no such files: their host decides."""
    return before_server(
        write_file(FILE.format(number=number), value, name=f"governor.{number}", normalise="trim")
        for number in facts["processors"]
    )
