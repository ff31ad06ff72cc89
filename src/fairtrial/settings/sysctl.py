"""`sysctl`: kernel parameters below /proc/sys (proc_sys(5))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fairtrial.settings.effect import Effect
from fairtrial.settings.steps import write_file
from fairtrial.study.catalogue import Kind

Parameters = Annotated[
    dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+([./][A-Za-z0-9_.-]+)+$")], str | int],
    Field(description="Kernel parameters as sysctl(8) names them: `vm.swappiness: 10`."),
]

KIND = Kind(
    name="sysctl",
    summary="Kernel parameters, as sysctl(8) names them, set before the server starts.",
    parameters=TypeAdapter(Parameters),
)


def effect(value: Mapping[str, str | int], _facts: Mapping[str, Any]) -> Effect:
    """One write per parameter. Lists such as `net.ipv4.tcp_rmem` compare word by word."""
    return Effect(
        steps=tuple(
            (
                "before_server",
                write_file(f"/proc/sys/{name.replace('.', '/')}", str(wanted), name=name, normalise="words"),
            )
            for name, wanted in value.items()
        )
    )
