"""`sysctl`: kernel parameters below /proc/sys (proc_sys(5))."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.wire.facts import Facts

Parameters = Annotated[
    dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+([./][A-Za-z0-9_-]+)+$")], str | int],
    Field(description="Kernel parameters as sysctl(8) names them: `vm.swappiness: 10`."),
]

SWITCH = "/proc/sys/kernel/watchdog"
SWAPPED = str.maketrans("./", "/.")


def path(name: str) -> str:
    """A parameter's file, by sysctl(8): the first separator parts the name, the other kind belongs to its parts.

    `net.ipv4.conf.eth0/100.rp_filter` is `net/ipv4/conf/eth0.100/rp_filter`.
    """
    is_dotted = name.partition("/")[0].count(".") > 0
    return "/proc/sys/" + (name.translate(SWAPPED) if is_dotted else name)


class SysctlSetting(Setting[Mapping[str, str | int]]):
    """One write per parameter. Lists such as `net.ipv4.tcp_rmem` compare word by word."""

    name = "sysctl"
    summary = "Kernel parameters, as sysctl(8) names them, set before the server starts."
    model = Parameters
    example = MappingProxyType({"vm.swappiness": 10})
    privilege = "user 0"

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The writes; while the switch of all watchdogs is off, those of each kind read 0, whatever was written."""
        return before_server(
            write_file(path(name), str(value), name=name, normalise="words")
            for name, value in sorted(self.value.items(), key=_rank)
        )


def _rank(entry: tuple[str, str | int]) -> int:
    """The switch of all watchdogs after them where it turns them off, before them where it turns them on."""
    name, value = entry
    if path(name) != SWITCH:
        return 0
    return 1 if str(value).strip() == "0" else -1
