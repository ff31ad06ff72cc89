"""`sysctl`: kernel parameters below /proc/sys (proc_sys(5))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.study.catalogue import Kind

Parameters = Annotated[
    dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+([./][A-Za-z0-9_-]+)+$")], str | int],
    Field(description="Kernel parameters as sysctl(8) names them: `vm.swappiness: 10`."),
]

SWAPPED = str.maketrans("./", "/.")

KIND = Kind(
    name="sysctl",
    summary="Kernel parameters, as sysctl(8) names them, set before the server starts.",
    parameters=TypeAdapter(Parameters),
)


def path(name: str) -> str:
    """A parameter's file, by sysctl(8): the first separator parts the name, the other kind belongs to its parts.

    `net.ipv4.conf.eth0/100.rp_filter` is `net/ipv4/conf/eth0.100/rp_filter`.
    """
    is_dotted = name.partition("/")[0].count(".") > 0
    return "/proc/sys/" + (name.translate(SWAPPED) if is_dotted else name)


def effect(value: Mapping[str, str | int], _facts: Mapping[str, Any]) -> Effect:
    """One write per parameter. Lists such as `net.ipv4.tcp_rmem` compare word by word."""
    return before_server(
        write_file(path(name), str(wanted), name=name, normalise="words") for name, wanted in value.items()
    )
