"""`environment`: variables of the process that runs the system."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect
from fairtrial.wire.facts import Facts

Variables = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")],
        Annotated[str, Field(pattern=r"^[^\x00]*$")],  # what no process's environment can hold
    ],
    Field(description="Environment variables of the process that runs the system: name → text."),
]


class EnvironmentSetting(Setting[Mapping[str, str]]):
    """Adds the variables; nothing at the place changes."""

    name = "environment"
    summary = "Environment variables of the process that runs the system (the load engine, where it is embedded)."
    model = Variables
    example = MappingProxyType({"MALLOC_ARENA_MAX": "1"})
    privilege = "none"

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The variables."""
        return Effect(environment=dict(self.value))
