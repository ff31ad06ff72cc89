"""`environment`: variables of the process that runs the system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fairtrial.settings.steps.effect import Effect
from fairtrial.study.catalogue import Kind

Variables = Annotated[
    dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str],
    Field(description="Environment variables of the process that runs the system: name → text."),
]

KIND = Kind(
    name="environment",
    summary="Environment variables of the process that runs the system (the load engine, where it is embedded).",
    parameters=TypeAdapter(Variables),
)


def effect(value: Mapping[str, str], _facts: Mapping[str, Any]) -> Effect:
    """Adds the variables; nothing at the place changes."""
    return Effect(environment=dict(value))
