"""`sysfs`: any file below /sys, set before the server starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, Field

from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import Normalise, write_file
from fairtrial.wire.facts import Facts

COMPONENTS = r"^/sys(/[A-Za-z0-9_:@,+-][A-Za-z0-9_:@,+.-]*)+$"  # none begins with a dot, so none is `..`
DRIVER = re.compile(r"^/sys/devices/system/cpu/(intel|amd)_pstate/status$")


def _restorable(files: dict[str, str | int]) -> dict[str, str | int]:
    for path in files:
        if driver := DRIVER.match(path):
            raise ValueError(
                f"{path} cannot be restored: a change of driver gives every processor the default governor and limits; "
                f"boot with `{driver[1]}_pstate=…` instead (`place: {{ssh: {{boot: {{parameters: […]}}}}}}`)"
            )
    return files


Files = Annotated[
    dict[Annotated[str, Field(pattern=COMPONENTS)], str | int],
    AfterValidator(_restorable),
    Field(description="Files below /sys: absolute path → value."),
]

SCHEDULER = "/queue/scheduler"
NUMBER = re.compile(r"^(0x[0-9a-fA-F]+|\d+)$")


def normalisation(value: str) -> Normalise:
    """How the kernel's answer compares: numbers as numbers (`7` reads back as `0x0007`), words by their brackets."""
    return "integer" if NUMBER.match(value) else "brackets"


class SysfsSetting(Setting[Mapping[str, str | int]]):
    """One write per file."""

    name = "sysfs"
    summary = "Any file below /sys, set before the server starts."
    model = Files
    example = MappingProxyType({"/sys/kernel/mm/ksm/run": 0, "/sys/block/sda/queue/scheduler": "none"})
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The writes; a device's scheduler first, as the kernel then sets the rest of its queue to its own defaults."""
        return before_server(
            write_file(path, str(value), name=path, normalise=normalisation(str(value)))
            for path, value in sorted(self.value.items(), key=lambda file: not file[0].endswith(SCHEDULER))
        )
