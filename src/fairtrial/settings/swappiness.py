"""`swappiness`: what swapping costs against reading files again, as the kernel is told (/proc/sys/vm/swappiness)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from fairtrial.protocol.generated import Step
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, GroupLimit, Side, before_server
from fairtrial.settings.steps.shared import write_file, write_group
from fairtrial.wire.facts import Facts

CONTROLLER, GROUP_FILE = "memory", "memory.swappiness"
FILE = "/proc/sys/vm/swappiness"
LARGEST = 200  # since Linux 5.8; older kernels take 100 and refuse more
Swappiness = Annotated[
    int,
    Field(ge=0, le=LARGEST, description="0: files first; 100: both cost the same; 200: anonymous memory first."),
]


class SwappinessSetting(Setting[int]):
    """One write; in version 1 of control groups, which have values of their own, also to a group of each side here."""

    name = "swappiness"
    summary = "How willingly the kernel swaps, set before the server starts."
    model = Swappiness
    example = 10
    privilege = "user 0"

    def effect(self, facts: Facts, trial: TrialContext) -> Effect:
        """The write, and the groups' limits."""
        value = self.value
        written = before_server([write_file(FILE, str(value), name="swappiness", normalise="integer")])
        group = facts.controllers.get(CONTROLLER)
        if group is None or group.version != 1:
            return written
        sides: tuple[Side, ...] = ("server", "client") if trial.load == "beside" else ("server",)
        return replace(written, limits=tuple(GroupLimit(side, CONTROLLER, _of_group(side, value)) for side in sides))


def _of_group(side: str, value: int) -> Callable[[str, str], Step]:
    name = f"swappiness.{side}"
    return lambda group, _data: write_group(f"{group}/{GROUP_FILE}", str(value), name=name, expect=str(value))
