"""`sysfs`: any file below /sys, set before the server starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import Normalise, write_file
from fairtrial.study.catalogue import Kind

COMPONENTS = r"^/sys(/[A-Za-z0-9_:@,+-][A-Za-z0-9_:@,+.-]*)+$"  # none begins with a dot, so none is `..`
Files = Annotated[
    dict[Annotated[str, Field(pattern=COMPONENTS)], str | int],
    Field(description="Files below /sys: absolute path → value."),
]

KIND = Kind(
    name="sysfs",
    summary="Any file below /sys, set before the server starts.",
    parameters=TypeAdapter(Files),
)

NUMBER = re.compile(r"^(0x[0-9a-fA-F]+|\d+)$")


def normalisation(value: str) -> Normalise:
    """How the kernel's answer compares: numbers as numbers (`7` reads back as `0x0007`), words by their brackets."""
    return "integer" if NUMBER.match(value) else "brackets"


def effect(value: Mapping[str, str | int], _facts: Mapping[str, Any]) -> Effect:
    """One write per file."""
    return before_server(
        write_file(path, str(wanted), name=path, normalise=normalisation(str(wanted))) for path, wanted in value.items()
    )
